"""A segment as a remote tier holds it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kraftlog.disk.remote_path import LogPath

Epochs = tuple[tuple[int, int], ...]
"""Leader epochs and the first offset of each, in order."""


@dataclass(frozen=True)
class StoredSegment:
    """A segment in a remote tier, and where its files are.

    Attributes
    ----------
    topic, partition, topic_id, segment_id : str, int, str, str
    base_offset, end_offset : int
        First and last offset; no other segment of the same leader holds any between them.
    epochs : tuple of (epoch, first offset)
        The leader epochs within it.
    event_timestamp_ms : int
        When it was copied, or -1; orders segments where the tier's metadata is not at hand.
    size : int
        Bytes of its log file.
    folder : Path or RemotePath
        Which it is in.
    file_name : str
        Of the object with its records.
    files : dict
        The path of each of its files, by kind: ``log``, ``index``, ``timeindex``, ``txnindex``, ``snapshot``.
    leader_epochs : Path or RemotePath or None
        Where the leader epochs of the whole log up to its end are.
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
    def path(self) -> LogPath:
        """Of its log file."""
        return self.files["log"]

    def end_of(self, epoch: int) -> int:
        """Return the last offset of an epoch within the segment."""
        following = [first for number, first in self.epochs if number > epoch]
        return following[0] - 1 if following else self.end_offset


def epochs_within(history: Epochs, base_offset: int, end_offset: int) -> Epochs:
    """Return the leader epochs that offsets of a segment have, by those of the whole log.

    Examples
    --------
    >>> from kraftlog.layout.tier.stored_segment import epochs_within
    >>> epochs_within(((0, 0), (3, 50), (4, 90), (7, 200)), 60, 120)
    ((3, 60), (4, 90))
    """
    before = [entry for entry in history if entry[1] <= base_offset][-1:]
    inside = [entry for entry in history if base_offset < entry[1] <= end_offset]
    return tuple((epoch, max(first, base_offset)) for epoch, first in (*before, *inside))
