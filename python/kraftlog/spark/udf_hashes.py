"""Columns of numbers: where producers put keys, where coordinators put groups, and checksums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlog.codec import partitioner, value_hashes
from kraftlog.coordinator import partition_for
from kraftlog.spark.udf_arguments import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def crc32c(column: Column | str) -> Column:
    """Return the CRC32C (Castagnoli) of each value.

    Parameters
    ----------
    column : Column or str
        Binary, or text, which is encoded as UTF-8. Null gives null.

    Returns
    -------
    Column
        Bigint from 0 to 2^32 - 1.

    Examples
    --------
    >>> from kraftlog.spark import crc32c
    >>> df.select(crc32c("value"))  # doctest: +SKIP
    >>> spark.sql("SELECT crc32c('123456789')").first()[0]  # doctest: +SKIP
    3808858755
    """
    from pyspark.sql.functions import arrow_udf

    return arrow_udf(crc32c_column, spark_type(pa.int64()))(column)


def crc32c_column(values: pa.Array) -> pa.Array:
    """Return the CRC32C of each value."""
    return value_hashes.crc32c(values)


def partition_for_key(column: Column | str, partitions: Column | int) -> Column:
    """Return the partition that Kafka's producers choose for each key: murmur2 of its bytes, modulo the count.

    Parameters
    ----------
    column : Column or str
        Keys as they are serialized: binary, or text, which is encoded as UTF-8. Null gives null, since a producer
        spreads such records; an empty key has a partition.
    partitions : Column or int
        Number of the topic's partitions; null gives null. The job fails when one is not positive.

    Returns
    -------
    Column
        Int.

    Raises
    ------
    ValueError
        When the number of partitions is not positive.

    Examples
    --------
    >>> from kraftlog.spark import partition_for_key
    >>> df.repartition(12, partition_for_key("key", 12))  # doctest: +SKIP
    >>> spark.sql("SELECT partition_for_key('foobar', 12)").first()[0]  # doctest: +SKIP
    6
    """
    from pyspark.sql.functions import arrow_udf

    return arrow_udf(key_column, spark_type(pa.int32()))(column, _numbers(partitions))


def key_column(keys: pa.Array, partitions: pa.Array) -> pa.Array:
    """Return the partition of each key."""
    return partitioner.partition_for_key(keys, partitions)


def group_partition(column: Column | str, partitions: Column | int = partition_for.DEFAULT_PARTITIONS) -> Column:
    """Return the partition of ``__consumer_offsets`` or ``__transaction_state`` for each name.

    Parameters
    ----------
    column : Column or str
        Group ids or transactional ids. Null gives null.
    partitions : Column or int
        Number of the topic's partitions, 50 by default, in SQL as well; null gives null. The job fails when one is not
        positive.

    Returns
    -------
    Column
        Int; the partition that has the records of a group or of a transactional id.

    Raises
    ------
    ValueError
        For a number of partitions below 1.

    Examples
    --------
    >>> from kraftlog.spark import group_partition
    >>> df.select("group", group_partition("group"))  # doctest: +SKIP
    >>> spark.sql("SELECT group_partition('grp-modern', 2)").first()[0]  # doctest: +SKIP
    1
    """
    from pyspark.sql.functions import arrow_udf

    return arrow_udf(group_column, spark_type(pa.int32()))(column, _numbers(partitions))


def group_column(names: pa.Array, *partitions: pa.Array) -> pa.Array:
    """Return the partition of each name; the array of partition counts is optional."""
    return partition_for.group_partition(names, *partitions)


def _numbers(partitions: Column | int) -> Column:
    """Return partition counts as a column."""
    from pyspark.sql.functions import lit

    if isinstance(partitions, int) and partitions < 1:
        raise ValueError(f"expected at least one partition, found {partitions}")
    return lit(partitions)
