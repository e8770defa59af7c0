"""Some of the keys or values of a log, to look at before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.layout.segment import Segment
from kraftlog.read.ranges import plan
from kraftlog.read.records import read_ranges
from kraftlog.values.framing import Side

_OF_A_PARTITION, _OF_ALL = 2_000, 20_000


def first_values(segments: Sequence[Segment], side: Side) -> Iterator[pa.Array]:
    """Return the first keys or values of each partition."""
    options, columns = ReadOptions(batch_rows=_OF_A_PARTITION), schema.RECORDS.select([side])
    seen = 0
    for _, group in groupby(segments, key=lambda one: (one.topic, one.partition)):
        rows = 0
        for batch in read_ranges(plan(list(group), options, None), columns, options, [], 1, None, []):
            yield batch.column(0)
            rows += batch.num_rows
            if rows >= _OF_A_PARTITION:
                break
        seen += rows
        if seen >= _OF_ALL:
            break
