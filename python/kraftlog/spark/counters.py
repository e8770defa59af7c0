"""Sums over what the tasks of a job read, while it runs and afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Counters:
    """Counts bytes, batches, rows and errors of ``read_ranges`` and ``to_parquet``.

    Spark adds a task's counts when the task ends, so the numbers grow by parts. A task that Spark repeats, such as for
    a second action on the same DataFrame, counts again; a failed task does not count.

    Parameters
    ----------
    spark : SparkSession
        A session of classic Spark: Spark Connect has no accumulators.

    Raises
    ------
    ValueError
        With a session of Spark Connect.

    Examples
    --------
    >>> from kraftlog.spark import Counters, read_ranges
    >>> counters = Counters(spark)  # doctest: +SKIP
    >>> read_ranges(spark, "backup/", counters=counters).count()  # doctest: +SKIP
    >>> counters.rows, counters.errors  # doctest: +SKIP
    """

    def __init__(self, spark: SparkSession) -> None:
        from pyspark.errors import PySparkException

        try:
            accumulator = spark.sparkContext.accumulator
        except PySparkException:
            raise ValueError("counters need classic Spark: Spark Connect has no accumulators") from None
        self._bytes_read, self._batches, self._rows, self._errors = (accumulator(0) for _ in range(4))

    @property
    def bytes_read(self) -> int:
        """Bytes of log files."""
        return int(self._bytes_read.value)

    @property
    def batches(self) -> int:
        """Arrow record batches decoded from them."""
        return int(self._batches.value)

    @property
    def rows(self) -> int:
        """Rows in these batches."""
        return int(self._rows.value)

    @property
    def errors(self) -> int:
        """Pieces of input that could not be read."""
        return int(self._errors.value)

    def add(self, *, bytes_read: int, batches: int, rows: int, errors: int) -> None:
        """Count the work of one task; called by the task."""
        self._bytes_read.add(bytes_read)
        self._batches.add(batches)
        self._rows.add(rows)
        self._errors.add(errors)

    def __repr__(self) -> str:
        return f"Counters(bytes_read={self.bytes_read}, batches={self.batches}, rows={self.rows}, errors={self.errors})"
