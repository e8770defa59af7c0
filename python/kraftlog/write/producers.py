"""The producers and transactions of a log under writing, for its ``.snapshot`` and ``.txnindex`` files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kraftlog._native.scanner import CONTROL_BIT
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes, read_producer_snapshot
from kraftlog.layout.rebuild import aborted_entries
from kraftlog.layout.segment import Segment
from kraftlog.transactions.joined_rows import joined
from kraftlog.transactions.last_batches import LastBatches
from kraftlog.transactions.producer import TransactionFold, opened_before
from kraftlog.transactions.producer_state import ProducerState, ProducerStates
from kraftlog.write.log_files import segment_file

EVER = -(2**63)  # before all timestamps
_MOST_WAITING = 64  # pieces of headers


class LogProducers:
    """The state of all producers at an offset of a log, as batches are appended.

    Parameters
    ----------
    states : sequence of ProducerState
        The producers before the first added batch.
    """

    def __init__(self, states: Sequence[ProducerState] = ()) -> None:
        self._states = ProducerStates(states)
        opened = [
            (state.producer_id, state.producer_epoch, state.current_transaction_first_offset)
            for state in states
            if state.current_transaction_first_offset is not None
        ]
        self._transactions = TransactionFold(opened_before(opened))
        self._waiting: list[Headers] = []  # without the end of a transaction; processed with the next end

    def add(self, headers: Headers) -> bytes:
        """Process the next batches; return entries for ``.txnindex``, for the transactions that they abort."""
        if not (headers["producer_id"] >= 0).any():
            return b""
        self._states.add(headers)
        self._waiting.append(headers.copy())
        if not (headers["attributes"] & CONTROL_BIT).any() and len(self._waiting) < _MOST_WAITING:
            return b""
        taken, self._waiting = joined(*self._waiting), []
        return aborted_entries(self._transactions.add(taken), self._transactions.open)

    def states(self) -> list[ProducerState]:
        """Return the state of each producer, in order of first occurrence."""
        return self._states.states()

    def expire(self, least_timestamp: int) -> None:
        """Drop the producers that were idle, as Kafka does.

        Parameters
        ----------
        least_timestamp : int
            In milliseconds: a producer without a write since then is dropped, unless it has an open transaction.
        """
        if least_timestamp == EVER:
            return
        states = self.states()
        current = [
            state
            for state in states
            if state.last_timestamp >= least_timestamp or state.current_transaction_first_offset is not None
        ]
        if len(current) < len(states):
            self._states = ProducerStates(current)

    def snapshot(self) -> bytes:
        """Return a ``.snapshot`` file."""
        return producer_snapshot_bytes(self.states())


class ScannedProducers:
    """The producers of a log that is read: their states as in files, and their last batches, which are in no file.

    Parameters
    ----------
    states : sequence of ProducerState
        The producers before the first batch that is read.

    Attributes
    ----------
    producers : LogProducers
    last_batches : LastBatches
    """

    def __init__(self, states: Sequence[ProducerState] = ()) -> None:
        self.producers, self.last_batches = LogProducers(states), LastBatches(states)

    def add(self, headers: Headers) -> bytes:
        """Process the next batches, as ``LogProducers.add``."""
        self.last_batches.add(headers)
        return self.producers.add(headers)


def producers_before(
    folder: Path, segments: Sequence[Segment], snapshots: Sequence[int], offset: int
) -> ScannedProducers:
    """Return the producers before an offset: from the last readable snapshot and the log after it.

    Parameters
    ----------
    folder : Path
        Folder of the partition.
    segments : sequence of Segment
        Segments before the offset, in order.
    snapshots : sequence of int
        Offsets of the ``.snapshot`` files, in order.
    offset : int
        Where the next segment starts.
    """
    start, producers = _last_snapshot(folder, snapshots, offset)
    bases = [*(segment.base_offset or 0 for segment in segments), offset]
    for segment, following in zip(segments, bases[1:], strict=True):
        if start < following:
            for headers in HeaderScan(disk().open(segment.path)).headers():
                producers.add(headers[(headers["base_offset"] >= start) & (headers["base_offset"] < offset)])
    return producers


def _last_snapshot(folder: Path, snapshots: Sequence[int], offset: int) -> tuple[int, ScannedProducers]:
    for start in reversed([each for each in snapshots if each <= offset]):
        try:
            return start, ScannedProducers(read_producer_snapshot(segment_file(folder, start, "snapshot")))
        except CorruptRecordError:  # Kafka also tries the previous one
            continue
    return 0, ScannedProducers()
