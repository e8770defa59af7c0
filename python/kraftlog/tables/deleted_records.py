"""The number of records that are hidden because they are before the log start offset of their partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kraftlog._native.scanner import CONTROL_BIT
from kraftlog.codec.header_scan import HeaderScan, within
from kraftlog.codec.headers import last_offsets
from kraftlog.codec.options import NO_BOUND, READ_UNCOMMITTED, ReadOptions
from kraftlog.disk.remote_path import RemotePath
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition
from kraftlog.read.ranges import Range, relevant
from kraftlog.read.records import read_range
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import segment_file
from kraftlog.schema import RECORDS


def notes_of_deleted(segments: list[Segment], options: ReadOptions) -> Iterator[str]:
    """Return a note for each partition with hidden records.

    Parameters
    ----------
    segments : list of Segment
    options : ReadOptions
        Options of the reader; records outside the bounds of offsets are not counted.
    """
    for group in by_partition(segment for segment in segments if segment.log_start_offset):
        start = group[0].log_start_offset
        if options.from_log_start(start) is options:
            continue
        hidden = replace(
            options,
            isolation_level=READ_UNCOMMITTED,
            end_offset=min(start, options.end_offset),
            start_timestamp=-NO_BOUND,
            end_timestamp=NO_BOUND,
            include_deleted=True,
            strict=False,
        )
        if isinstance(group[0].path, RemotePath):  # their headers are not fetched for a number
            first = max(group[0].base_offset or 0, hidden.start_offset)
            count, at_most = max(0, hidden.end_offset - first), "up to "
        else:
            count, at_most = sum(_count(segment, hidden) for segment in relevant(group, hidden)), ""
        if count:
            what = "1 record" if count == 1 else f"{count} records"
            verb, them = ("is", "it") if count == 1 else ("are", "them")
            before = f"{at_most}{what} before the log start offset {start}"
            where = group[0].topic_partition
            yield f"{where}: {before} {verb} not shown; include_deleted shows {them}"


def _count(segment: Segment, options: ReadOptions) -> int:
    """Return the number of records of a segment within the bounds of offsets, from its headers where possible."""
    count = 0
    with segment_file(segment, [], strict=False) as file:
        for headers in HeaderScan(file, *seek(segment, file, options)).headers():
            headers = within(headers, options)
            if not options.include_control:
                headers = headers[(headers["attributes"] & CONTROL_BIT == 0) | (headers["magic"] < 2)]
            is_inside = (headers["base_offset"] >= options.start_offset) & (last_offsets(headers) < options.end_offset)
            is_counted = is_inside & (headers["magic"] >= 2)
            count += int(headers["records_count"][is_counted].clip(min=0).sum(dtype="i8"))
            for position in headers["position"][~is_counted].tolist():
                part = Range(segment, position, position + 1)
                count += sum(batch.num_rows for batch in read_range(part, RECORDS.select(["offset"]), Pass(options)))
    return count
