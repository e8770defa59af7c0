"""A task of Spark for each item of a list, by ``mapInArrow`` over their numbers."""

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

    Rows are only the numbers of parts: the function carries the parts, and a task picks its own. Parts are pickled one
    by one, so that a task does not unpickle all others.

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

    packed = [pickle.dumps(part) for part in parts]

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(pickle.loads(packed[number]))

    numbers = spark.range(0, len(packed), 1, max(1, len(packed)))
    return numbers.mapInArrow(called(task, title), from_arrow_schema(arrow_schema))
