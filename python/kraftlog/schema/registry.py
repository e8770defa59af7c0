"""The table of a schema registry."""

from __future__ import annotations

import pyarrow as pa

from kraftlog.schema.table import TableSchema

SCHEMAS = TableSchema(
    "schemas",
    "a version of a subject of the schema registry",
    {
        "id": pa.int32(),
        "subject": pa.string(),
        "version": pa.int32(),
        "type": pa.string(),
        "schema": pa.string(),
        "references": pa.list_(pa.struct([("name", pa.string()), ("subject", pa.string()), ("version", pa.int32())])),
        "deleted": pa.bool_(),
    },
    {"guid": pa.string(), "record_offset": pa.int64()},
)
