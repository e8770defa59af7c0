"""A cluster whose logs tests write batch by batch, and the findings of an audit over them."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

import kraftlog
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding
from kraftlog.read.log_pass import Pass

BEGIN = 1_700_000_000_000
SECOND, MINUTE, DAY = 1_000, 60_000, 86_400_000
OFFSETS, STATE = "__consumer_offsets-0", "__transaction_state-0"
Check = Callable[[Evidence], Iterator[Finding]]


def findings_of(check: Check, *directories: Path) -> list[Finding]:
    """Return the findings of one check over log directories."""
    read = Pass()
    found = list(check(Evidence(kraftlog.open(list(directories)).found, read, BEGIN)))
    assert read.faults == []
    return found


class SmallCluster:
    """A log directory to which batches are added; each method returns the offset of its batch.

    Times are milliseconds after ``BEGIN``; without one a batch is a millisecond later than the one before.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now = 0
        self.leader_epoch = 0
        self.ends: dict[str, int] = defaultdict(int)
        self.batches: dict[str, list[bytes]] = defaultdict(list)
        self._starts: dict[str, list[tuple[int, int]]] = defaultdict(list)  # of segments: batch and offset
        self._sequences: dict[tuple[str, int, int], int] = defaultdict(int)

    def found(self, check: Check) -> list[tuple[str, str | None, int | None]]:
        """Write all logs, and return code, topic and offset of each finding."""
        self.write()
        return [(one.code.name, one.topic, one.offset) for one in findings_of(check, self.directory)]

    def write(self) -> Path:
        """Write all logs; returns the directory."""
        for name, batches in self.batches.items():
            folder = self.directory / name
            folder.mkdir(exist_ok=True)
            starts = [*self._starts[name], (len(batches), 0)]
            for (first, base_offset), (end, _) in pairwise([(0, 0), *starts]):
                (folder / f"{base_offset:020d}.log").write_bytes(b"".join(batches[first:end]))
        return self.directory

    def time(self, at: int | None) -> int:
        """Return a time for a batch."""
        self.now = self.now + 1 if at is None else at
        return BEGIN + self.now

    def skip(self, name: str, count: int = 1) -> None:
        """Leave out offsets, as a cleaner does."""
        self.ends[name] += count

    def roll(self, name: str) -> None:
        """Begin a segment."""
        self._starts[name].append((len(self.batches[name]), self.ends[name]))

    def data(
        self,
        name: str,
        producer: int = -1,
        epoch: int = -1,
        *,
        sequence: int | None = None,
        values: tuple[str, ...] | None = None,
        transactional: bool = True,
        at: int | None = None,
    ) -> int:
        """Add records; the sequence follows from that of the producer's batch before."""
        time, key = self.time(at), (name, producer, epoch)
        if sequence is not None:
            self._sequences[key] = sequence
        values = (f"v{self.ends[name]}",) if values is None else values
        rows = pa.table({"value": [value.encode() for value in values], "timestamp_ms": [time] * len(values)})
        stated = {} if producer < 0 else {"base_sequence": self._sequences[key]}
        self._sequences[key] = (self._sequences[key] + len(values)) % 2**31
        return self._add(name, rows, producer, epoch, transactional=transactional and producer >= 0, **stated)

    def _add(
        self, name: str, rows: pa.Table, producer: int, epoch: int, *, transactional: bool, base_sequence: int = -1
    ) -> int:
        offset = self.ends[name]
        batch = kraftlog.encode(
            rows,
            base_offset=offset,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=base_sequence,
            is_transactional=transactional,
            partition_leader_epoch=self.leader_epoch,
        )
        self.batches[name].append(batch.to_pybytes())
        self.ends[name] += rows.num_rows
        return offset

    def marker(
        self, name: str, producer: int, epoch: int, kind: str = "COMMIT", *, coordinator: int = 0, at: int | None = None
    ) -> int:
        """Add a marker."""
        offset = self.ends[name]
        batch = kraftlog.encode_marker(
            kind,
            producer_id=producer,
            producer_epoch=epoch,
            coordinator_epoch=coordinator,
            base_offset=offset,
            partition_leader_epoch=self.leader_epoch,
            timestamp_ms=self.time(at),
        )
        self.batches[name].append(batch.to_pybytes())
        self.ends[name] += 1
        return offset

    def commit(
        self,
        source: str,
        offset: int | None,
        producer: int = -1,
        epoch: int = -1,
        *,
        group: str = "g",
        leader_epoch: int = -1,
        topic_id: bytes | None = None,
        at: int | None = None,
    ) -> int:
        """Add the offset of a group; None is a tombstone."""
        topic, _, partition = source.rpartition("-")
        time = self.time(at)
        key = struct.pack(">h", 1) + _text(group) + _text(topic) + struct.pack(">i", int(partition))
        value = None
        if offset is not None:
            value = struct.pack(">hqi", 3, offset, leader_epoch) + _text("") + struct.pack(">q", time)
        if topic_id is not None:
            value = struct.pack(">hqibq", 4, offset, leader_epoch, 1, time) + bytes([1, 0, 16]) + topic_id
        rows = pa.table(
            {
                "key": pa.array([key], pa.binary()),
                "value": pa.array([value], pa.binary()),
                "timestamp_ms": [time],
            }
        )
        stated = {} if producer < 0 else {"base_sequence": 0}  # as coordinators do
        return self._add(OFFSETS, rows, producer, epoch, transactional=producer >= 0, **stated)

    def state(
        self,
        status: int,
        producer: int,
        epoch: int,
        *names: str,
        start: int = 0,
        version: int = 2,
        name: str = "tx",
        at: int | None = None,
    ) -> int:
        """Add a record of a coordinator; partitions are given by the names of their folders. -1 is a tombstone."""
        time = self.time(at)
        key = struct.pack(">h", 0) + _text(name)
        value = struct.pack(">hqhib", 1, producer, epoch, MINUTE, status) + bytes([len(names) + 1])
        for one in names:
            topic, _, partition = one.rpartition("-")
            value += bytes([len(topic) + 1]) + topic.encode() + struct.pack(">bib", 2, int(partition), 0)
        value += struct.pack(">qq", time, BEGIN + start) + struct.pack(">bbbh", 1, 2, 2, version)
        rows = pa.table(
            {"key": [key], "value": pa.array([None if status < 0 else value], pa.binary()), "timestamp_ms": [time]}
        )
        return self._add(STATE, rows, -1, -1, transactional=False)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
