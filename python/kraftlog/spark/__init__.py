"""Log files in Spark: a data source, a faster reader by ranges, and functions for columns of record batches.

Every way goes over the same reader of one range (``tables.read``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlog.spark.ranges import read_ranges
from kraftlog.spark.udf import decode_batches, encode_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["decode_batches", "encode_batch", "read_ranges", "register"]


def register(spark: SparkSession) -> None:
    """Make the format ``kraftlog`` known to a session.

    An installed wheel is found without it; an editable install, and a session that was there before, need it.

    Parameters
    ----------
    spark : SparkSession
    """
    from kraftlog.spark.datasource import KraftlogSource

    spark.dataSource.register(KraftlogSource)
