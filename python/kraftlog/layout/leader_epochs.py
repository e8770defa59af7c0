"""``leader-epoch-checkpoint``: leader epochs and the first offset of each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.layout.checkpoints import read_leader_epochs

LEADER_EPOCHS = "leader-epoch-checkpoint"
_VERSION = 0


def leader_epochs_bytes(epochs: Iterable[tuple[int, int]]) -> bytes:
    """Return the ``leader-epoch-checkpoint`` of epochs and their first offsets."""
    rows = [f"{epoch} {offset}" for epoch, offset in epochs]
    return "".join(f"{line}\n" for line in [f"{_VERSION}", f"{len(rows)}", *rows]).encode()


def epochs_after_recovery(
    of_checkpoint: Iterable[tuple[int, int]], of_batches: Iterable[tuple[int, int]], log_start: int, log_end: int
) -> list[tuple[int, int]]:
    """Return the epochs of a log after Kafka's recovery, by the rules of ``LeaderEpochFileCache``.

    Parameters
    ----------
    of_checkpoint : iterable of (epoch, first offset)
        Epochs in the file.
    of_batches : iterable of (epoch, first offset)
        Epochs of the recovered batches.
    log_start, log_end : int
        Epochs that begin at the end or after it are dropped; the epoch of the log start begins there.
    """
    epochs = sorted(of_checkpoint)
    for epoch, offset in of_batches:
        if not epochs or epoch > epochs[-1][0]:
            epochs = [entry for entry in epochs if entry[1] < offset] + [(epoch, offset)]
    epochs = [entry for entry in epochs if entry[1] < log_end]
    before = [entry for entry in epochs if entry[1] <= log_start]
    return ([(before[-1][0], log_start)] if before else []) + epochs[len(before) :]


class LeaderEpochs:
    """The epochs of a partition's log, and the file that keeps them.

    Parameters
    ----------
    folder : Path
        Folder of the partition.
    base_offset : int
        Entries of the file count up to here.
    known : iterable of tuple of int
        Epochs and their first offsets from there on.

    Attributes
    ----------
    is_in_file : bool
        Whether there is such a file.
    """

    def __init__(self, folder: Path, base_offset: int, epochs: Iterable[tuple[int, int]]) -> None:
        self._path = folder / LEADER_EPOCHS
        self.is_in_file = disk().entry(self._path) is not None
        self._in_file = read_leader_epochs(self._path) if self.is_in_file else []
        self._entries = dict(entry for entry in self._in_file if entry[1] < base_offset)
        self.add(epochs)

    @property
    def last(self) -> int:
        """The largest epoch; -1 without epochs."""
        return max(self._entries, default=-1)

    def entries(self) -> list[tuple[int, int]]:
        """Return the epochs and their first offsets, in order."""
        return sorted(self._entries.items())

    def add(self, epochs: Iterable[tuple[int, int]]) -> None:
        """Add epochs of batches."""
        for epoch, first_offset in epochs:
            if epoch >= 0:
                self._entries[epoch] = min(first_offset, self._entries.get(epoch, first_offset))

    def assign(self, epoch: int, first_offset: int) -> None:
        """Begin an epoch; drop a previous one without records, as Kafka does."""
        self._entries = {one: offset for one, offset in self._entries.items() if offset < first_offset}
        self._entries[epoch] = first_offset

    def write(self) -> None:
        """Update the file; a log without epochs has none."""
        entries = self.entries()
        if entries != self._in_file:
            write_file(self._path, leader_epochs_bytes(entries))
            self.is_in_file, self._in_file = True, entries
