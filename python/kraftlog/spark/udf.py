"""Vectorised functions for record batches that lie in a column of a DataFrame."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.decode import decode
from kraftlog.codec.encode import encode

DECODED_COLUMNS = ("key", "value", "offset", "timestamp", "timestamp_type", "headers")
DECODED_DDL = (
    "array<struct<key:binary,value:binary,offset:bigint,timestamp:timestamp,timestamp_type:string,"
    "headers:array<struct<key:string,value:binary>>>>"
)
_DECODED = pa.struct(list(schema.RECORDS.select(DECODED_COLUMNS)))


def _decode_column(column: pa.Array) -> pa.Array:
    """Decode each value; a null stays null, a fault fails the job with its message."""
    parts, ends = [], [0]
    for value in column:
        rows = decode(value.as_buffer(), columns=DECODED_COLUMNS, strict=True).to_table() if value.is_valid else None
        if rows is not None:
            parts.append(rows.to_struct_array().combine_chunks())
        ends.append(ends[-1] + (rows.num_rows if rows is not None else 0))
    values = pa.concat_arrays([part.cast(_DECODED) for part in parts]) if parts else pa.array([], _DECODED)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values, mask=column.is_null())


def _encode_column(column: pa.Array, **options: Any) -> pa.Array:
    """Encode each list of records as record batches; a null stays null."""
    encoded: list[bytes | None] = []
    for rows in column:
        if not rows.is_valid:
            encoded.append(None)
            continue
        table = pa.RecordBatch.from_struct_array(rows.values) if len(rows) else None
        encoded.append(b"" if table is None else encode(table, **options).to_pybytes())
    return pa.array(encoded, pa.binary())


def decode_batches(column: Any) -> Any:
    """Decode a binary column that holds record batches, to a column of arrays of records.

    Parameters
    ----------
    column : Column or str
        Each value holds any number of record batches, such as the records of a fetch response.

    Returns
    -------
    Column
        ``array<struct<key,value,offset,timestamp,timestamp_type,headers>>``; ``inline`` makes rows of it.

    Examples
    --------
    >>> from kraftlog.spark import decode_batches
    >>> df.selectExpr("content").select(F.inline(decode_batches("content")))  # doctest: +SKIP
    """
    from pyspark.sql.functions import arrow_udf

    return arrow_udf(_decode_column, DECODED_DDL)(column)


def encode_batch(column: Any, **options: Any) -> Any:
    """Encode a column of arrays of records as record batches.

    Parameters
    ----------
    column : Column or str
        ``array<struct<...>>`` with any of the fields key, value, timestamp and headers.
    **options
        Those of ``kraftlog.encode``, such as ``compression="zstd"``; the same for every row.

    Returns
    -------
    Column
        Binary.
    """
    from pyspark.sql.functions import arrow_udf

    def encode_column(values: pa.Array) -> pa.Array:
        return _encode_column(values, **options)

    return arrow_udf(encode_column, "binary")(column)
