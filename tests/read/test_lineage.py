"""Up to where replicas agree, beside a twin of KIP-101 in plain Python that knows each record."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from kraftlog.read.lineage import LeaderEpoch, Lineage, LogEnd, lineage_of, log_end
from kraftlog.read.partitions import by_partition
from kraftlog.read.segment_reader import segment_headers

UNDEFINED = -1


class Record(NamedTuple):
    """A record of a random history; no two have the same number."""

    offset: int
    epoch: int
    number: int


class Log:
    """A replica's log: ``records`` are those that are left of all that were ever written to it, ``history``."""

    def __init__(self) -> None:
        self.history: list[Record] = []
        self.records: list[Record] = []
        self.start = 0

    @property
    def end(self) -> int:
        return len(self.history)

    def append(self, record: Record) -> None:
        self.history.append(record)
        self.records.append(record)

    def truncate(self, offset: int) -> None:
        del self.history[offset:]
        self.records = [one for one in self.records if one.offset < offset]
        self.start = min(self.start, offset)

    def delete(self, offset: int) -> None:
        """Move the log start, as retention does."""
        self.start = max(self.start, min(offset, self.end))
        self.records = [one for one in self.records if one.offset >= self.start]

    @property
    def cache(self) -> list[tuple[int, int]]:
        """Entries of ``LeaderEpochFileCache``, as recovery makes them of the batches that are left."""
        entries: list[tuple[int, int]] = []
        for one in self.records:
            if not entries or one.epoch > entries[-1][0]:
                entries.append((one.epoch, one.offset))
        return entries

    @property
    def lineage(self) -> Lineage:
        epochs, offsets = (np.array([getattr(one, name) for one in self.records], "i8") for name in ("epoch", "offset"))
        return Lineage.of_batches(epochs, offsets, self.end)


def end_offset_for(entries: list[tuple[int, int]], end: int, epoch: int) -> tuple[int, int]:
    """``LeaderEpochFileCache.endOffsetFor``."""
    if not entries or epoch == UNDEFINED:
        return UNDEFINED, UNDEFINED
    if entries[-1][0] == epoch:
        return epoch, end
    higher = [entry for entry in entries if entry[0] > epoch]
    floor = [entry for entry in entries if entry[0] <= epoch]
    if not higher:
        return UNDEFINED, UNDEFINED
    return (floor[-1][0] if floor else epoch), higher[0][1]


def truncated_to(follower: Log, leader: Log) -> int:
    """Return where a follower ends up, by the loop of ``AbstractFetcherThread``, which KIP-279 describes."""
    entries, end, of_leader = follower.cache, follower.end, leader.cache
    while True:
        epoch, leader_end = end_offset_for(of_leader, leader.end, entries[-1][0])
        assert epoch != UNDEFINED
        own_epoch, own_end = end_offset_for(entries, end, epoch)
        if own_epoch in (epoch, UNDEFINED):
            return min(leader_end, own_end if own_epoch == epoch else end, end)
        end = min(own_end, end)
        entries = [entry for entry in entries if entry[1] < end]


@st.composite
def replicas(draw: st.DrawFn, compacts: bool = False) -> tuple[Log, Log]:
    """Two of three replicas after elections, clean and unclean ones, writes, fetches, deletion and compaction."""
    logs = [Log(), Log(), Log()]
    leader, epoch, number = 0, draw(st.integers(0, 2)), 0
    kinds = ["elect", "write", "write", "fetch", "fetch", "delete"] + ["compact"] * compacts
    for _ in range(draw(st.integers(1, 25))):
        kind, which, amount = draw(st.sampled_from(kinds)), draw(st.integers(0, 2)), draw(st.integers(1, 4))
        log = logs[which]
        if kind == "elect":
            leader, epoch = which, epoch + amount
        elif kind == "write":
            for _ in range(amount):
                logs[leader].append(Record(logs[leader].end, epoch, number := number + 1))
        elif kind == "fetch" and which != leader:
            log.truncate(parts_at(log, logs[leader]))
            if log.end < logs[leader].start:  # a follower that is behind the leader's log start begins anew there
                log.history = logs[leader].history[: logs[leader].start]
                log.records, log.start = [], logs[leader].start
            for one in logs[leader].history[log.end :][:amount]:
                if one in logs[leader].records:
                    log.append(one)
                else:
                    log.history.append(one)
        elif kind == "delete":
            log.delete(log.start + amount)
        elif kind == "compact":
            last = log.records[-1:]
            log.records = [one for one in log.records[:-1] if draw(st.booleans())] + last
    return logs[0], logs[1]


