"""Reading by ``mapInArrow`` over the numbers of parts: the same rows as the data source, by a shorter way."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlog.spark.counters import Counters
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import Part
from kraftlog.spark.task import plan_tasks, read_part
from kraftlog.spark.worker import settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_ranges(
    spark: SparkSession, path: str | list[str], *, counters: Counters | None = None, **options: object
) -> DataFrame:
    """Read log files as a DataFrame, without the data source's detour over rows.

    Parameters
    ----------
    spark : SparkSession
        Classic, or of Spark Connect.
    path : str or list of str
        Segment files, partitions' folders, log directories or globs; executors must see the same paths.
    counters : Counters, optional
        Count what is read.
    **options
        Those of ``spark.read.format("kraftlog")``, such as ``table="batches"`` or ``columns="offset,value"``; where the
        option is a list or JSON, a list or dict will do.

    Returns
    -------
    DataFrame
        Its partitions are parts of the log, in order. The list of files is that of the moment of the call.

    Raises
    ------
    ValueError
        For options that cannot be read.

    Examples
    --------
    >>> from kraftlog.spark import read_ranges
    >>> read_ranges(spark, "backup/", columns="offset,value").count()  # doctest: +SKIP
    """
    request = parse_request(option_texts(path, options))

    def rows(part: Part) -> Iterator[pa.RecordBatch]:
        return read_part(request, part, [], counters)

    return over_parts(spark, plan_tasks(request), rows, request.schema)


def over_parts(
    spark: SparkSession,
    parts: list[Part],
    work: Callable[[Part], Iterator[pa.RecordBatch]],
    arrow_schema: pa.Schema,
) -> DataFrame:
    """Return a DataFrame of what a function makes of parts, with a task for each.

    Rows are only the numbers of parts: a task takes its own out of what is sent along with the function. Parts are
    pickled one by one, so that a task does not unpickle those of all others.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    packed = [pickle.dumps(part) for part in parts]

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(pickle.loads(packed[number]))

    numbers = spark.range(0, len(packed), 1, max(1, len(packed)))
    return numbers.mapInArrow(task, from_arrow_schema(arrow_schema))


def option_texts(path: str | list[str], options: Mapping[str, object]) -> dict[str, str]:
    """Return the arguments of a call as options, which are texts; those that are None are left out."""
    paths = [path] if isinstance(path, str) else list(path)
    texts = {name: _text(value) for name, value in options.items() if value is not None}
    return {"paths": json.dumps(paths), **texts}


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)
