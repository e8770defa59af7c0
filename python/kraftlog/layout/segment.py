"""One segment: a log file, and the other files with the same base offset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kraftlog.disk.entries import FileState
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.layout import names
from kraftlog.topics import TopicPartition


@dataclass(frozen=True, slots=True)
class Beside(Mapping[str, LogPath]):
    """Paths of a log file's index and snapshot files, by kind, built on demand."""

    segment: Segment

    def __getitem__(self, kind: str) -> LogPath:
        segment = self.segment
        if kind not in segment.kinds_beside:
            raise KeyError(kind)
        for stored, path in segment.stored:
            if stored == kind:
                return path
        return segment.folder / f"{segment.base_offset:020d}.{kind}{segment.suffix_of(kind)}"

    def __contains__(self, kind: object) -> bool:
        return kind in self.segment.kinds_beside

    def __iter__(self) -> Iterator[str]:
        return iter(self.segment.kinds_beside)

    def __len__(self) -> int:
        return len(self.segment.kinds_beside)


@dataclass(frozen=True, slots=True)
class Segment:
    """A log file with its index and snapshot files, or a snapshot of the metadata log.

    Attributes
    ----------
    folder : Path or RemotePath
        Its folder.
    file_name : str
        Name of the file with the record batches.
    size : int
        Bytes at the time of the listing.
    base_offset : int or None
        From the file name.
    state : str
        "" for a live segment; ``.deleted`` and the like; ``.checkpoint`` for a snapshot.
    kinds_beside : tuple of str
        Which of ``index``, ``timeindex``, ``txnindex`` and ``snapshot`` exist.
    log_start_offset : int
        Log start offset of the partition from ``log-start-offset-checkpoint``; 0 without an entry. A consumer does not
        see the records before it.
    end_offset : int or None
        Where its batches end, of a closed segment: the base offset of the live segment that follows it in its folder.
    settled_offset : int
        Up to this offset, index files are on disk as the broker wrote them: the recovery point, or the largest offset
        after a clean shutdown or in a remote tier. The segment's index files are trusted if its end is not after this
        offset, and its ``.snapshot``, which describes its start, if its base offset is not.
    stored : tuple of (kind, path)
        Paths of its files, the log under the kind ``log``, if they are in a remote tier or another replica.
    first_byte : int or None
        Of a part of a segment, which is read for itself: where in the file it begins. Positions in it count from there,
        and ``base_offset`` is that of its first batch.
    is_cut : bool
        Whether the log was cut at its end (``kraftlog.transactions.cut``): transactions that are open there count as
        aborted, and hold no reader back.
    listed : FileState or None
        What the listing of its folder says of its file; None if that is not known.
    """

    folder: LogPath
    file_name: str
    size: int
    base_offset: int | None
    topic: str | None
    partition: int | None
    state: str = ""
    kinds_beside: tuple[str, ...] = ()
    log_start_offset: int = 0
    end_offset: int | None = None
    settled_offset: int = 0
    stored: tuple[tuple[str, LogPath], ...] = ()
    first_byte: int | None = None
    is_cut: bool = False
    listed: FileState | None = field(default=None, compare=False, repr=False)

    @property
    def file_base_offset(self) -> int | None:
        """The base offset in its file name."""
        parsed = None if self.first_byte is None else names.parse_segment_file(self.file_name)
        return self.base_offset if parsed is None else parsed.base_offset

    @property
    def is_closed(self) -> bool:
        """Whether a live segment follows it in its folder."""
        return self.end_offset is not None

    def is_replaced_by(self, now: Segment | None) -> bool:
        """Whether its files were deleted, cleaned or truncated, as a later listing shows; a broker only appends."""
        return now is None or now.size < self.size or not set(self.kinds_beside) <= set(now.kinds_beside)

    @property
    def path(self) -> LogPath:
        """Path of the file with the record batches."""
        return self.stored[0][1] if self.stored else self.folder / self.file_name

    @property
    def topic_partition(self) -> TopicPartition | None:
        """Its partition; None outside of a partition's folder."""
        if self.topic is None or self.partition is None:
            return None
        return TopicPartition(self.topic, self.partition)

    @property
    def is_swap(self) -> bool:
        """Whether it is a live segment that still has the name ``<base_offset>.log.swap``."""
        return not self.state and self.file_name.endswith(names.SWAP)

    def suffix_of(self, kind: str) -> str:
        """Return the suffix after the kind in a file name; the cleaner replaces no ``.snapshot``."""
        if self.is_swap and kind != "snapshot":
            return names.SWAP
        return "" if self.state == names.REPLACED else self.state

    @property
    def beside(self) -> Mapping[str, LogPath]:
        """Paths of its index and snapshot files, by kind."""
        return Beside(self)

    @property
    def name(self) -> str:
        """Folder and file name, for messages."""
        folder = str(self.topic_partition) if self.stored else self.folder.name
        return names.printable(f"{folder}/{self.file_name}" if folder else self.file_name)

    @property
    def local_path(self) -> Path:
        """The path of a writable file.

        Raises
        ------
        ValueError
            When it is a remote file, or a part of another file.
        """
        path = self.path
        if isinstance(path, RemotePath):
            raise ValueError(f"{path}: expected a local file; others cannot be changed")
        return path
