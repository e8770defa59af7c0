"""Reading by ``mapInArrow`` over a row for each part: the same rows as the data source, on a shorter path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlog.spark.counters import Counters
from kraftlog.spark.header_stage import in_cluster
from kraftlog.spark.options import parse_request
from kraftlog.spark.over_parts import over_parts
from kraftlog.spark.packed_parts import packed
from kraftlog.spark.parts import Part
from kraftlog.spark.s3a import S3aSettings
from kraftlog.spark.task import plan_tasks, read_part
from kraftlog.spark.title import title

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
        Segment files, partition folders, log directories or globs; executors must see the same paths.
    counters : Counters, optional
        Count what is read.
    **options
        Those of ``spark.read.format("kraftlog")``, such as ``table="batches"`` or ``columns="offset,value"``; options
        that are lists or JSON also take a list or dict.

    Returns
    -------
    DataFrame
        Its partitions are parts of the log, in order; many small segments share one. Files are listed at the time of
        the call. EXPLAIN shows what is read.

    Raises
    ------
    ValueError
        For invalid options.

    Examples
    --------
    >>> from kraftlog.spark import read_ranges
    >>> read_ranges(spark, "backup/", columns="offset,value").count()  # doctest: +SKIP
    """
    request = parse_request(S3aSettings.of(spark).added_to(option_texts(path, options)))

    def rows(of_task: tuple[Part, ...]) -> Iterator[pa.RecordBatch]:
        for part in of_task:
            yield from read_part(request, part, [], counters)

    parts = plan_tasks(request, in_cluster(spark))
    return over_parts(spark, packed(request, parts), rows, request.schema, title(request, parts))


def option_texts(path: str | list[str], options: Mapping[str, object]) -> dict[str, str]:
    """Return the arguments of a call as options, which are texts; arguments that are None are left out."""
    paths = [path] if isinstance(path, str) else list(path)
    texts = {name: _text(value) for name, value in options.items() if value is not None}
    return {"paths": json.dumps(paths), **texts}


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)
