"""Some of the keys or values of a log, to look at before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.ranges import plan
from kraftlog.read.records import read_ranges
from kraftlog.values.framing import Side

Sample = int | Literal["all"]
_OF_A_PARTITION, _OF_ALL = 2_000, 20_000


def first_values(segments: Sequence[Segment], side: Side, sample: Sample | None = None) -> Iterator[pa.Array]:
    """Return the first keys or values of each partition.

    Parameters
    ----------
    segments : sequence of Segment
    side : {"key", "value"}
    sample : int, "all" or None
        How many of each partition; None is 2,000 of each, and 20,000 of all of them.
    """
    most, of_all = (None, None) if sample == "all" else (sample or _OF_A_PARTITION, None if sample else _OF_ALL)
    options = ReadOptions() if most is None else ReadOptions(batch_rows=most)
    columns = schema.RECORDS.select([side])
    seen = 0
    for _, group in groupby(segments, key=lambda one: (one.topic, one.partition)):
        rows = 0
        for batch in read_ranges(plan(list(group), options, None), columns, Pass(options)):
            yield batch.column(0) if most is None else batch.column(0)[: most - rows]
            rows += batch.num_rows
            if most is not None and rows >= most:
                break
        seen += rows
        if of_all is not None and seen >= of_all:
            break
