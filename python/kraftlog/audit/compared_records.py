"""The records of two partitions against each other, in memory that does not depend on their number.

Copies have the same offsets: their records are compared side by side. A mirror has the same contents at other offsets:
contents are divided by their hashes into buckets that fit into memory, and the pairs of both by offsets of the mirror.
The order within keys is only compared for keys of records that come late: if none does, no key needs memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog.audit.contents import CONTENT
from kraftlog.disk.spilled_rows import ROWS_IN_MEMORY, Rows, SpilledRows

Offsets = npt.NDArray[np.int64]

_MOST_LATE_KEYS = 1 << 18  # whose order is compared in one pass
_NO_ROWS = np.empty(0, CONTENT)
_DISTINCT = np.dtype([*CONTENT.descr, ("last_offset", "i8"), ("count", "i8")])
_PAIR = np.dtype([("key", "u8"), ("offset", "i8"), ("mirror_offset", "i8")])


@dataclass
class SomeRecords:
    """How many records there are of a kind, and the first and the last offset of them.

    Attributes
    ----------
    count : int
    first, last : int
        -1 without any.
    """

    count: int = 0
    first: int = -1
    last: int = -1

    def add(self, offsets: Offsets) -> None:
        """Add records."""
        if len(offsets):
            self.include(SomeRecords(len(offsets), int(offsets.min()), int(offsets.max())))

    def include(self, other: SomeRecords) -> None:
        """Add other records of this kind."""
        if other.count:
            self.first = min(self.first, other.first) if self.count else other.first
            self.last = max(self.last, other.last)
            self.count += other.count

    def __str__(self) -> str:
        return "1 record" if self.count == 1 else f"{self.count} records"

    @property
    def with_offsets(self) -> str:
        """Their number, and where they are."""
        at = f"at offset {self.first}" if self.count == 1 else f"between offset {self.first} and {self.last}"
        return f"{self} {at}"


@dataclass
class Alone:
    """Committed records that only one of two copies has.

    Attributes
    ----------
    between, after : SomeRecords
        Before the last record of the other copy, and after it.
    """

    between: SomeRecords = field(default_factory=SomeRecords)
    after: SomeRecords = field(default_factory=SomeRecords)

    def add(self, rows: Rows, others: Rows, start_offset: int) -> None:
        """Take the next records of the copy, and those that the other one has at the same offsets."""
        if len(others):
            self.between.include(self.after)
            self.after = SomeRecords()
        offsets = rows["offset"][rows["is_committed"] & (rows["offset"] >= start_offset)]
        offsets = offsets[~_is_among(offsets, others["offset"])]
        is_between = offsets < others["offset"].max(initial=-1)
        self.between.add(offsets[is_between])
        self.after.add(offsets[~is_between])


@dataclass
class CopyComparison:
    """A partition and its copy, at the same offsets.

    Attributes
    ----------
    differing : SomeRecords
        Those with other contents.
    own, other : Alone
        Those that only one of them has.
    """

    differing: SomeRecords = field(default_factory=SomeRecords)
    own: Alone = field(default_factory=Alone)
    other: Alone = field(default_factory=Alone)

    @classmethod
    def of(cls, own: Iterator[Rows], other: Iterator[Rows], start_offset: int) -> CopyComparison:
        """Compare contents, which come in the order of their offsets; before the start each may lack some."""
        compared = cls()
        for rows, others in _side_by_side(own, other):
            _, at, at_other = np.intersect1d(rows["offset"], others["offset"], assume_unique=True, return_indices=True)
            compared.differing.add(rows["offset"][at][rows["hash"][at] != others["hash"][at_other]])
            compared.own.add(rows, others, start_offset)
            compared.other.add(others, rows, start_offset)
        return compared


def _side_by_side(own: Iterator[Rows], other: Iterator[Rows]) -> Iterator[tuple[Rows, Rows]]:
    """Return the rows of both, piece by piece: no offset of a piece is in another one."""
    left, right = next(own, None), next(other, None)
    while left is not None and right is not None:
        until = min(left["offset"][-1], right["offset"][-1])
        at, at_other = (int(np.searchsorted(rows["offset"], until, side="right")) for rows in (left, right))
        yield left[:at], right[:at_other]
        left = left[at:] if at < len(left) else next(own, None)
        right = right[at_other:] if at_other < len(right) else next(other, None)
    while left is not None:
        yield left, _NO_ROWS
        left = next(own, None)
    while right is not None:
        yield _NO_ROWS, right
        right = next(other, None)


class OutOfOrder(NamedTuple):
    """A record of a mirror that comes before an earlier one of its key.

    Attributes
    ----------
    offset, mirror_offset : int
    following, following_mirror_offset : int
        Of the earlier record.
    """

    offset: int
    mirror_offset: int
    following: int
    following_mirror_offset: int


class MirrorComparison:
    """The contents of a partition and of its mirror.

    Only committed records count whose content no other record of the partition has; they are compared with the first
    record of the mirror that has it.

    Parameters
    ----------
    own, other : iterable of Rows
        Contents, in the order of their offsets.
    records_count : int
        Of the larger one, or more.
    translations : sequence of (int, int)
        Offsets of both: ``skipped`` has, for each, the records from the first one on that the mirror has only before
        the second one.

    Attributes
    ----------
    offsets, mirror_offsets : SomeRecords
        Of the records that both have.
    """

    def __init__(
        self,
        own: Iterable[Rows],
        other: Iterable[Rows],
        records_count: int,
        translations: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._buckets_count = records_count // ROWS_IN_MEMORY + 1
        self._translations = translations
        self._hashes: dict[tuple[int, int], int] = {}  # by side and offset
        self._bounds: list[int] = []  # of the mirror's offsets, between which pairs fit into memory
        self._own, self._other = self._divided(0, own), self._divided(1, self._bounded(other))
        self.offsets, self.mirror_offsets = SomeRecords(), SomeRecords()
        self.skipped = [SomeRecords() for _ in translations]
        self._pairs = SpilledRows(_PAIR, len(self._bounds) + 1)
        for bucket in range(self._buckets_count):
            self._match(*self._distinct(bucket))

    def _divided(self, side: int, pieces: Iterable[Rows]) -> SpilledRows:
        divided = SpilledRows(CONTENT, self._buckets_count)
        wanted = np.array([pair[side] for pair in self._translations], np.int64)
        for rows in pieces:
            divided.add(rows, (rows["hash"] % np.uint64(self._buckets_count)).astype(np.int64))
            chosen = rows[np.isin(rows["offset"], wanted)]
            for offset, of_content in zip(chosen["offset"].tolist(), chosen["hash"].tolist(), strict=True):
                self._hashes[side, offset] = of_content
        return divided

    def _bounded(self, pieces: Iterable[Rows]) -> Iterator[Rows]:
        count = 0
        for rows in pieces:
            if count >= ROWS_IN_MEMORY:
                self._bounds.append(int(rows["offset"][0]))
                count = 0
            count += len(rows)
            yield rows

    def _distinct(self, bucket: int) -> tuple[Rows, Rows]:
        """Return the contents of a bucket that may be compared, and those of the mirror, each once."""
        own, other = (_each_once(divided.pieces(bucket)) for divided in (self._own, self._other))
        return own, other

    def _match(self, own: Rows, other: Rows) -> None:
        own = own[(own["count"] == 1) & own["is_committed"]]
        _, at, at_other = np.intersect1d(own["hash"], other["hash"], assume_unique=True, return_indices=True)
        pairs = np.empty(len(at), _PAIR)
        for name in ("key", "offset"):
            pairs[name] = own[name][at]
        pairs["mirror_offset"] = other["offset"][at_other]
        self.offsets.add(pairs["offset"])
        self.mirror_offsets.add(pairs["mirror_offset"])
        self._pairs.add(pairs, np.searchsorted(self._bounds, pairs["mirror_offset"], side="right"))
        for (offset, mirror_offset), skipped in zip(self._translations, self.skipped, strict=True):
            is_before = other["last_offset"][at_other] < mirror_offset
            skipped.add(pairs["offset"][(pairs["offset"] >= offset) & is_before])

    def is_of_one_record(self, offset: int, mirror_offset: int) -> bool | None:
        """Return whether the record at an offset of both is the same; None where one of them has none.

        The pair must be one of the translations.
        """
        hashes = self._hashes.get((0, offset)), self._hashes.get((1, mirror_offset))
        return None if None in hashes else hashes[0] == hashes[1]

    def differences(self) -> tuple[SomeRecords, SomeRecords, SomeRecords]:
        """Return the records that the mirror lacks, those that it has beside them, and those after its end.

        The first two are between records that both have. Those that it has beside them have offsets of the mirror.
        """
        missing, added, behind = SomeRecords(), SomeRecords(), SomeRecords()
        if self.offsets.count:
            for bucket in range(self._buckets_count):
                own, other = self._distinct(bucket)
                lacking = own[~_is_among(own["hash"], other["hash"])]
                once = lacking["offset"][(lacking["count"] == 1) & lacking["is_committed"]]
                missing.add(_within(once, self.offsets))
                for rows in self._other.pieces(bucket):
                    added.add(_within(rows["offset"][~_is_among(rows["hash"], own["hash"])], self.mirror_offsets))
                for rows in self._own.pieces(bucket):
                    is_later = rows["is_committed"] & (rows["offset"] > self.offsets.last)
                    behind.add(rows["offset"][is_later & _is_among(rows["hash"], lacking["hash"])])
        return missing, added, behind

    def out_of_order(self) -> OutOfOrder | None:
        """Return the first record of the mirror that follows a later one of its key, with that; None without one."""
        late: list[npt.NDArray[np.uint64]] = []
        greatest, count, until = -1, 0, -1
        for rows in self._pairs_in_order():
            before = np.maximum.accumulate(np.concatenate(([greatest], rows["offset"])))
            greatest = int(before[-1])
            is_late = rows["offset"] < before[:-1]
            if is_late.any():
                late.append(np.unique(rows["key"][is_late]))
                count += len(late[-1])
                until = int(rows["mirror_offset"][is_late][-1])
            if count >= _MOST_LATE_KEYS:
                found = self._out_of_order(np.unique(np.concatenate(late)), until)
                if found is not None:
                    return found
                late, count = [], 0
        return self._out_of_order(np.unique(np.concatenate(late)), until) if late else None

    def _out_of_order(self, keys: npt.NDArray[np.uint64], until: int) -> OutOfOrder | None:
        """Return the same, of some keys."""
        last = np.empty(0, _PAIR)  # of each key
        for rows in self._pairs_in_order():
            chosen = rows[_is_among(rows["key"], keys) & (rows["mirror_offset"] <= until)]
            both = np.concatenate((last, chosen))
            both = both[np.argsort(both["key"], kind="stable")]  # within a key, in the order of the mirror
            is_same = both["key"][1:] == both["key"][:-1]
            back = np.flatnonzero(is_same & (np.diff(both["offset"]) < 0))
            if len(back):
                at = back[np.argmin(both["mirror_offset"][back + 1])]
                pairs = [(int(row["offset"]), int(row["mirror_offset"])) for row in both[at : at + 2]]
                return OutOfOrder(*pairs[0], *pairs[1])
            last = both[np.append(~is_same, True)[: len(both)]]
        return None

    def _pairs_in_order(self) -> Iterator[Rows]:
        for bucket in range(self._pairs.buckets_count):
            rows = np.concatenate([np.empty(0, _PAIR), *self._pairs.pieces(bucket)])
            yield rows.take(np.argsort(rows["mirror_offset"]))

    def close(self) -> None:
        """Delete the files."""
        for one in (self._own, self._other, self._pairs):
            one.close()


def _each_once(pieces: Iterable[Rows]) -> Rows:
    """Return each content once: the first record that has it, the last offset, and how many have it."""
    distinct = np.empty(0, _DISTINCT)
    for rows in pieces:
        more = np.empty(len(rows), _DISTINCT)
        for name in CONTENT.names or ():
            more[name] = rows[name]
        more["last_offset"], more["count"] = rows["offset"], 1
        both = np.concatenate((distinct, more)) if len(distinct) else more
        order = np.argsort(both["hash"], kind="stable")
        hashes = both["hash"][order]
        firsts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
        distinct = both.take(order[firsts])  # of rows much faster than an index
        distinct["last_offset"] = both["last_offset"][order[np.append(firsts[1:], len(both)) - 1]]
        distinct["count"] = np.add.reduceat(both["count"][order], firsts)
    return distinct


def _is_among(values: npt.NDArray[Any], others: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values are among others, which are sorted."""
    if not len(others):
        return np.zeros(len(values), bool)
    at = np.searchsorted(others, values).clip(max=len(others) - 1)
    return np.asarray(others[at] == values)


def _within(offsets: Offsets, some: SomeRecords) -> Any:
    return offsets[(offsets >= some.first) & (offsets < some.last)]
