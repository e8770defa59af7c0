"""Transactions of producers, from the files of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import last_offsets
from kraftlog.errors import Fault
from kraftlog.layout.discover import Segment
from kraftlog.read.partitions import by_partition, opened_before_segment
from kraftlog.read.records import Progress, located, open_segment
from kraftlog.transactions.producer import TransactionFold, Transactions


@dataclass(frozen=True)
class FoldedSegment:
    """Transactions that ended in a segment, those that are open at its end, and the offset behind its last record."""

    segment: Segment
    ended: Transactions
    still_open: Transactions
    next_offset: int


def fold_segments(
    group: list[Segment], faults: list[Fault], on_progress: Progress | None = None
) -> Iterator[FoldedSegment]:
    """Go through the headers of a partition, with each crc compared; what cannot be read is in ``faults``."""
    opened = opened_before_segment(group[0], faults)
    fold = TransactionFold() if opened is None else TransactionFold(opened)
    next_offset = group[0].base_offset or 0
    for segment in group:
        scan = HeaderScan(open_segment(segment, faults, strict=False), check_crc=True)
        ended = [fold.open[:0]]
        for headers in scan.headers():
            ended.append(fold.add(headers))
            next_offset = max(next_offset, int(last_offsets(headers).max()) + 1)
        faults.extend(located(segment, fault) for fault in scan.faults)
        yield FoldedSegment(segment, np.concatenate(ended), fold.open, next_offset)
        if on_progress:
            on_progress(segment.size)


def last_stable_offsets(segments: list[Segment]) -> pa.Table:
    """Return the last stable offset of each partition, as far as its log tells."""
    rows = []
    for group in by_partition(segments):
        if group[0].state:
            continue
        *_, last = fold_segments(group, [])
        stable = int(last.still_open["first_offset"][0]) if len(last.still_open) else last.next_offset
        rows.append({"topic": group[0].topic, "partition": group[0].partition, "last_stable_offset": stable})
    return pa.Table.from_pylist(rows, schema=schema.LAST_STABLE_OFFSETS.select())
