"""Random histories of a partition: what is left in each of three replicas after elections, clean and unclean ones."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st


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


@st.composite
def replicas(draw: st.DrawFn, compacts: bool = False) -> tuple[Log, Log, Log]:
    """Three replicas after elections, clean and unclean ones, writes, fetches, deletion and compaction."""
    logs = (Log(), Log(), Log())
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
    return logs


def parts_at(one: Log, other: Log) -> int:
    """Return the first offset at which two histories differ, or where the shorter one ends."""
    pairs = zip(one.history, other.history, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(one.end, other.end))
