"""Reading ranges of log files: the one function under every door, and its ordered parallel form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.options import ReadOptions
from kraftlog.codec.records import Origin
from kraftlog.disk.in_order import in_order
from kraftlog.disk.mapping import map_file
from kraftlog.disk.remote_path import RemotePath
from kraftlog.errors import CorruptRecordError, Fault, RecordError
from kraftlog.layout.discover import Segment
from kraftlog.read.ranges import Range
from kraftlog.read.remote_windows import windows
from kraftlog.types import Buffer

Progress = Callable[[int], None]

AHEAD = 1  # ranges decoded beyond one for each worker


def open_segment(segment: Segment, faults: list[Fault], *, strict: bool) -> Buffer:
    """Map a log file; one that cannot be opened is a fault, and reads as empty."""
    try:
        return map_file(segment.path)
    except OSError as error:
        _note_unreadable(segment, segment.size, error, faults, strict=strict)
        return b""


def _note_unreadable(segment: Segment, size: int, error: OSError, faults: list[Fault], *, strict: bool) -> None:
    fault = located(segment, Fault("unreadable_file", str(error.strerror or error), size_in_bytes=size))
    if strict:
        raise CorruptRecordError(fault.message, fault) from error
    faults.append(fault)


def located(segment: Segment, fault: Fault) -> Fault:
    """Say in which file a fault was found."""
    return fault.located(segment.name, segment.topic, segment.partition, segment.base_offset)


def relocated(segment: Segment, error: RecordError) -> RecordError:
    """Say in which file an error was found."""
    if error.fault is None:
        return error
    fault = located(segment, error.fault)
    return type(error)(fault.message, fault)


def read_range(
    part: Range,
    arrow_schema: pa.Schema,
    options: ReadOptions,
    faults: list[Fault],
    on_progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Decode the records of one range.

    Parameters
    ----------
    part : Range
    arrow_schema : pyarrow.Schema
        Columns of the ``records`` table.
    options : ReadOptions
    faults : list of Fault
        Receives what could not be read.
    on_progress : callable, optional
        Is called with the bytes of log that were read since the last call.
    """
    for window, buffer in _in_memory(part, faults, strict=options.strict):
        yield from _read_window(window, buffer, arrow_schema, options, faults, on_progress)


def _in_memory(part: Range, faults: list[Fault], *, strict: bool) -> Iterator[tuple[Range, Buffer]]:
    """Return a range and the buffer that has it; of a remote one windows, one after the other."""
    segment, position = part.segment, part.start
    if part.buffer is not None:
        yield part, part.buffer
    elif isinstance(segment.path, RemotePath):
        try:
            for buffer, start, end in windows(segment.path, part.start, part.end):
                yield replace(part, start=start, end=end), buffer
                position = end
        except OSError as error:
            _note_unreadable(segment, min(part.end, segment.size) - position, error, faults, strict=strict)
    else:
        yield part, open_segment(segment, faults, strict=strict)


def _read_window(
    part: Range,
    buffer: Buffer,
    arrow_schema: pa.Schema,
    options: ReadOptions,
    faults: list[Fault],
    on_progress: Progress | None,
) -> Iterator[pa.RecordBatch]:
    segment = part.segment
    origin = Origin(segment.topic, segment.partition, part.transactions)
    found: list[Fault] = []
    decoder = RecordDecoder(buffer, part.start, part.end, arrow_schema, options, origin)
    done = part.start
    try:
        for batch in decoder.batches(found):
            yield batch
            if on_progress:
                on_progress(decoder.position - done)
                done = decoder.position
    except RecordError as error:
        raise relocated(segment, error) from None
    finally:
        faults.extend(located(segment, fault) for fault in found)


def read_ranges(
    parts: Iterable[Range],
    arrow_schema: pa.Schema,
    options: ReadOptions,
    faults: list[Fault],
    workers: int,
    on_progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Decode ranges in order, with ``workers`` threads that run ahead by a bounded number of ranges."""
    if workers == 1:
        for part in parts:
            yield from read_range(part, arrow_schema, options, faults, on_progress)
        return

    def whole(part: Range) -> tuple[list[pa.RecordBatch], list[Fault]]:
        found: list[Fault] = []
        return list(read_range(part, arrow_schema, options, found, on_progress)), found

    for batches, found in in_order(whole, parts, workers, ahead=AHEAD):
        faults.extend(found)
        yield from batches
