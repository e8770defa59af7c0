"""Truncates logs: at the end from ``find_log_end``, and to the end before a failed append."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import delete_file, remove_unfinished, set_aside, write_again, write_files
from kraftlog.layout.segment import Segment
from kraftlog.write.active_segment import index_files
from kraftlog.write.log_end import LogEnd
from kraftlog.write.log_files import segment_file


def repair(end: LogEnd) -> None:
    """Truncate a log at its end, and sync the rest to disk.

    Everything after the recovery point is written again: an fsync of it may have failed. The folder can be opened again
    after each step: segments are removed from the last one backwards, so that there is never a hole.
    """
    remove_unfinished(end.folder)
    if end.is_closed:
        for path in _superfluous(end):  # if a crash brings it back, the next opening removes it
            disk().unlink(path)
        return
    for segment in reversed(end.behind):
        _set_aside_segment(segment)
    for checked, segment in zip(end.checked, end.segments[len(end.segments) - len(end.checked) :], strict=True):
        size, start = checked.state.size, 0
        if end.recovery_point is not None:
            is_on_disk = end.recovery_point >= checked.state.next_offset
            start = size if is_on_disk else checked.state.index.position_before(end.recovery_point)
        # in any case: a killed process may have truncated it without a sync
        write_again(segment.local_path, start, size if size < segment.size else None)
        write_files(index_files(end.folder, checked.base_offset, checked.state, checked.txnindex), settles=True)
    for checked in end.checked[1:]:
        if checked.base_offset not in end.snapshots:
            write_files({segment_file(end.folder, checked.base_offset, "snapshot"): checked.snapshot})
    for path in _superfluous(end):
        delete_file(path)


def _set_aside_segment(segment: Segment) -> None:
    set_aside(segment.local_path)
    for path in segment.beside.values():
        set_aside(segment.local_path.with_name(path.name))


def _superfluous(end: LogEnd) -> list[Path]:
    """Return the snapshots after the end, and, as Kafka removes them, those between segments except the newest."""
    base_offsets = {segment.base_offset for segment in end.segments}
    base_offsets.add(max((offset for offset in end.snapshots if offset <= end.next_offset), default=0))
    behind = {segment.base_offset for segment in end.behind}  # already renamed
    return [
        segment_file(end.folder, offset, "snapshot")
        for offset in reversed(end.snapshots)
        if offset not in base_offsets and offset not in behind
    ]


def cut_back(folder: Path, base_offset: int, size: int, started: Sequence[int]) -> str:
    """Undo a failed append; return a sentence with the outcome.

    The segments that it began are removed first, the last one first of all: whatever fails, there is no hole.

    Parameters
    ----------
    folder : Path
        Folder of the partition.
    base_offset, size : int
        Base offset of the segment that was appended to, and its earlier size.
    started : sequence of int
        Base offsets of the segments that the append began.
    """
    path = segment_file(folder, base_offset)
    try:
        take_back(folder, base_offset, size, started)
    except OSError as error:
        return f"{path} could not be cut back to {size} bytes: {error}"
    return f"{path} was cut back to {size} bytes, and nothing more is written to it"


def take_back(folder: Path, base_offset: int, size: int, started: Sequence[int]) -> None:
    """Undo an append as ``cut_back`` does; a second time does nothing.

    Raises
    ------
    OSError
        When the disk refuses it.
    """
    for each in reversed(started):
        with suppress(FileNotFoundError):
            disk().unlink(segment_file(folder, each))
    if started:
        disk().sync_folder(folder)
    path = segment_file(folder, base_offset)
    if base_offset not in started and (size or disk().entry(path) is not None):
        write_again(path, size, size)
