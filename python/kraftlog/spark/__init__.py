"""Log files in Spark: a data source, a faster reader by ranges, an export, and functions for columns of record batches.

All of them read with ``task.read_part``. Nothing here knows the bytes of the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlog.spark.counters import Counters
from kraftlog.spark.export import Export, to_parquet
from kraftlog.spark.progress import offsets_behind_latest
from kraftlog.spark.ranges import read_ranges
from kraftlog.spark.udf import (
    crc32c,
    decode_batches,
    decode_message,
    encode_batch,
    group_partition,
    pack_transaction,
    pack_transactions,
    partition_for_key,
    register_functions,
    transaction_boundaries,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Counters",
    "Export",
    "crc32c",
    "decode_batches",
    "decode_message",
    "encode_batch",
    "group_partition",
    "offsets_behind_latest",
    "pack_transaction",
    "pack_transactions",
    "partition_for_key",
    "read_ranges",
    "register",
    "to_parquet",
    "transaction_boundaries",
]


def register(spark: SparkSession) -> None:
    """Register the format ``kraftlog`` with a session, and the functions for columns with its SQL.

    Spark discovers the format of an installed wheel by itself. An editable install needs this call, and so does a
    session that started before the wheel was installed. It also takes over the session's settings of S3, ``fs.s3a.*``;
    call it again when they have changed.

    Parameters
    ----------
    spark : SparkSession
    """
    from kraftlog.spark.datasource import KraftlogSource

    spark.dataSource.register(KraftlogSource.of(spark))
    register_functions(spark)
