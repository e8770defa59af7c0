"""Notes of a pass, and what it left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class UnstableOffset(NamedTuple):
    """The offset of a partition at which a read_committed reader stops."""

    topic: str | None
    partition: int | None
    offset: int


class Notes(list[str]):
    """Information for users that is not a fault, and what ``read_committed`` left out.

    Attributes
    ----------
    aborted_records : int
        Records of aborted transactions, within the bounds of offsets.
    unstable_offsets : list of UnstableOffset
        Partitions that were not read to their ends.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        super().__init__(texts)
        self.aborted_records = 0
        self.unstable_offsets: list[UnstableOffset] = []

    def clear(self) -> None:
        """Forget everything: a new pass begins."""
        super().clear()
        self.aborted_records = 0
        self.unstable_offsets.clear()

    def add(self, other: Notes) -> None:
        """Add the notes of another pass."""
        self.extend(other)
        self.aborted_records += other.aborted_records
        self.unstable_offsets += other.unstable_offsets
