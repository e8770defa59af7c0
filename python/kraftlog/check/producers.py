"""``.txnindex`` and ``.snapshot`` files against the producers and transactions of the log.

If a log lacks records, because its beginning was deleted or it was cleaned, these files may have more information.
After damage nothing is compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.build_index import LARGEST_RELATIVE_OFFSET
from kraftlog.layout.index_files import ENTRY_TYPES, IndexColumns
from kraftlog.layout.producer_snapshot import read_producer_snapshot
from kraftlog.layout.rebuild import aborted_entries
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import producers_before
from kraftlog.transactions.producer import ABORTED, COMMITTED, TransactionFold, opened_before
from kraftlog.transactions.producer_state import ProducerState, ProducerStates

_COMPARED = ("producer_epoch", "last_sequence", "last_offset", "current_transaction_first_offset", "coordinator_epoch")
_Entry = tuple[int, ...]


class ProducerCheck:
    """Goes through the segments of one partition, with a broker's state of its producers.

    Parameters
    ----------
    first : Segment
        The first segment; its snapshot has the producers before it.
    """

    def __init__(self, first: Segment) -> None:
        states = producers_before(first, [])
        opened = [
            (state.producer_id, state.producer_epoch, state.current_transaction_first_offset)
            for state in states or ()
            if state.current_transaction_first_offset is not None
        ]
        self._producers = ProducerStates(states or ())
        self._transactions = TransactionFold(opened_before(opened)) if states is not None else TransactionFold()
        self._next_offset = first.base_offset or 0
        # every record is in the log, or in the snapshot
        self._is_complete = self._next_offset == 0 or states is not None
        self._was_cleaned = False  # the segment
        self._entries: list[bytes] = []
        self._markers: dict[int, tuple[int, int]] = {}  # producer id and type by offset
        self._segment = first
        self.is_over = False

    def begin(self, segment: Segment) -> Iterator[Fault]:
        """Start the next segment."""
        self._segment, self._was_cleaned, self._entries, self._markers = segment, False, [], {}
        base_offset = segment.base_offset or 0
        self._is_complete &= base_offset == self._next_offset  # the cleaner also leaves holes at the ends of segments
        yield from self._compare_snapshot(base_offset)
        self._next_offset = max(self._next_offset, base_offset)

    def add(self, headers: Headers) -> None:
        """Process the next headers."""
        last = last_offsets(headers)
        relative = last - (self._segment.base_offset or 0)
        if self.is_over or relative.min() < 0 or relative.max() > LARGEST_RELATIVE_OFFSET:
            self.is_over = True  # offsets that the segment cannot hold; other checks name them
            return
        expected = np.concatenate(([self._next_offset], last[:-1] + 1))
        has_all = (headers["base_offset"] == expected) & (headers["records_count"] > headers["last_offset_delta"])
        self._was_cleaned |= not (has_all | (headers["magic"] < 2)).all()
        self._is_complete &= not self._was_cleaned
        self._next_offset = int(last[-1]) + 1
        self._producers.add(headers)
        self._entries.append(aborted_entries(self._transactions.add(headers), self._transactions.open))
        markers = headers[(headers["control_type"] == ABORTED) | (headers["control_type"] == COMMITTED)]
        for offset, producer_id, kind in zip(
            *(markers[name].tolist() for name in ("base_offset", "producer_id", "control_type")), strict=True
        ):
            self._markers[offset] = producer_id, kind

    def end(self, columns: IndexColumns | None) -> Iterator[Fault]:
        """Compare the ``.txnindex`` of the segment; None stands for a missing file."""
        expected = np.frombuffer(b"".join(self._entries), ENTRY_TYPES["txnindex"]).tolist()
        if columns is None:
            # a log file that was copied by itself has no index files at all
            if expected and "index" in self._segment.beside and not self._was_cleaned:
                yield Fault("txnindex_mismatch", f"no .txnindex, but {len(expected)} aborted transactions")
            return
        rows = zip(*(columns[name].tolist() for name in ENTRY_TYPES["txnindex"].names or ()), strict=True)
        entries = {_as_of_leader(entry, self._next_offset) for entry in rows}
        name = f"{self._segment.base_offset:020d}.txnindex{self._segment.suffix_of('txnindex')}"
        for what in self._differences(expected, entries):
            yield Fault("txnindex_mismatch", f"{name}: {what}")

    def before_end(self, columns: IndexColumns | None) -> IndexColumns | None:
        """Return the entries of a ``.txnindex`` for transactions that ended in the part of the log that was read."""
        if columns is None:
            return None
        is_read = columns["last_offset"] < self._next_offset
        return {name: column[is_read] for name, column in columns.items()}

    def finish(self) -> Iterator[Fault]:
        """Compare the snapshot of the log's end; a broker that rolls the log there writes it after the new segment."""
        faults = list(self._compare_snapshot(self._next_offset))
        following = self._segment.folder / f"{self._next_offset:020d}.log"
        is_written = bool(faults) and faults[0].error == "bad_snapshot" and disk().entry(following) is not None
        yield from [] if is_written else faults

    def _differences(self, expected: list[_Entry], entries: set[_Entry]) -> Iterator[str]:
        """Return the differences. In a cleaned log, whose rules differ, only a contradiction is a fault.

        If records are missing, these may include the first ones of a transaction, and those of another one that was
        open at its end: first offset and last stable offset of an entry refer to the original log.
        """
        markers = {(producer_id, last_offset) for _, producer_id, _, last_offset, _ in entries}
        for entry in [] if self._was_cleaned else expected:
            if entry not in entries and (self._is_complete or (entry[1], entry[3]) not in markers):
                yield f"no entry for {_described(entry)}"
        for entry in sorted(entries - set(expected)):
            _, producer_id, _, last_offset, _ = entry
            marker = self._markers.get(last_offset)
            if self._is_complete or (marker is not None and marker != (producer_id, ABORTED)):
                yield f"an entry for {_described(entry)}, which the log does not have"

    def _snapshot(self, offset: int) -> LogPath | None:
        """Return the path of the snapshot at an offset; a remote tier has one at the start of a segment."""
        if not self._segment.stored:
            return self._segment.folder / f"{offset:020d}.snapshot"
        return self._segment.beside.get("snapshot") if offset == self._segment.base_offset else None

    def _compare_snapshot(self, offset: int) -> Iterator[Fault]:
        """Compare the snapshot of an offset with the producers of the log up to there.

        Producers that only the log knows may have expired.
        """
        path = self._snapshot(offset)
        if not self._is_complete or path is None or disk().entry(path) is None:
            return
        try:
            of_snapshot = {state.producer_id: state for state in read_producer_snapshot(path)}
        except (OSError, CorruptRecordError) as error:
            yield Fault("bad_snapshot", str(error))
            return
        of_log = {state.producer_id: state for state in self._producers.states()}
        for producer_id, state in sorted(of_snapshot.items()):
            what = _difference(state, of_log.get(producer_id))
            if what:
                yield Fault("snapshot_mismatch", f"{path.name}: producer {producer_id}: {what}")


def _as_of_leader(entry: _Entry, end_offset: int) -> _Entry:
    """Return an entry as a leader writes it, which appends one batch at a time.

    A follower appends several, and takes a transaction that began in them after the marker for one that was open there.
    """
    *others, last_offset, last_stable_offset = entry
    is_later = last_offset < last_stable_offset < end_offset
    return (*others, last_offset, last_offset + 1 if is_later else last_stable_offset)


def _described(entry: _Entry) -> str:
    _, producer_id, first_offset, last_offset, last_stable_offset = entry
    return (
        f"the aborted transaction of producer {producer_id} from offset {first_offset} to {last_offset}"
        f" with last_stable_offset {last_stable_offset}"
    )


def _difference(of_snapshot: ProducerState, of_log: ProducerState | None) -> str:
    if of_log is None:
        return "not in the log"
    return ", ".join(
        f"{name} is {getattr(of_snapshot, name)}; by the log it is {getattr(of_log, name)}"
        for name in _COMPARED
        if getattr(of_snapshot, name) != getattr(of_log, name)
        # a producer that had expired has no marker before it came back
        and not (name == "coordinator_epoch" and of_snapshot.coordinator_epoch < 0)
    )
