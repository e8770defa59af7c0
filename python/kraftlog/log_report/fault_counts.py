"""Counts of faults by error, with the first ones of each, and their places in a segment."""

from __future__ import annotations

from dataclasses import dataclass, field

from kraftlog.errors import Fault

EXAMPLES = 5  # examples kept of each error
PLACES = 8  # partitions named for each error
BINS = 480  # bins of a segment's file, each damaged or not
FAULTS_OF_SEGMENT = 12  # faults listed next to its map


@dataclass
class ErrorCount:
    """Counts of one error.

    Attributes
    ----------
    count : int
    size_in_bytes : int
        Unread bytes because of it.
    partitions : dict
        The first partitions that have it, by topic and number, each with its count.
    more_partitions : int
        Number of other partitions.
    examples : list of Fault
        The first ones.
    """

    count: int = 0
    size_in_bytes: int = 0
    partitions: dict[tuple[str | None, int | None], int] = field(default_factory=dict)
    more_partitions: int = 0
    examples: list[Fault] = field(default_factory=list)


class FaultCounts(dict[str, ErrorCount]):
    """Counts by error."""

    @property
    def count(self) -> int:
        """Number of faults."""
        return sum(one.count for one in self.values())

    @property
    def size_in_bytes(self) -> int:
        """Number of unread bytes."""
        return sum(one.size_in_bytes for one in self.values())

    def add(self, fault: Fault) -> None:
        """Count a fault."""
        one = self.setdefault(fault.error, ErrorCount())
        one.count += 1
        one.size_in_bytes += fault.size_in_bytes or 0
        place = fault.topic, fault.partition
        one.partitions[place] = one.partitions.get(place, 0) + 1
        if len(one.examples) < EXAMPLES:
            one.examples.append(fault)

    def join(self, others: FaultCounts) -> None:
        """Add the counts of another partition."""
        for error, other in others.items():
            one = self.setdefault(error, ErrorCount())
            one.count += other.count
            one.size_in_bytes += other.size_in_bytes
            one.more_partitions += other.more_partitions
            one.examples += other.examples[: EXAMPLES - len(one.examples)]
            for place, count in other.partitions.items():
                if place in one.partitions or len(one.partitions) < PLACES:
                    one.partitions[place] = one.partitions.get(place, 0) + count
                else:
                    one.more_partitions += 1


@dataclass
class SegmentDamage:
    """The damaged places of a segment's file.

    Attributes
    ----------
    size : int
        Size of the file.
    count : int
        Count of faults.
    size_in_bytes : int
        Unread bytes.
    faults : list of Fault
        The first ones.
    """

    size: int
    count: int = 0
    size_in_bytes: int = 0
    faults: list[Fault] = field(default_factory=list)
    bins: bytearray = field(default_factory=lambda: bytearray(BINS))

    def add(self, fault: Fault) -> None:
        """Count a fault; mark its place if it has one."""
        self.count += 1
        self.size_in_bytes += fault.size_in_bytes or 0
        if len(self.faults) < FAULTS_OF_SEGMENT:
            self.faults.append(fault)
        if fault.position is not None and self.size:
            first = min(fault.position * BINS // self.size, BINS - 1)
            behind = fault.position + max(fault.size_in_bytes or 0, 1)
            last = max(first + 1, min(-(-behind * BINS // self.size), BINS))
            self.bins[first:last] = b"\1" * (last - first)
        elif fault.error == "unreadable_file" and fault.size_in_bytes == self.size:
            self.bins = bytearray(b"\1" * BINS)

    def stretches(self) -> list[tuple[int, int]]:
        """Return the damaged stretches as first bin and number of bins."""
        found: list[tuple[int, int]] = []
        for at, is_bad in enumerate(self.bins):
            if is_bad and found and found[-1][0] + found[-1][1] == at:
                found[-1] = found[-1][0], found[-1][1] + 1
            elif is_bad:
                found.append((at, 1))
        return found
