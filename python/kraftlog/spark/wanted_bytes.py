"""Which bytes of a segment a micro-batch reads, so that its tasks do not walk through the whole segment again.

A task does not read offsets of later segments either: the log cleaner may merge them into this task's segment before it
is read, and they have their own tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec.header_scan import HeaderScan, ends, within
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import RemotePath
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.ranges import Range
from kraftlog.read.seek import seek
from kraftlog.spark.parts import Part, WholePartition, Work
from kraftlog.types import InputFile


def within_bounds(parts: Iterable[Part], group: list[Segment], options: ReadOptions) -> Iterator[Part]:
    """Return parts cut to the offset bounds; empty parts are left out.

    Parameters
    ----------
    parts : iterable of Part
        Parts of one partition.
    group : list of Segment
        All of its segments, in order.
    options : ReadOptions
        Options with the bounds.
    """
    numbers = {segment.path: number for number, segment in enumerate(group)}
    wanted: dict[int, tuple[int, int]] = {}
    for part in parts:
        work: Work = part.work
        if isinstance(work, Range):
            number = numbers[work.segment.path]
            if number not in wanted:
                wanted[number] = _wanted_bytes(group, number, options)
            begin, end = max(work.start, wanted[number][0]), min(work.end, wanted[number][1])
            work = replace(work, start=begin, end=end) if begin < end else WholePartition(())
            end_offset = min(part.options.end_offset, _following(group, number))
            part = replace(part, options=replace(part.options, end_offset=end_offset))
        if part.faults or work != WholePartition(()):
            yield replace(part, work=work)


def _wanted_bytes(group: list[Segment], number: int, options: ReadOptions) -> tuple[int, int]:
    """Return the bytes [begin, end) of a segment within the bounds; a segment that no bound cuts is not opened.

    Damage between two batches belongs to the second, so that it is reported once. At the end of
    the log it may be a batch that is still being written.
    """
    segment, is_last = group[number], number == len(group) - 1
    following = _following(group, number)
    is_whole = options.start_offset <= (segment.base_offset or 0) and following <= options.end_offset and not is_last
    if is_whole or isinstance(segment.path, RemotePath):  # its index has cut a remote segment
        return 0, NO_BOUND
    try:
        file = disk().open(segment.path, segment.size)
    except FileNotFoundError:
        return 0, NO_BOUND  # the task that reads it reports the deletion
    begin, end = seek(segment, file, options)
    headers, faults = _headers(file, begin, end)
    before = headers[last_offsets(headers) < options.start_offset]
    begin = int(ends(before)[-1]) if len(before) else begin
    if not is_last and any(fault.position is None or fault.position >= begin for fault in faults):
        return begin, end
    inside = within(headers, options)
    return (begin, int(ends(inside)[-1])) if len(inside) else (begin, begin)


def _following(group: list[Segment], number: int) -> int:
    """Return the base offset of the next segment."""
    return NO_BOUND if number == len(group) - 1 else group[number + 1].base_offset or 0


def _headers(file: InputFile, begin: int, end: int) -> tuple[Headers, list[Fault]]:
    """Return the headers as a reader sees them: after damage that requires verifying each CRC."""
    for check_crc in (False, True):
        scan = HeaderScan(file, begin, end, check_crc=check_crc)
        headers = np.concatenate([np.empty(0, HEADER_DTYPE), *scan.headers()])
        if not scan.faults:
            break
    return headers, scan.faults
