"""Offsets of each partition in the checkpoints of a log directory."""

from __future__ import annotations

from typing import NamedTuple

from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.checkpoints import CLEAN_SHUTDOWN, LOG_START_OFFSETS, RECOVERY_POINTS, read_offset_checkpoint
from kraftlog.layout.listing import Listing
from kraftlog.layout.names import LARGEST_OFFSET, parse_partition_folder, transition_of
from kraftlog.layout.unread import Unread
from kraftlog.topics import CLUSTER_METADATA

_Offsets = dict[tuple[str, int], int]


class CheckpointedOffsets(NamedTuple):
    """The checkpointed offsets of one partition.

    Attributes
    ----------
    log_start_offset : int
        Where the log starts for a consumer; 0 without an entry. A broker writes an entry if the offset is greater than
        the base offset of the first segment, after an admin deleted records. It writes none for a folder that it is
        about to remove, nor for the metadata log.
    settled_offset : int
        Before this offset, index files are on disk as the broker wrote them: the recovery point, or the largest offset
        after a clean shutdown. After it a power failure may have damaged them, and a starting broker rebuilds them
        (``LogLoader.recoverLog``).
    """

    log_start_offset: int = 0
    settled_offset: int = 0


class _Directory(NamedTuple):
    log_starts: _Offsets
    recovery_points: _Offsets
    is_clean: bool


class Checkpoints:
    """The checkpoints of log directories; each is read once, on demand.

    Parameters
    ----------
    listing : Listing
    unread : list of Unread
        Receives checkpoints that cannot be read, which count as empty, as for a broker.
    """

    def __init__(self, listing: Listing, unread: list[Unread]) -> None:
        self._listing = listing
        self._unread = unread
        self._directories: dict[LogPath, _Directory] = {}

    def of(self, directory: LogPath, name: str) -> CheckpointedOffsets:
        """Return the offsets of a partition.

        Parameters
        ----------
        directory : Path or RemotePath
            The log directory.
        name : str
            Name of the partition's folder in it.
        """
        if directory not in self._directories:
            self._directories[directory] = _Directory(
                self._read(directory / LOG_START_OFFSETS),
                self._read(directory / RECOVERY_POINTS),
                self._listing.file(directory / CLEAN_SHUTDOWN) is not None,
            )
        log_starts, recovery_points, is_clean = self._directories[directory]
        if not (log_starts or recovery_points or is_clean):
            return CheckpointedOffsets()
        partition = parse_partition_folder(name)
        if partition is None:
            return CheckpointedOffsets()
        has_start = transition_of(name) is None and partition.topic != CLUSTER_METADATA
        start = max(0, log_starts.get(partition, 0)) if has_start else 0
        return CheckpointedOffsets(start, LARGEST_OFFSET if is_clean else recovery_points.get(partition, 0))

    def of_folder(self, folder: LogPath) -> CheckpointedOffsets:
        """Return the offsets of the partition in a folder."""
        path = folder.absolute()
        return self.of(path.parent, path.name)

    def _read(self, path: LogPath) -> _Offsets:
        try:
            return read_offset_checkpoint(path) if self._listing.may_hold(path) else {}
        except FileNotFoundError:
            return {}
        except CorruptRecordError as error:
            self._unread.append(Unread(path, 0, str(error), error="bad_checkpoint"))
        except OSError as error:
            self._unread.append(Unread(path, 0, str(error.strerror or error), error="unreadable_file"))
        return {}
