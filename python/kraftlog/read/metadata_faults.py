"""Faults of the transactions of a metadata log, as rows of the ``errors`` table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kraftlog.codec.metadata_markers import BEGIN_TRANSACTION, MARKER_NAMES
from kraftlog.codec.metadata_version import FIRST_WITH_TRANSACTIONS, metadata_version_name
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import located
from kraftlog.transactions.metadata_columns import FOREVER, Markers, Stretch
from kraftlog.transactions.metadata_fold import Found
from kraftlog.transactions.places import PLACE_BITS

NOT_OPEN, ALREADY_OPEN = "end_outside_transaction", "begin_inside_transaction"
IN_SNAPSHOT, BEGUN_BEFORE = "marker_in_snapshot", "begun_before_log"
MISSING, DAMAGED = "missing_offsets", "damaged_transaction"
UNSUPPORTED = "unsupported_marker"


def faults_of(
    segments: Sequence[Segment],
    segment: Segment,
    step: Found,
    bounds: tuple[int, int],
    refused: Iterable[Fault] = (),
    snapshot_end: int | None = None,
) -> Iterator[Fault]:
    """Return the faults of a range of a log at offsets in [start, end).

    Parameters
    ----------
    segments : sequence of Segment
        Segments of the log, in order.
    segment : Segment
        The segment of the range.
    step : Found
        The decisions of the range.
    bounds : tuple of int
    refused : iterable of Fault
        Faults of other markers of the range.
    snapshot_end : int, optional
        The end of the newest snapshot, if the range is the end of the log.
    """
    start, end = bounds
    for first, after in step.gaps:
        first = max(first, 0)  # behind a batch whose base offset is damaged, more than the log ever had seems to lack
        if first < min(end, after) and after > start:
            why = f": the log ends before its snapshot of {after}" if after == snapshot_end else ""
            yield located(segment, Fault(MISSING, f"offsets {first} to {after - 1} are missing{why}"))
    broken = step.transactions[~step.transactions["is_whole"]]
    for transaction in broken[(broken["first_offset"] < end) & (broken["last_offset"] >= start)]:
        first = int(transaction["first_offset"])
        yield located(_segment_of(segments, first), Fault(DAMAGED, _left_out(transaction)))
    for fault in (*of_markers(step), *refused):
        offset = (fault.base_offset or 0) + (fault.record_index or 0)
        if start <= offset < end:
            yield located(segment, fault)


def _left_out(transaction: np.void) -> str:
    first, last = int(transaction["first_offset"]), int(transaction["last_offset"])
    if last == FOREVER:
        return f"offsets from {first} on are of a transaction that is open, and some are missing: they are left out"
    return f"offsets {first} to {last} are of a transaction that is not whole: they are left out"


def _segment_of(segments: Sequence[Segment], offset: int) -> Segment:
    before = [segment for segment in segments if (segment.base_offset or 0) <= offset]
    return before[-1] if before else segments[0]


def of_markers(step: Found) -> Iterator[Fault]:
    """Return a fault for each misplaced marker, and for a transaction that began before the log."""
    for marker, since in zip(step.misplaced, step.since, strict=True):
        if marker["api_key"] == BEGIN_TRANSACTION:
            yield _of_marker(marker, ALREADY_OPEN, f"but a transaction is open since offset {since}")
        else:
            yield _of_marker(marker, NOT_OPEN, "but no transaction is open")
    for marker in step.begun_before:
        yield _of_marker(marker, BEGUN_BEFORE, "but the transaction began before this log")


def in_snapshot(segment: Segment, markers: Markers) -> Iterator[Fault]:
    """Return a fault for each marker of a snapshot."""
    for marker in markers:
        yield located(segment, _of_marker(marker, IN_SNAPSHOT, "a snapshot holds no transactions"))


def unsupported(stretch: Stretch, refused: Iterable[tuple[int, int]]) -> Iterator[Fault]:
    """Return a fault for each marker where metadata.version has no transactions, given its index and the level."""
    first = metadata_version_name(FIRST_WITH_TRANSACTIONS)
    for at, level in refused:
        batch = int(stretch.batch_of[at])
        why = f"but metadata.version {metadata_version_name(level)} has no transactions; {first} is the first that has"
        marker = {"offset": stretch.offsets[at], "api_key": stretch.api_keys[at]}
        marker |= {"place": stretch.places[batch], "base_offset": stretch.base[batch]}
        yield _of_marker(marker, UNSUPPORTED, why)


def _of_marker(marker: np.void | dict[str, np.int64], code: str, why: str) -> Fault:
    position, base_offset, offset = (
        int(marker["place"]) % (1 << PLACE_BITS),
        int(marker["base_offset"]),
        int(marker["offset"]),
    )
    message = f"batch at byte {position}: {MARKER_NAMES[int(marker['api_key'])]} at offset {offset}, {why}"
    return Fault(code, message, position, 0, base_offset, record_index=offset - base_offset)
