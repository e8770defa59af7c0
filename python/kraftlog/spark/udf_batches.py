"""Columns of record batches: decoded to arrays of records, and encoded from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.decode import DECODE_COLUMNS, decode
from kraftlog.codec.decode_column import decode_column
from kraftlog.codec.encode import Encoder
from kraftlog.codec.encode_column import encode_column
from kraftlog.spark.udf_arguments import (
    FAIL,
    NULL,
    checked_on_error,
    constant,
    constants,
    spark_type,
)

if TYPE_CHECKING:
    from pyspark.sql import Column


def decode_batches(
    column: Column | str,
    columns: Sequence[str] | None = None,
    *,
    on_error: str = FAIL,
    include_control: bool = False,
) -> Column:
    """Decode a binary column of record batches to a column of arrays of records.

    In SQL it is ``decode_batches(content [, on_error [, include_control]])``, with the default columns.

    Parameters
    ----------
    column : Column or str
        Each value holds any number of record batches, such as the records of a fetch response; a truncated last batch
        is left out. An empty value gives an empty array, null gives null.
    columns : sequence of str, optional
        Columns of the table records, as in ``kraftlog.decode``; only these are decoded. By default key, value, offset,
        timestamp, timestamp_type and headers.
    on_error : {"fail", "null"}
        How to handle a value with a batch that cannot be read: the job fails with a message that names the batch and
        its byte, or the result is null.
    include_control : bool
        Whether records of control batches are shown.

    Returns
    -------
    Column
        Array of struct; ``inline`` makes rows of it.

    Raises
    ------
    ValueError
        For an unknown column or option.

    Examples
    --------
    >>> from kraftlog.spark import decode_batches
    >>> df.select(F.inline(decode_batches("content", ["offset", "value"])))  # doctest: +SKIP
    >>> spark.sql("SELECT inline(decode_batches(content, 'null')) FROM responses")  # doctest: +SKIP
    """
    from pyspark.sql.functions import arrow_udf

    names = list(DECODE_COLUMNS if columns is None else columns)
    if not names:
        raise ValueError("columns is empty; decode_batches takes at least one")
    decode(b"", columns=names)
    checked_on_error(on_error)

    def decode_column(batches: pa.Array) -> pa.Array:
        return _decode(batches, names, on_error, include_control)

    return arrow_udf(decode_column, spark_type(decoded_type(names)))(column)


def decoded_type(columns: Sequence[str] = DECODE_COLUMNS) -> pa.DataType:
    """Return the type of the arrays of records."""
    return pa.list_(pa.struct(list(schema.RECORDS.select(columns))))


def decode_in_sql(batches: pa.Array, on_error: pa.Array = None, include_control: pa.Array = None) -> pa.Array:
    """Decode each value as ``decode_batches`` does by default; options are columns of one value, or absent."""
    how = checked_on_error(constant("on_error", on_error, FAIL))
    return _decode(batches, DECODE_COLUMNS, how, constant("include_control", include_control, default=False))


def _decode(batches: pa.Array, columns: Sequence[str], on_error: str, include_control: bool) -> pa.Array:
    records = decode_column(batches, columns, include_control=include_control, on_fault_null=on_error == NULL)
    return records.cast(decoded_type(columns))


def encode_batch(column: Column | str, **options: Any) -> Column:
    """Encode a column of arrays of records as record batches.

    In SQL it is ``encode_batch(records [, compression [, max_batch_bytes]])``, and takes the other options by name,
    unless its result goes straight into another Python function: Spark drops names then.

    Parameters
    ----------
    column : Column or str
        ``array<struct<...>>`` with any of the fields key, value, timestamp and headers. An empty array gives an empty
        value, null gives null.
    **options
        Those of ``kraftlog.encode``, such as ``compression="zstd"``; the same for every row.

    Returns
    -------
    Column
        Binary: consecutive batches, whose offsets begin at ``base_offset`` in each value.

    Raises
    ------
    ValueError
        For an invalid option.

    Examples
    --------
    >>> from kraftlog.spark import encode_batch
    >>> records = F.array_sort(F.collect_list(F.struct("timestamp", "key", "value")))  # doctest: +SKIP
    >>> df.groupBy("partition").agg(records.alias("records")).select(encode_batch("records"))  # doctest: +SKIP
    """
    from pyspark.sql.functions import arrow_udf

    Encoder(**options)

    def encode_lists(records: pa.Array) -> pa.Array:
        return encode_column(records, **options)

    return arrow_udf(encode_lists, spark_type(pa.binary()))(column)


def encode_in_sql(
    records: pa.Array, compression: pa.Array = None, max_batch_bytes: pa.Array = None, **options: pa.Array
) -> pa.Array:
    """Encode each value as ``encode_batch`` does; options are columns of one value, or absent."""
    given = options | {"compression": compression, "max_batch_bytes": max_batch_bytes}
    return encode_column(records, **constants(given))
