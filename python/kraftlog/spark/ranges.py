"""Reading by a small table of ranges and ``mapInArrow``: the same rows as the data source, by a shorter way."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_ranges(spark: SparkSession, path: str | list[str], **options: object) -> DataFrame:
    """Read log files as a DataFrame, without the data source's detour over rows.

    Parameters
    ----------
    spark : SparkSession
    path : str or list of str
        Segment files, partitions' folders, log directories or globs; executors must see the same paths.
    **options
        Those of ``spark.read.format("kraftlog")``, such as ``table="batches"`` or ``columns="offset,value"``.

    Returns
    -------
    DataFrame
        Its partitions are byte ranges. The list of files is that of the moment of the call.

    Examples
    --------
    >>> from kraftlog.spark import read_ranges
    >>> read_ranges(spark, "backup/", columns="offset,value").count()  # doctest: +SKIP
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    paths = [path] if isinstance(path, str) else list(path)
    request = parse_request({"paths": _json_list(paths), **{key: str(value) for key, value in options.items()}})
    parts = [pickle.dumps(part) for part in plan_parts(request)]

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column(0).to_pylist():
                yield from read(request, pickle.loads(packed), [])

    numbered = [(number, bytearray(part)) for number, part in enumerate(parts)]
    table = spark.createDataFrame(numbered, "number int, part binary")
    spread = table.repartitionByRange(max(1, len(parts)), "number").select("part")
    return spread.mapInArrow(rows, from_arrow_schema(request.schema))


def _json_list(paths: list[str]) -> str:
    import json

    return json.dumps(paths)
