"""A first stage of a job: executors read the transactions of segments from batch headers."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlog.read.segment_transactions import Fold, HeaderPass, SegmentTransactions, in_threads
from kraftlog.spark.over_parts import over_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY_PASSES = 64  # threads of the driver make fewer
PASSES_OF_A_TASK = 8

_FOUND = pa.schema([("number", pa.int64()), ("found", pa.binary())])


def in_cluster(spark: SparkSession) -> Fold:
    """Return a function that makes passes over headers, in tasks of Spark if there are many.

    Only segments without a whole ``.snapshot``, ``.index`` and ``.txnindex`` need one, and the last of each partition.

    Parameters
    ----------
    spark : SparkSession
        Executors must see the files.
    """

    def fold(passes: Sequence[HeaderPass]) -> Iterable[SegmentTransactions]:
        if len(passes) < MANY_PASSES:
            return in_threads(passes)
        numbered = list(enumerate(passes))
        groups = [numbered[at : at + PASSES_OF_A_TASK] for at in range(0, len(passes), PASSES_OF_A_TASK)]
        title = f"kraftlog transactions from the headers of {len(passes)} segments"
        rows = over_parts(spark, groups, _found, _FOUND, title).collect()
        return [pickle.loads(row.found) for row in sorted(rows, key=lambda row: row.number)]

    return fold


def _found(group: list[tuple[int, HeaderPass]]) -> Iterator[pa.RecordBatch]:
    """Make the passes of one task."""
    numbers, passes = zip(*group, strict=True)
    packed = [pickle.dumps(found) for found in in_threads(passes)]
    yield pa.record_batch([pa.array(numbers, pa.int64()), pa.array(packed, pa.binary())], schema=_FOUND)
