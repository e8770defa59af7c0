"""The functions for columns, and their names in SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftlog.spark.udf_arguments import spark_type
from kraftlog.spark.udf_batches import decode_batches, decode_in_sql, decoded_type, encode_batch, encode_in_sql
from kraftlog.spark.udf_hashes import (
    crc32c,
    crc32c_column,
    group_column,
    group_partition,
    key_column,
    partition_for_key,
)
from kraftlog.spark.udf_messages import decode_message, json_column
from kraftlog.spark.udf_transactions import (
    boundaries_in_sql,
    pack_group,
    pack_lists_in_sql,
    pack_transaction,
    pack_transactions,
    transaction_boundaries,
)
from kraftlog.tables.transaction_lists import TRANSACTION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "crc32c",
    "decode_batches",
    "decode_message",
    "encode_batch",
    "group_partition",
    "pack_transaction",
    "pack_transactions",
    "partition_for_key",
    "register_functions",
    "transaction_boundaries",
]

SQL_FUNCTIONS: dict[str, tuple[Callable[..., Any], pa.DataType]] = {
    "crc32c": (crc32c_column, pa.int64()),
    "decode_batches": (decode_in_sql, decoded_type()),
    "decode_message": (json_column, pa.string()),
    "encode_batch": (encode_in_sql, pa.binary()),
    "group_partition": (group_column, pa.int32()),
    "pack_transaction": (pack_group, pa.binary()),
    "pack_transactions": (pack_lists_in_sql, pa.binary()),
    "partition_for_key": (key_column, pa.int32()),
    "transaction_boundaries": (boundaries_in_sql, pa.list_(TRANSACTION)),
}


def register_functions(spark: SparkSession) -> None:
    """Register the functions with the SQL of a session, under their own names.

    Parameters
    ----------
    spark : SparkSession

    Examples
    --------
    >>> from kraftlog.spark.udf import register_functions
    >>> register_functions(spark)  # doctest: +SKIP
    >>> spark.sql("SELECT group_partition('orders-app')").first()[0]  # doctest: +SKIP
    5
    """
    from pyspark.sql.functions import arrow_udf

    for name, (function, returned) in SQL_FUNCTIONS.items():
        spark.udf.register(name, arrow_udf(function, spark_type(returned)))
