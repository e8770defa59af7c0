"""Replaces segments by a cleaned one, in Kafka's steps: ``.cleaned``, then ``.swap``, then its final name.

A ``.cleaned`` file is unfinished, and removed when the log is opened. A ``.swap`` file is complete and on disk: the
segments that it replaces are removed, now or when the log is opened again. Index files are rebuilt last, and ``.index``
after all others; a closed segment without one shows an interruption there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_files
from kraftlog.layout.names import CLEANED, SWAP, parse_segment_file
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.segment import Segment
from kraftlog.read.index_interval import shown_interval
from kraftlog.write.active_segment import index_files
from kraftlog.write.log_files import segment_file
from kraftlog.write.producers import producers_before
from kraftlog.write.segment_state import read_segment

_BESIDE = ("index", "timeindex", "txnindex", "snapshot")


def write_cleaned(folder: Path, base_offset: int, pieces: Iterable[bytes]) -> Path:
    """Write a cleaned log file and sync it, under its temporary name."""
    path = segment_file(folder, base_offset, f"log{CLEANED}")
    with disk().create(path) as file:
        for piece in pieces:
            if piece:
                file.append(piece)
        file.sync()
    return path


def replace_segments(folder: Path, cleaned: Path, replaced: Sequence[Segment]) -> None:
    """Replace segments by a cleaned log file; the first of them has its base offset."""
    swap = cleaned.with_name(cleaned.name.removesuffix(CLEANED) + SWAP)
    disk().rename(cleaned, swap)
    disk().sync_folder(folder)
    _take_over(folder, replaced[0].base_offset or 0, [segment.base_offset or 0 for segment in replaced[1:]])


def finish_replacing(folder: Path) -> None:
    """Finish an interrupted cleaning when a log is opened."""
    if disk().entry(folder) is None:
        return
    listed = PartitionFolder.of(folder)
    whole = {each.swap.file_name for each in listed.replacements}
    for name in listed.entries:
        parsed = parse_segment_file(name)
        if parsed is not None and parsed.state in (CLEANED, SWAP) and name not in whole:
            disk().unlink(folder / name)  # index files of a broker's cleaner are rebuilt
    for each in listed.replacements:
        base_offset = each.swap.base_offset or 0
        for path in listed.without_log:  # its log file is already removed
            if each.covers(offset := int(path.name[:20])):
                _remove_beside(folder, offset)
        others = (segment.base_offset or 0 for segment in each.replaced)
        _take_over(folder, base_offset, [at for at in others if at != base_offset])
    listed = PartitionFolder.of(folder)
    for segment in listed.segments[:-1]:
        if "index" not in segment.kinds_beside:
            _write_index_files(folder, segment.base_offset or 0)


def remove_segment(folder: Path, base_offset: int) -> None:
    """Remove a segment with its index files, and sync, so that a crash does not bring it back alone."""
    disk().unlink(segment_file(folder, base_offset))
    disk().sync_folder(folder)
    _remove_beside(folder, base_offset)


def _take_over(folder: Path, base_offset: int, others: Iterable[int]) -> None:
    for each in others:  # in order, each for good: what comes back before a gap may have been deleted in the gap
        remove_segment(folder, each)
    for kind in _BESIDE[:-1]:  # the snapshot of producers before the segment stays true
        _unlink(segment_file(folder, base_offset, kind))
    disk().sync_folder(folder)
    disk().rename(segment_file(folder, base_offset, f"log{SWAP}"), segment_file(folder, base_offset))
    disk().sync_folder(folder)
    _write_index_files(folder, base_offset)


def _remove_beside(folder: Path, base_offset: int) -> None:
    for kind in _BESIDE:
        _unlink(segment_file(folder, base_offset, kind))


def _unlink(path: Path) -> None:
    if disk().entry(path) is not None:
        disk().unlink(path)


def _write_index_files(folder: Path, base_offset: int) -> None:
    """Build the index files of a segment from its batches."""
    listed = PartitionFolder.of(folder)
    before = [segment for segment in listed.segments if (segment.base_offset or 0) < base_offset]
    producers = producers_before(folder, before, sorted(listed.producer_snapshots), base_offset)
    aborted: list[bytes] = []
    state = read_segment(
        segment_file(folder, base_offset),
        base_offset,
        shown_interval(listed.segments[-1:]),
        on_headers=lambda headers: aborted.append(producers.add(headers)),
    )
    files = index_files(folder, base_offset, state, b"".join(aborted))
    last = segment_file(folder, base_offset, "index")
    index = files.pop(last)
    write_files(files, settles=True)
    write_files({last: index})  # its presence shows that the others are on disk
