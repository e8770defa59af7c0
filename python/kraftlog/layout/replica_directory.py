"""The location of replicas: the log directory or remote tier that contains the folder of a partition."""

from __future__ import annotations

from kraftlog.disk.remote_path import LogPath
from kraftlog.layout.names import parse_partition_folder, printable
from kraftlog.layout.segment import Segment
from kraftlog.layout.tier.object_names import parse_folder
from kraftlog.layout.unread import Unread


def folder_of(segment: Segment) -> LogPath:
    """Return the folder of a segment's file, which may be in a remote tier."""
    return segment.path.absolute().parent if segment.stored else segment.folder.absolute()


def directory_of(segment: Segment) -> LogPath:
    """Return the log directory or remote tier with the folder of a segment's partition."""
    return _above(folder_of(segment))


def _above(folder: LogPath) -> LogPath:
    stored = None if parse_partition_folder(folder.name) else parse_folder(folder)
    return folder.parent.parent if stored is not None and stored.is_aiven else folder.parent


def replica_of(segment: Segment) -> str | None:
    """Return the column ``replica`` for a segment; None outside of a partition's folder.

    Examples
    --------
    >>> import kraftlog
    >>> from kraftlog.layout.replica_directory import replica_of
    >>> segment = kraftlog.open("tests/golden/codecs/log/codec-lz4-0").found.segments[0]
    >>> replica_of(segment).endswith("tests/golden/codecs/log")
    True
    """
    return None if segment.topic_partition is None else printable(str(directory_of(segment)))


def replica_of_unread(item: Unread) -> str | None:
    """Return the column ``replica`` for a file or folder that is not read."""
    if item.topic is None:
        return None
    path = item.path.absolute()
    is_folder = parse_partition_folder(path.name) is not None or parse_folder(path) is not None
    return printable(str(_above(path if is_folder else path.parent)))
