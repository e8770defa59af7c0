"""Reading ranges of log files: the one function under every table of records, and its ordered parallel form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.options import ReadOptions
from kraftlog.codec.records import Origin
from kraftlog.disk.disk import ReadableFile, disk
from kraftlog.disk.in_order import in_order
from kraftlog.errors import Fault, RecordError
from kraftlog.layout.discover import Segment
from kraftlog.read.ranges import Range
from kraftlog.read.segment_reader import Nothing, located, note_unreadable, relocated, segment_file

__all__ = ["Progress", "located", "open_segment", "read_range", "read_ranges", "relocated"]

Progress = Callable[[int], None]

AHEAD = 1  # ranges decoded beyond one for each worker


def open_segment(segment: Segment, faults: list[Fault], *, strict: bool) -> ReadableFile:
    """Open a log file; one that cannot be opened is a fault, and reads as empty. Use ``segment_file`` instead."""
    try:
        return disk().open(segment.path, segment.size)
    except OSError as error:
        note_unreadable(segment, 0, error, faults, strict=strict)
        return Nothing()


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
    segment = part.segment
    origin = Origin(segment.topic, segment.partition, part.transactions)
    found: list[Fault] = []
    with segment_file(segment, faults, strict=options.strict) as file:
        decoder = RecordDecoder(file, part.start, part.end, arrow_schema, options, origin)
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
