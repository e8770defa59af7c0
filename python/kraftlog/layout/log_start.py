"""Where the log of each partition starts for a consumer: ``log-start-offset-checkpoint`` of its log directory."""

from __future__ import annotations

from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.checkpoints import LOG_START_OFFSETS, read_offset_checkpoint
from kraftlog.layout.listing import Listing
from kraftlog.layout.names import parse_partition_folder, transition_of
from kraftlog.layout.unread import Unread
from kraftlog.topics import CLUSTER_METADATA


class LogStartOffsets:
    """The log start offsets of partitions; the checkpoint of each log directory is read once, when it is needed.

    A broker writes an offset there when it is larger than the base offset of the partition's first segment: after an
    admin deleted records. It does so for the folders of its partitions, not for one that it is about to remove, and not
    for the metadata log.

    Parameters
    ----------
    listing : Listing
    unread : list of Unread
        Receives checkpoints that cannot be read. As in a broker, the log starts with its first segment then.
    """

    def __init__(self, listing: Listing, unread: list[Unread]) -> None:
        self._listing = listing
        self._unread = unread
        self._known: dict[LogPath, dict[tuple[str, int], int]] = {}

    def of(self, directory: LogPath, name: str) -> int:
        """Return the log start offset of a partition; 0 where the checkpoint says nothing.

        Parameters
        ----------
        directory : Path or RemotePath
            The log directory.
        name : str
            Of the partition's folder in it.
        """
        if directory not in self._known:
            self._known[directory] = self._read(directory)
        offsets = self._known[directory]
        partition = parse_partition_folder(name) if offsets and transition_of(name) is None else None
        return max(0, offsets.get(partition, 0)) if partition is not None and partition[0] != CLUSTER_METADATA else 0

    def of_folder(self, folder: LogPath) -> int:
        """Return the log start offset of the partition in a folder."""
        path = folder.absolute()
        return self.of(path.parent, path.name)

    def _read(self, directory: LogPath) -> dict[tuple[str, int], int]:
        path = directory / LOG_START_OFFSETS
        try:
            return read_offset_checkpoint(path) if self._listing.may_hold(path) else {}
        except FileNotFoundError:
            return {}
        except CorruptRecordError as error:
            self._unread.append(Unread(path, 0, str(error), error="bad_checkpoint"))
        except OSError as error:
            self._unread.append(Unread(path, 0, str(error.strerror or error), error="unreadable_file"))
        return {}
