"""Transactions of the metadata log (KIP-868) in columns: packed from groups of records, or listed from batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog import schema
from kraftlog.errors import Fault, error_from_fault
from kraftlog.read.metadata_scan import scan_piece
from kraftlog.spark.udf_arguments import FAIL, checked_on_error, constant, constants, list_of_each, literals, spark_type
from kraftlog.tables.transaction_tables import metadata_transaction_columns
from kraftlog.transactions import metadata_transaction

if TYPE_CHECKING:
    from pyspark.sql import Column

_TABLE = schema.METADATA_TRANSACTIONS.select()
TRANSACTION = pa.struct(list(_TABLE))


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
        return list_of_each(batches, _transactions, TRANSACTION, on_error)

    return arrow_udf(boundaries_column, spark_type(pa.list_(TRANSACTION)))(column)


def boundaries_in_sql(batches: pa.Array, on_error: pa.Array = None) -> pa.Array:
    """Do the work of ``transaction_boundaries``; the option is a column of one value, or absent."""
    return list_of_each(batches, _transactions, TRANSACTION, checked_on_error(constant("on_error", on_error, FAIL)))


def _transactions(data: pa.Buffer) -> pa.StructArray:
    faults: list[Fault] = []
    rows = [metadata_transaction_columns(found, _TABLE, faults) for found in scan_piece(data)]
    if faults:
        raise error_from_fault(faults[0])
    return pa.Table.from_batches(rows, _TABLE).combine_chunks().to_struct_array().combine_chunks()
