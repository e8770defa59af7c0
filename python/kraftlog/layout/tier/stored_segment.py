"""A segment in a remote tier."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.checkpoints import read_leader_epochs
from kraftlog.layout.index_files import IndexColumns, read_index
from kraftlog.topics import TopicPartition

Epochs = tuple[tuple[int, int], ...]
"""Leader epochs and the first offset of each, in order."""


@dataclass(frozen=True)
class StoredSegment:
    """A segment in a remote tier, and the paths of its files.

    Attributes
    ----------
    topic, partition, topic_id, segment_id : str, int, str, str
    base_offset, end_offset : int
        First and last offset; no other segment of the same leader has offsets in between.
    epochs : tuple of (epoch, first offset)
        The leader epochs within it.
    event_timestamp_ms : int
        Time of the copy, or -1; orders segments if the tier's metadata is not available.
    size : int
        Bytes of its log file.
    folder : Path or RemotePath
        Its folder.
    file_name : str
        Name of the object with its records.
    files : dict
        The path of each of its files, by kind: ``log``, ``index``, ``timeindex``, ``txnindex``, ``snapshot``.
    leader_epochs : Path or RemotePath or None
        Path of the leader epochs of the whole log up to its end.
    """

    topic: str
    partition: int
    topic_id: str
    segment_id: str
    base_offset: int
    end_offset: int
    epochs: Epochs
    event_timestamp_ms: int
    size: int
    folder: LogPath
    file_name: str
    files: dict[str, LogPath] = field(repr=False)
    leader_epochs: LogPath | None = field(default=None, repr=False)

    @property
    def topic_partition(self) -> TopicPartition:
        """Its partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def path(self) -> LogPath:
        """Path of its log file."""
        return self.files["log"]

    def index_entries(self) -> IndexColumns | None:
        """Return the entries of its ``.index``; None if it is missing, damaged or unreadable."""
        faults: list[Fault] = []
        path = self.files.get("index")
        try:
            entries = None if path is None else read_index(path, "index", self.base_offset, faults)
        except OSError:
            return None
        return None if faults else entries

    def history(self) -> Epochs:
        """Return the leader epochs of the whole log up to its end.

        Raises
        ------
        OSError
            When they cannot be read.
        CorruptRecordError
            When they are not in Kafka's format, or do not match the segment.
        """
        if self.leader_epochs is None:
            return ()
        epochs = tuple(read_leader_epochs(self.leader_epochs))
        for before, entry in pairwise(((-1, -1), *epochs)):
            if entry[0] <= before[0] or entry[1] < max(before[1], 0):
                raise CorruptRecordError(
                    f"{self.leader_epochs.name}: expected leader epochs that rise, found epoch {entry[0]} from offset"
                    f" {entry[1]} after epoch {before[0]} from offset {before[1]}"
                )
        within = epochs_within(epochs, self.base_offset, self.end_offset)
        if self.epochs and _with_records(within) != _with_records(self.epochs):
            expected, there = _shown(self.epochs), _shown(within)
            raise CorruptRecordError(
                f"{self.leader_epochs.name}: expected the leader epochs of the segment, {expected}; found {there}"
            )
        return epochs

    def end_of(self, epoch: int) -> int:
        """Return the last offset of an epoch within the segment."""
        following = [first for number, first in self.epochs if number > epoch]
        return following[0] - 1 if following else self.end_offset


def _with_records(epochs: Epochs) -> dict[int, int]:
    """Return epochs by their first offset; of several that begin at the same offset only the last has records."""
    return {first: epoch for epoch, first in epochs}


def _shown(epochs: Epochs) -> str:
    return ", ".join(f"{epoch} from offset {first}" for epoch, first in epochs) or "none"


def epochs_within(history: Epochs, base_offset: int, end_offset: int) -> Epochs:
    """Return the leader epochs within a segment's offsets, from those of the whole log.

    Examples
    --------
    >>> from kraftlog.layout.tier.stored_segment import epochs_within
    >>> epochs_within(((0, 0), (3, 50), (4, 90), (7, 200)), 60, 120)
    ((3, 60), (4, 90))
    """
    before = [entry for entry in history if entry[1] <= base_offset][-1:]
    inside = [entry for entry in history if base_offset < entry[1] <= end_offset]
    return tuple((epoch, max(first, base_offset)) for epoch, first in (*before, *inside))
