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
    """Return a DataFrame of what a function makes of parts, with a task for each.

    Rows are only the numbers of parts: a task takes its own out of what is sent along with the function. Parts are
    pickled one by one, so that a task does not unpickle those of all others.

    Parameters
    ----------
    spark : SparkSession
    parts : sequence
    work : callable
        Is given a part, and returns record batches.
    arrow_schema : pyarrow.Schema
        Of these.
    title : str
        What EXPLAIN shows of the tasks.
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
