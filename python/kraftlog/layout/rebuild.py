"""The result of Kafka's recovery of a partition's log files, from one pass over their batches.

Kafka's ``LogSegment.recover`` reads batch after batch, verifies the CRC, and keeps everything before the first damaged
batch. It derives index files and producer states from the batches that it keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kraftlog.codec.header_scan import HeaderScan, sound_batches_behind
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.errors import Fault
from kraftlog.layout.build_index import IndexBuilder
from kraftlog.layout.index_files import ENTRY_TYPES
from kraftlog.transactions.producer import (
    ABORTED,
    NONE,
    TransactionFold,
    Transactions,
    last_stable_offsets,
    opened_before,
)
from kraftlog.transactions.producer_state import ProducerState, ProducerStates
from kraftlog.types import Buffer, InputFile


@dataclass
class Rebuilt:
    """A segment after recovery.

    Attributes
    ----------
    size : int
        Bytes of sound batches in the log file.
    fault : Fault or None
        The fault after them, if it is more than a torn tail.
    sound_behind : int
        Number of batches after the fault whose CRC matches.
    files : dict
        Contents of the index files by kind; a kind without entries that Kafka would not create is left out.
    """

    size: int
    fault: Fault | None
    sound_behind: int
    files: dict[str, bytes]


class Rebuild:
    """Goes through the segments of a partition, in their order.

    Parameters
    ----------
    base_offset : int
        Base offset of the first segment.
    interval_bytes : int
        Kafka's ``index.interval.bytes``.

    Attributes
    ----------
    next_offset : int
        Offset after the last sound batch.
    is_complete : bool
        Whether every record before it is in the log or covered by a snapshot; false for a cleaned log.
    begins_at : int
        Before this offset only the producers from ``begin_with`` are known.
    has_producer_ids : bool
        Whether there was a batch of magic 2, which can have producers.
    epochs : list of (int, int)
        Leader epochs and the first offsets of their batches, for all segments so far.
    """

    def __init__(self, base_offset: int, interval_bytes: int) -> None:
        self.next_offset = base_offset
        self.is_complete = base_offset == 0
        self._interval_bytes = interval_bytes
        self._producers = ProducerStates()
        self._transactions = TransactionFold()
        self.begins_at = base_offset
        self.has_producer_ids = False
        self.epochs: list[tuple[int, int]] = []

    def replay(self, buffer: Buffer | InputFile) -> None:
        """Add the producers of a segment from ``next_offset`` on, without verifying CRCs.

        Raises
        ------
        OSError
            When the file cannot be read.
        """
        scan = HeaderScan(buffer)
        for headers in scan.headers():
            later = headers[last_offsets(headers) >= self.next_offset]
            if len(later):
                self._add(later)
        for fault in scan.faults:
            if fault.error == "unreadable_file":
                raise OSError(fault.message)

    def begin_with(self, states: list[ProducerState]) -> None:
        """Set the state of producers and open transactions from the snapshot of the first segment."""
        self.producers_are(states)
        opened = [
            (state.producer_id, state.producer_epoch, state.current_transaction_first_offset)
            for state in states
            if state.current_transaction_first_offset is not None
        ]
        self._transactions = TransactionFold(opened_before(opened))
        self.is_complete = True

    def producers_are(self, states: Iterable[ProducerState]) -> None:
        """Set the state of producers from a snapshot with more information than the log."""
        self._producers = ProducerStates(states)

    def producers(self) -> list[ProducerState]:
        """Return the state of producers at ``next_offset``."""
        return self._producers.states()

    def segment(self, buffer: Buffer | InputFile, base_offset: int) -> Rebuilt:
        """Read the next segment.

        Raises
        ------
        ValueError
            When the segment's index cannot represent an offset.
        """
        builder = IndexBuilder(base_offset, self._interval_bytes)
        scan = HeaderScan(buffer, check_crc=True)
        aborted: list[bytes] = []
        sound_behind = 0
        self._leave_gap(base_offset)
        for headers in scan.headers():
            if scan.faults:
                end = scan.faults[0].position or 0
                sound_behind += int(((headers["position"] > end) & (headers["crc_ok"] == 1)).sum())
                headers = headers[headers["position"] < end]
            if len(headers):
                builder.add(headers)
                aborted.append(self._add(headers))
                self._add_epochs(headers)
        if scan.gave_up_at >= 0:
            sound_behind += sound_batches_behind(buffer, scan.gave_up_at)
        files = {"index": builder.index(), "timeindex": builder.timeindex()}
        if any(aborted):
            files["txnindex"] = b"".join(aborted)
        fault = scan.faults[0] if scan.faults else None
        size = scan.size if scan.torn_at < 0 else scan.torn_at
        return Rebuilt(size if fault is None else fault.position or 0, fault, sound_behind, files)

    def _add_epochs(self, headers: Headers) -> None:
        """Add the leader epochs that are greater than all before them."""
        epochs = np.where(headers["magic"] >= 2, headers["partition_leader_epoch"], -1).astype(np.int64)
        largest = np.maximum.accumulate(np.concatenate(([self.epochs[-1][0] if self.epochs else -1], epochs)))
        new = headers[largest[1:] > largest[:-1]]
        self.epochs += zip(new["partition_leader_epoch"].tolist(), new["base_offset"].tolist(), strict=True)

    def _leave_gap(self, offset: int) -> None:
        self.is_complete &= offset == self.next_offset
        self.next_offset = max(self.next_offset, offset)

    def _add(self, headers: Headers) -> bytes:
        """Process sound headers; return entries for ``.txnindex``."""
        last = last_offsets(headers)
        expected = np.concatenate(([self.next_offset], last[:-1] + 1))
        has_all = (headers["base_offset"] == expected) & (headers["records_count"] > headers["last_offset_delta"])
        self.is_complete &= bool((has_all | (headers["magic"] < 2)).all())
        self.next_offset = int(last[-1]) + 1
        self.has_producer_ids |= bool((headers["magic"] >= 2).any())
        self._producers.add(headers)
        return aborted_entries(self._transactions.add(headers), self._transactions.open)


def aborted_entries(ended: Transactions, still_open: Transactions) -> bytes:
    """Return an entry of ``.txnindex`` for each aborted transaction that has data."""
    chosen: npt.NDArray[np.bool_] = (ended["state"] == ABORTED) & (ended["first_offset"] != NONE)
    entries = np.zeros(int(chosen.sum()), ENTRY_TYPES["txnindex"])
    if len(entries):
        entries["producer_id"] = ended["producer_id"][chosen]
        entries["offset"] = ended["first_offset"][chosen]
        entries["last_offset"] = ended["marker_offset"][chosen]
        entries["lso"] = last_stable_offsets(ended, still_open)[chosen]
    return entries.tobytes()
