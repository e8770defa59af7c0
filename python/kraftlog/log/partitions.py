"""Segments of one partition, in the order of the log, and the open transactions that a producer snapshot knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.log.discover import Segment
from kraftlog.log.read import located
from kraftlog.log.small_files import read_producer_snapshot
from kraftlog.transactions.producer import Transactions, opened_before
from kraftlog.transactions.producer_state import ProducerState

METADATA_TOPIC = "__cluster_metadata"


def by_partition(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    """Group segments by partition; a snapshot, and a segment that is not live, stands alone."""

    def partition(segment: Segment) -> tuple[Path, Path | None]:
        return segment.path.parent, segment.path if segment.state else None

    for _, group in groupby(segments, partition):
        yield list(group)


def is_metadata(segment: Segment) -> bool:
    """Whether a segment is of the metadata log."""
    return segment.topic == METADATA_TOPIC


def producers_before(segment: Segment, faults: list[Fault]) -> list[ProducerState] | None:
    """Return the producers as the ``.snapshot`` beside a segment has them; None when there is none to be read."""
    path = segment.beside.get("snapshot")
    if path is None:
        return None
    try:
        return read_producer_snapshot(path)
    except (OSError, CorruptRecordError) as error:
        faults.append(located(segment, Fault("bad_snapshot", str(error))))
        return None


def opened_before_segment(segment: Segment, faults: list[Fault]) -> Transactions | None:
    """Return the transactions that are open where a segment starts; None when that is not known.

    Nothing is open before offset 0.
    """
    producers = producers_before(segment, faults)
    if producers is None:
        return opened_before([]) if segment.base_offset == 0 else None
    return opened_before(
        [
            (state.producer_id, state.producer_epoch, state.current_transaction_first_offset)
            for state in producers
            if state.current_transaction_first_offset is not None
        ]
    )
