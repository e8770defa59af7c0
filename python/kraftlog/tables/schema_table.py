"""The table ``schemas``: the current state of a schema registry's topic."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pyarrow as pa

from kraftlog.tables.read import Read
from kraftlog.values.schema_store import Schema
from kraftlog.values.schema_topic import schemas_of


def schema_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``schemas``, by subject and version."""
    rows = [_row(one) for one in schemas_of(read.segments, read)]
    if rows:
        wanted = [{name: row[name] for name in read.schema.names} for row in rows]
        yield pa.RecordBatch.from_pylist(wanted, schema=read.schema)


def _row(one: Schema) -> dict[str, object]:
    return {
        "id": one.id,
        "subject": one.subject,
        "version": one.version,
        "type": one.type,
        "schema": one.schema,
        "references": [
            {"name": each.name, "subject": each.subject, "version": each.version} for each in one.references
        ],
        "deleted": one.deleted,
        "guid": str(UUID(bytes=one.guid)),
        "record_offset": one.offset,
    }
