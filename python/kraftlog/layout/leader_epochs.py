"""``leader-epoch-checkpoint``: which leader wrote from which offset on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.layout.small_files import read_leader_epochs

_VERSION = 0


class LeaderEpochs:
    """The epochs of a partition's log, and the file that keeps them.

    Parameters
    ----------
    folder : Path
        Of the partition.
    base_offset : int
        Entries of the file count up to here.
    known : iterable of tuple of int
        Epochs and their first offsets from there on.

    Attributes
    ----------
    is_in_file : bool
        Whether there is such a file.
    """

    def __init__(self, folder: Path, base_offset: int, known: Iterable[tuple[int, int]]) -> None:
        self._path = folder / "leader-epoch-checkpoint"
        self.is_in_file = disk().entry(self._path) is not None
        self._written = read_leader_epochs(self._path) if self.is_in_file else []
        self._entries = dict(entry for entry in self._written if entry[1] < base_offset)
        self.add(known)

    @property
    def last(self) -> int:
        """The largest epoch; -1 when there is none."""
        return max(self._entries, default=-1)

    def add(self, known: Iterable[tuple[int, int]]) -> None:
        """Take epochs that batches have."""
        for epoch, first_offset in known:
            if epoch >= 0:
                self._entries[epoch] = min(first_offset, self._entries.get(epoch, first_offset))

    def assign(self, epoch: int, first_offset: int) -> None:
        """Begin an epoch; one before it that has no records is forgotten, as Kafka does."""
        self._entries = {known: offset for known, offset in self._entries.items() if offset < first_offset}
        self._entries[epoch] = first_offset

    def write(self) -> None:
        """Bring the file up to date; there is none of a log without epochs."""
        entries = sorted(self._entries.items())
        if entries != self._written:
            lines = [f"{_VERSION}", f"{len(entries)}", *(f"{epoch} {offset}" for epoch, offset in entries)]
            write_file(self._path, "".join(f"{line}\n" for line in lines).encode())
            self.is_in_file, self._written = True, entries
