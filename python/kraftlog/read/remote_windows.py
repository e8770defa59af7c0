"""A stretch of a remote log file in windows that are in memory, one after the other.

A reader of a window must come to the same batches as a reader of the whole file. Where every batch is sound it needs
nothing behind the last one. At the first that is not it may have to search the rest of the file for the next that is:
then all of it is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftlog.codec.header_scan import HeaderScan, ends, in_chain
from kraftlog.disk.remote_map import RemoteMap
from kraftlog.disk.remote_path import RemotePath
from kraftlog.types import Buffer

WINDOW_BYTES = 32 << 20


def windows(path: RemotePath, start: int, end: int) -> Iterator[tuple[Buffer, int, int]]:
    """Return the batches that start at bytes [start, end) of a log file, in windows.

    Parameters
    ----------
    path : RemotePath
    start, end : int
        A batch begins at ``start``; ``end`` may lie behind the end of the file.

    Returns
    -------
    iterator of tuple
        Memory in which the batches that start at bytes [begin, end) stand at their positions, begin and end. It holds
        them until the next window is asked for.

    Raises
    ------
    OSError
        When the file cannot be opened, or does not come as a whole.
    """
    found = RemoteMap(path)
    end = min(end, found.size)
    fetched, window = start, WINDOW_BYTES
    while start < end:
        stop = min(start + window, end)
        found.fetch(fetched, stop)
        fetched = max(fetched, stop)
        boundary = end if stop == found.size else _sound_until(found.memory, start, stop)
        if boundary is None or (stop == end and boundary != end):
            found.fetch(fetched, found.size)
            boundary = end
        if boundary == start:  # a batch that is larger than the window
            window *= 2
            continue
        yield found.memory, start, boundary
        found.forget(boundary)
        start, window = boundary, WINDOW_BYTES


def _sound_until(memory: Buffer, start: int, end: int) -> int | None:
    """Return where the last batch ends that lies within [start, end); None when one is not sound."""
    boundary = start
    scan = HeaderScan(memoryview(memory)[:end], start, check_crc=True)
    for headers in scan.headers():
        if not ((headers["crc_ok"] == 1) & in_chain(headers, None)).all():
            return None
        boundary = int(ends(headers)[-1])
    return None if scan.faults else boundary
