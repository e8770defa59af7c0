"""Random logs with transactions whose ends lie anywhere, and what a read_committed consumer has to make of them."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import kraftlog
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes
from kraftlog.transactions.producer_state import ProducerStates

START = 1_700_000_000_000
Row = tuple[int, bytes, bytes | None]
"""Offset, key and value of a record."""


@dataclass
class _Producer:
    producer_id: int
    raises_epoch: bool  # at each marker, as since transaction version 2
    epoch: int = 0
    sequence: int = 0
    first_offset: int | None = None  # of its open transaction
    rows: list[Row] = field(default_factory=list)


class RandomLog:
    """A partition's folder of small segments, with the files that a broker writes beside them.

    Parameters
    ----------
    folder : Path
        Which is made.
    seed : int
    steps : int
        Batches and markers.
    start : int
        Timestamp of offset 0, in milliseconds.

    Attributes
    ----------
    last_stable_offset : int
    base_offsets : list of int
        Of the segments.
    """

    def __init__(self, folder: Path, seed: int, steps: int = 80, start: int = START) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self._random = random.Random(seed)
        self._start = start
        self._next = 0
        self._plain: list[Row] = []
        self._committed: list[Row] = []
        self._states = ProducerStates()
        count = self._random.randint(1, 4)
        self._producers = [_Producer(100 + number, self._random.random() < 0.5) for number in range(count)]
        self._keys = self._random.randint(2, 10)
        roll = self._random.choice([0.05, 0.15, 0.3])
        self.base_offsets: list[int] = []
        self._begin()
        for _ in range(steps):
            if self._log and self._random.random() < roll:
                self._close()
                self._begin()
            self._step()
        self._close()

    @property
    def last_stable_offset(self) -> int:
        """Return where the first open transaction begins, or the end of the log."""
        begun = [one.first_offset for one in self._producers if one.first_offset is not None]
        return min(begun, default=self._next)

    def latest(self) -> dict[bytes, bytes]:
        """Return the last value of each key for a read_committed consumer; without keys that ended in a tombstone."""
        return latest([row for row in self._plain + self._committed if row[0] < self.last_stable_offset])

    def _begin(self) -> None:
        self.base_offsets.append(self._next)
        self._log = b""
        self._aborted = b""
        if self._next:
            snapshot = self.folder / f"{self._next:020d}.snapshot"
            snapshot.write_bytes(producer_snapshot_bytes(self._states.states()))

    def _close(self) -> None:
        path = self.folder / f"{self.base_offsets[-1]:020d}.log"
        path.write_bytes(self._log)
        path.with_suffix(".index").write_bytes(b"")
        path.with_suffix(".timeindex").write_bytes(b"")
        if self._aborted:
            path.with_suffix(".txnindex").write_bytes(self._aborted)

    def _step(self) -> None:
        one = self._random.choice(self._producers)
        kind = self._random.random()
        if kind < 0.15:
            self._plain += self._append_data(None, is_transactional=False)
        elif one.first_offset is None or kind < 0.65:
            begins = self._next
            rows = self._append_data(one, is_transactional=True)
            one.rows += rows
            one.first_offset = begins if one.first_offset is None else one.first_offset
        else:
            self._end(one, "COMMIT" if self._random.random() < 0.5 else "ABORT")

    def _append_data(self, one: _Producer | None, *, is_transactional: bool) -> list[Row]:
        rows: list[Row] = []
        for number in range(self._random.randint(1, 4)):
            key = b"k%d" % self._random.randrange(self._keys)
            value = None if self._random.random() < 0.1 else b"v%d" % (self._next + number)
            rows.append((self._next + number, key, value))
        columns = {"key": [row[1] for row in rows], "value": pa.array([row[2] for row in rows], pa.binary())}
        columns["timestamp_ms"] = [self._start + row[0] for row in rows]
        self._append(
            kraftlog.encode(
                pa.table(columns),
                base_offset=self._next,
                producer_id=-1 if one is None else one.producer_id,
                producer_epoch=-1 if one is None else one.epoch,
                base_sequence=-1 if one is None else one.sequence,
                is_transactional=is_transactional,
            ).to_pybytes(),
            len(rows),
        )
        if one is not None:
            one.sequence += len(rows)
        return rows

    def _end(self, one: _Producer, kind: str) -> None:
        if one.raises_epoch:
            one.epoch, one.sequence = one.epoch + 1, 0
        offset, first_offset = self._next, one.first_offset
        marker = kraftlog.encode_marker(
            kind,
            producer_id=one.producer_id,
            producer_epoch=one.epoch,
            base_offset=offset,
            timestamp_ms=self._start + offset,
        )
        self._append(marker.to_pybytes(), 1)
        one.first_offset = None
        if kind == "COMMIT":
            self._committed += one.rows
        else:
            entry = (0, one.producer_id, first_offset, offset, self.last_stable_offset)
            self._aborted += struct.pack(">hqqqq", *entry)
        one.rows = []

    def _append(self, batch: bytes, count: int) -> None:
        self._log += batch
        self._next += count
        for headers in HeaderScan(batch).headers():
            self._states.add(headers)


def latest(rows: list[Row]) -> dict[bytes, bytes]:
    """Return the last value of each key, without keys that ended in a tombstone."""
    found = {key: value for _, key, value in sorted(rows, key=lambda row: row[0])}
    return {key: value for key, value in found.items() if value is not None}
