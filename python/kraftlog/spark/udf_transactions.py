"""Transactions of the metadata log (KIP-868) in columns: packed from groups of records, or listed from batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.spark.udf_arguments import FAIL, NULL, checked_on_error, constant, constants, literals, spark_type
from kraftlog.tables.transaction_lists import TRANSACTION, transaction_lists
from kraftlog.transactions import metadata_transaction

if TYPE_CHECKING:
    from pyspark.sql import Column


def pack_transaction(
    value: Column | str, name: Column | str | None = None, *, order_by: Column | str | None = None, **options: Any
) -> Column:
    """Pack the records of each group into one transaction of the metadata log (KIP-868).

    An aggregate function: for ``groupBy(...).agg(...)``. A group is packed in the memory of one task. In SQL
    ``pack_transaction(value, name => transaction, order_by => offset)`` takes everything but the value by name.

    Parameters
    ----------
    value : Column or str
        Serialized metadata records, binary.
    name : Column or str, optional
        Name of the transaction: a text, or a column with one value per group, such as the grouping column.
    order_by : Column or str, optional
        A column without nulls that sorts the records. Without it their order is undefined.
    **options
        Those of ``kraftlog.pack_transaction``, such as ``max_batch_bytes`` (8192 by default).

    Returns
    -------
    Column
        Binary: the batches of Begin, the records, End. Null for a group whose values are all null.

    Raises
    ------
    ValueError
        For an invalid option. The job fails when some but not all records of a group are null, or when a record takes
        more than ``max_batch_bytes`` or is a transaction marker itself; the message names its place.

    Examples
    --------
    >>> from kraftlog.spark import pack_transaction
    >>> packed = pack_transaction("value", F.col("transaction"), order_by="offset")  # doctest: +SKIP
    >>> df.groupBy("transaction").agg(packed.alias("content"))  # doctest: +SKIP
    """
    from pyspark.sql.functions import arrow_udf, col

    metadata_transaction.TransactionEncoder(name if isinstance(name, str) else None, **options)
    named = options if name is None else options | {"name": name}
    if order_by is not None:
        named = named | {"order_by": col(order_by) if isinstance(order_by, str) else order_by}
    return arrow_udf(pack_group, spark_type(pa.binary()))(value, **literals(named))


def pack_group(values: pa.Array, **options: pa.Array) -> bytes | None:
    """Pack the values of one group; the array ``order_by`` among the options has an element for each."""
    if values.null_count == len(values):
        return None
    order_by = options.pop("order_by", None)
    if order_by is not None:
        if order_by.null_count:
            raise ValueError(f"order_by is null for {order_by.null_count} of {len(order_by)} records")
        values = values.take(pc.sort_indices(order_by))
    records = values.cast(pa.binary())
    packed: bytes = metadata_transaction.pack_transaction(records, **constants(options)).to_pybytes()
    return packed


def pack_transactions(column: Column | str, name: Column | str | None = None, **options: Any) -> Column:
    """Pack each array of records into one transaction of the metadata log (KIP-868).

    In SQL it is ``pack_transactions(records [, name])``, and takes the options by name. ``pack_transaction`` does the
    same for groups of rows.

    Parameters
    ----------
    column : Column or str
        ``array<binary>``: serialized metadata records, in order. An empty array gives a transaction without records,
        null gives null.
    name : Column or str, optional
        Name of each transaction: a column, or a text for all of them.
    **options
        Those of ``kraftlog.pack_transaction``, such as ``max_batch_bytes`` (8192 by default); the same for every row.

    Returns
    -------
    Column
        Binary: the batches of Begin, the records, End.

    Raises
    ------
    ValueError
        For an invalid option. The job fails when a record is null, takes more than ``max_batch_bytes`` or is a
        transaction marker itself; the message names its place in its array.

    Examples
    --------
    >>> from kraftlog.spark import pack_transactions
    >>> df.select(pack_transactions("records", F.col("transaction")).alias("content"))  # doctest: +SKIP
    >>> spark.sql("SELECT pack_transactions(records, max_batch_bytes => 4096) FROM changes")  # doctest: +SKIP
    """
    from pyspark.sql.functions import arrow_udf, lit

    metadata_transaction.TransactionEncoder(name if isinstance(name, str) else None, **options)

    def pack_column(records: pa.Array, names: pa.Array) -> pa.Array:
        return metadata_transaction.pack_lists(records, names, **options)

    names = lit(None).cast("string") if name is None else lit(name)
    return arrow_udf(pack_column, spark_type(pa.binary()))(column, names)


def pack_lists_in_sql(records: pa.Array, name: pa.Array = None, **options: pa.Array) -> pa.Array:
    """Pack each value as ``pack_transactions`` does; options are columns of one value, or absent."""
    return metadata_transaction.pack_lists(records, name, **constants(options))


def transaction_boundaries(column: Column | str, *, on_error: str = FAIL) -> Column:
    """List the transactions in a binary column of metadata log batches.

    In SQL it is ``transaction_boundaries(content [, on_error])``.

    Parameters
    ----------
    column : Column or str
        Each value is a piece of a metadata log. Null gives null.
    on_error : {"fail", "null"}
        How to handle a value with a batch that cannot be read, or with a misplaced marker: the job fails with a message
        that names the batch and its byte, or the result is null.

    Returns
    -------
    Column
        Array of struct with the columns of the table metadata_transactions, in the order in which transactions end.
        ``begin_offset`` is null for a transaction that began before the piece, ``end_offset`` for one that is open at
        its end; counts cover only the piece.

    Raises
    ------
    ValueError
        For an unknown option.

    Examples
    --------
    >>> from kraftlog.spark import transaction_boundaries
    >>> df.select(F.inline(transaction_boundaries("content")))  # doctest: +SKIP
    """
    from pyspark.sql.functions import arrow_udf

    checked_on_error(on_error)

    def boundaries_column(batches: pa.Array) -> pa.Array:
        return transaction_lists(batches, on_fault_null=on_error == NULL)

    return arrow_udf(boundaries_column, spark_type(pa.list_(TRANSACTION)))(column)


def boundaries_in_sql(batches: pa.Array, on_error: pa.Array = None) -> pa.Array:
    """Do the work of ``transaction_boundaries``; the option is a column of one value, or absent."""
    how = checked_on_error(constant("on_error", on_error, FAIL))
    return transaction_lists(batches, on_fault_null=how == NULL)
