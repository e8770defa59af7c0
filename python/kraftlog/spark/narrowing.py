"""Bounds that the filters of a query put on what is planned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

import pyarrow.compute as pc

from kraftlog.codec.options import NO_BOUND, ReadOptions


@dataclass(frozen=True)
class Narrowing:
    """The part of a log that filters can match.

    Attributes
    ----------
    topics : frozenset of str, optional
    partitions : frozenset of int, optional
    start_offset, end_offset : int
        Offsets that count are in [start_offset, end_offset).
    values : tuple of (str, frozenset)
        Columns of a table that one task reads, and the values that pass.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = -NO_BOUND
    end_offset: int = NO_BOUND
    values: tuple[tuple[str, frozenset[str | int]], ...] = ()

    @property
    def filter(self) -> pc.Expression | None:
        """What rows of a table that one task reads have to pass."""
        each = [pc.field(column).isin(list(values)) for column, values in self.values]
        return reduce(and_, each) if each else None

    def wants(self, topic: str | None, partition: int | None) -> bool:
        """Whether a partition can have rows that pass."""
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )

    def within(self, options: ReadOptions) -> ReadOptions:
        """Return options with the intersection of both bounds."""
        start = max(options.start_offset, self.start_offset)
        return replace(options, start_offset=start, end_offset=min(options.end_offset, self.end_offset))


EVERYTHING = Narrowing()
