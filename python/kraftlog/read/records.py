"""Reading ranges of log files: the only function under all tables of records, and its ordered parallel form."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

import pyarrow as pa

from kraftlog.codec.decode import BatchObserver, RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.records import Origin
from kraftlog.disk.disk import ReadableFile, read_in_order
from kraftlog.disk.in_order import streams_in_order
from kraftlog.errors import Fault, RecordError
from kraftlog.layout.segment import Segment
from kraftlog.notes import Notes
from kraftlog.read.log_pass import Pass
from kraftlog.read.opened_ahead import OpenedAhead
from kraftlog.read.ranges import Range, Walk
from kraftlog.read.segment_end import OFFSET_AND_LENGTH, end_fault
from kraftlog.read.segment_reader import located, relocated, segment_file

AHEAD_BYTES = 64 << 20  # of rows that wait for their turn, whatever was compressed


def read_range(
    part: Range,
    arrow_schema: pa.Schema,
    read: Pass,
    observe: BatchObserver | None = None,
    opened: ReadableFile | None = None,
) -> Generator[pa.RecordBatch, None, int]:
    """Decode the records of one range.

    Parameters
    ----------
    part : Range
    arrow_schema : pyarrow.Schema
        Columns of the ``records`` table.
    read : Pass
        Notes are the number of salvaged records, the number of hidden records, and the length of a torn tail.
    observe : callable, optional
        Called with the headers of all batches, including control batches, before their rows are returned.
    opened : ReadableFile, optional
        The file, if it is open. It is closed at the end.

    Returns
    -------
    generator of pyarrow.RecordBatch
        Its return value is the position of the next batch of the segment: usually after the range; before its end if
        the file could not be read.
    """
    options = read.options.from_log_start(part.segment.log_start_offset)
    segment = part.segment
    origin = Origin(segment.topic, segment.partition, part.transactions)
    of_decoder: list[Fault] = []
    position = part.start
    with segment_file(segment, read.faults, strict=options.strict, opened=opened) as file:
        read_in_order(file, part.start, part.end)
        follows = part.undecided is not None
        plan = DecodePlan(arrow_schema, options, origin, every_batch=observe is not None)
        decoder = RecordDecoder(file, part.start, part.end, plan, follows=follows)
        try:
            for batch in decoder.batches(of_decoder, observe):
                yield _in_its_file(batch, segment) if segment.first_byte else batch
                read.advance(decoder.position - position)
                position = decoder.position
            read.advance(min(decoder.position, file.size) - position)  # what has no rows: markers, aborted batches
            position = decoder.position
        except RecordError as error:
            raise relocated(segment, error) from None
        finally:
            read.faults.extend(located(segment, fault) for fault in of_decoder)
        at_end = end_fault(segment, decoder, of_decoder, file, options)
        if at_end is not None:
            read.add(at_end)
        read.notes.extend(notes_of(segment, decoder, file))
        read.notes.aborted_records += decoder.hidden_records
    if part.undecided is not None and decoder.is_undecided:
        for rest in part.undecided(decoder.position):
            position = yield from read_range(rest, arrow_schema, read, observe)
    return position


def read_ranges(parts: Iterable[Range], arrow_schema: pa.Schema, read: Pass) -> Iterator[pa.RecordBatch]:
    """Decode ranges in order; with several workers, threads read ahead by ``AHEAD_BYTES`` of rows.

    Rows of a range that the walk over its segment does not reach are dropped (``Walk``).
    """
    with closing(OpenedAhead(parts, read.workers)) as files:
        if read.workers == 1:
            yield from _one_by_one(files, arrow_schema, read)
        else:
            yield from _by_several(files, arrow_schema, read)


def _one_by_one(files: OpenedAhead, arrow_schema: pa.Schema, read: Pass) -> Iterator[pa.RecordBatch]:
    walk = Walk()
    for part, opened in files:
        if (onward := walk.onward(part)) is not None:
            walk.reached(onward, (yield from read_range(onward, arrow_schema, read, opened=opened)))
        elif opened is not None:
            opened.close()


def _by_several(files: OpenedAhead, arrow_schema: pa.Schema, read: Pass) -> Iterator[pa.RecordBatch]:
    walk = Walk()

    def ahead(each: tuple[Range, ReadableFile | None]) -> Iterator[Range | pa.RecordBatch | _Remarks]:
        part, opened = each
        yield part
        apart = read.apart()
        position = yield from read_range(part, arrow_schema, apart, opened=opened)
        yield _Remarks(part, position, apart.faults, apart.notes)

    is_wanted = True
    results = streams_in_order(ahead, files, read.workers, size_of=_bytes_of, most_bytes=AHEAD_BYTES)
    with closing(results):  # before the files
        for result in results:
            if isinstance(result, Range):
                onward = walk.onward(result)
                is_wanted = onward is result
                if onward is not None and not is_wanted:
                    walk.reached(onward, (yield from read_range(onward, arrow_schema, read)))
            elif not is_wanted:
                continue
            elif isinstance(result, _Remarks):
                walk.reached(result.part, result.position)
                read.faults.extend(result.faults)
                read.notes.add(result.notes)
            else:
                yield result


class _Remarks(NamedTuple):
    """Notes of a range's reader, and the position it reached."""

    part: Range
    position: int
    faults: list[Fault]
    notes: Notes


def _bytes_of(result: Range | pa.RecordBatch | _Remarks) -> int:
    return int(result.nbytes) if isinstance(result, pa.RecordBatch) else 0


def _in_its_file(batch: pa.RecordBatch, part: Segment) -> pa.RecordBatch:
    """Return rows of a part of a file with positions in the file."""
    import pyarrow.compute as pc  # of the few that read a part

    at = batch.schema.get_field_index("position")
    if at < 0:
        return batch
    return batch.set_column(at, batch.schema.field(at), pc.add(batch.column(at), part.first_byte))


def notes_of(segment: Segment, decoder: RecordDecoder, file: ReadableFile) -> Iterator[str]:
    """Return notes on a segment that are not faults."""
    if decoder.salvaged_rows:
        salvaged = f"{decoder.salvaged_rows} records were salvaged from behind damage"
        yield f"{segment.name}: {salvaged}; the column salvaged says which"
    yield from torn_tail_note(segment, decoder.torn_at, file)


def torn_tail_note(segment: Segment, torn_at: int, file: ReadableFile) -> Iterator[str]:
    """Return the start of a torn tail; nothing for -1, which means none."""
    if torn_at >= 0:
        header = file.read(torn_at, min(torn_at + OFFSET_AND_LENGTH, file.size))
        batch_length = int.from_bytes(header[8:], signed=True)
        if batch_length:  # else nothing was written there yet
            bytes_left = file.size - torn_at
            yield (
                f"{segment.name}: {bytes_left} bytes at byte {torn_at + (segment.first_byte or 0)}, the end of the "
                "file, hold no complete batch; "
                "a broker that recovers the log cuts them off, and `kraftlog recover` shows it"
            )
