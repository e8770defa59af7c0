"""Parts of the work, as the partition of a data source that Spark sends to a task."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from kraftlog.spark.parts import Part


@dataclass
class PartPartition(InputPartition):
    """What one task reads."""

    parts: tuple[Part, ...]
