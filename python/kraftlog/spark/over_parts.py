"""A task of Spark for each item of a list, by ``mapInArrow`` over a row for each."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from kraftlog.spark.unpickled import called
from kraftlog.spark.worker import settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Item = TypeVar("Item")


def over_parts(
    spark: SparkSession,
    parts: Sequence[Item],
    work: Callable[[Item], Iterator[pa.RecordBatch]],
    arrow_schema: pa.Schema,
    title: str,
) -> DataFrame:
    """Return a DataFrame of a function's output for each part, with a task for each.

    Each task receives the function and its own part.

    Parameters
    ----------
    spark : SparkSession
    parts : sequence
    work : callable
        Takes a part and returns record batches.
    arrow_schema : pyarrow.Schema
        The schema of these batches.
    title : str
        The name of the tasks in EXPLAIN.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from kraftlog.spark.part_rows import part_rows

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            for part in batch.column(0).to_pylist():
                yield from work(pickle.loads(part))

    rows = part_rows(spark, [pickle.dumps(part) for part in parts])
    return rows.mapInArrow(called(task, title), from_arrow_schema(arrow_schema))