def parts_at(one: Log, other: Log) -> int:
    """Return the first offset at which two histories differ, or where the shorter one ends."""
    pairs = zip(one.history, other.history, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(one.end, other.end))


@given(replicas())
def test_agrees_until_is_where_a_follower_truncates(logs: tuple[Log, Log]):
    one, other = logs
    found = one.lineage.agrees_until(other.lineage)
    assert found == other.lineage.agrees_until(one.lineage)
    if not one.records or not other.records:
        assert found is None
        return
    follower, leader = sorted(logs, key=lambda log: (log.lineage.last_epoch, log.end))
    assert found == truncated_to(follower, leader)


@given(replicas())
def test_replicas_hold_the_same_records_before_it_and_others_after_it(logs: tuple[Log, Log]):
    one, other = logs
    found = one.lineage.agrees_until(other.lineage)
    if found is None:
        return
    left, right = ({record.offset: record for record in log.records} for log in logs)
    common = left.keys() & right.keys()
    assert all(left[offset] == right[offset] for offset in common if offset < found)
    assert all(left[offset] != right[offset] for offset in common if offset >= found)
    if one.start <= parts_at(one, other) >= other.start:
        assert found == parts_at(one, other)


@given(replicas(compacts=True))
def test_of_compacted_logs_no_record_before_it_is_another(logs: tuple[Log, Log]):
    one, other = logs
    found = one.lineage.agrees_until(other.lineage)
    if found is None:
        return
    left, right = ({record.offset: record for record in log.records} for log in logs)
    common = left.keys() & right.keys()
    assert all(left[offset] == right[offset] for offset in common if offset < found)
    assert all(left[offset] != right[offset] for offset in common if offset >= found)


def test_an_epoch_that_falls_begins_nothing():
    lineage = Lineage.of_batches(np.array([-1, -1, 3, 2, 3, 5]), np.array([0, 4, 8, 9, 12, 20]), 21)
    assert lineage.epochs == (LeaderEpoch(3, 8), LeaderEpoch(5, 20))
    assert (lineage.end_of(2), lineage.end_of(3), lineage.end_of(5)) == (8, 20, 21)


def test_without_epochs_nothing_tells():
    old, new = Lineage((), 5), Lineage((LeaderEpoch(0, 0),), 5)
    assert old.agrees_until(new) is new.agrees_until(old) is old.agrees_until(old) is None


LOGS = sorted({path.parent for path in GOLDEN.glob("**/log/*-[0-9]*/*.log")})
# within a segment that begins and ends with one epoch, another is not believed
WITH_FALSE_EPOCHS = ("bit_flip_leader_epoch", "garbage_between_batches_plausible_length")


@pytest.mark.parametrize("folder", LOGS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_it_is_that_of_all_headers(folder: Path):
    for group in by_partition(kraftlog.open(folder).found.segments):
        headers = [one for segment in group for one in segment_headers(segment, [])]
        end = log_end(group, [])
        if not headers:
            assert end == LogEnd(-1, group[0].base_offset)
            continue
        epochs, offsets = (
            np.concatenate([one[name] for one in headers]) for name in ("partition_leader_epoch", "base_offset")
        )
        found = lineage_of(group, end, [])
        if folder.parents[1].name in WITH_FALSE_EPOCHS:
            assert found.epochs == (LeaderEpoch(0, 0),)
            continue
        assert found == Lineage.of_batches(epochs, offsets, end.end_offset)
