"""Replicas of a partition of which each record is known, on disk and in plain Python."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import kraftlog
from replica_histories import Record, replicas

ORDERS = "orders"


class Held:
    """What one folder has: records that are left, which of them are damaged, and where its cleaner has been."""

    def __init__(self, start: int, records: list[Record], damaged: set[int], cleaned: int) -> None:
        self.start, self.records, self.damaged, self.cleaned = start, records, damaged, cleaned

    @property
    def sound(self) -> set[int]:
        return {one.offset for one in self.records} - self.damaged

    @property
    def last_epoch(self) -> int:
        return max((one.epoch for one in self.records), default=-1)

    @property
    def end(self) -> int:
        return max((one.offset + 1 for one in self.records), default=self.start)

    def end_of(self, epoch: int) -> int:
        return min((one.offset for one in self.records if one.epoch > epoch), default=self.end)


def agreed(one: Held, other: Held) -> int | None:
    """Return where two replicas part, as KIP-101 and KIP-279 have it."""
    epochs = [{record.epoch for record in held.records} for held in (one, other)]
    if not epochs[0] or not epochs[1]:
        return None
    if common := epochs[0] & epochs[1]:
        return min(one.end_of(max(common)), other.end_of(max(common)))
    first = max(min(epochs[0]), min(epochs[1]))
    starts = [
        min((record.offset for record in held.records if record.epoch == first), default=-1) for held in (one, other)
    ]
    earlier = one if first not in epochs[0] else other
    return min(max(starts), earlier.end_of(first))


def stretches(offsets: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for offset in sorted(offsets):
        if found and found[-1][1] == offset:
            found[-1] = found[-1][0], offset + 1
        else:
            found.append((offset, offset + 1))
    return found


def batch(record: Record) -> bytes:
    options: dict[str, Any] = {"base_offset": record.offset, "partition_leader_epoch": record.epoch}
    value = pa.table({"value": [f"record {record.number}".encode()]})
    return bytes(kraftlog.encode(value, timestamp_ms=1_700_000_000_000, **options))


def write(directory: Path, held: Held, rolls: int) -> None:
    """Write one record a batch, and some records a segment."""
    folder = directory / f"{ORDERS}-0"
    folder.mkdir(parents=True)
    segments = [held.records[at : at + rolls] for at in range(0, len(held.records), rolls)] or [[]]
    for number, records in enumerate(segments):
        batches = [bytearray(batch(one)) for one in records]
        for one, data in zip(records, batches, strict=True):
            data[-1] ^= one.offset in held.damaged
        base_offset = records[0].offset if number else held.start
        (folder / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
    if held.cleaned:
        (directory / "cleaner-offset-checkpoint").write_text(f"0\n1\n{ORDERS} 0 {held.cleaned}\n")


@st.composite
def damaged_replicas(draw: st.DrawFn) -> list[Held]:
    """Replicas of which some lack records between their first and their last one, or have them damaged."""
    found = []
    for log in draw(replicas()):
        records = log.records
        cleaned = draw(st.integers(0, log.end)) if draw(st.booleans()) else 0
        middle = [one.offset for one in records[1:-1]]
        gone = draw(st.sets(st.sampled_from(middle))) if middle else set()
        left = [one for one in records if one.offset not in gone]
        inner = [one.offset for one in left[:-1]]
        found.append(Held(log.start, left, draw(st.sets(st.sampled_from(inner))) if inner else set(), cleaned))
    return found
