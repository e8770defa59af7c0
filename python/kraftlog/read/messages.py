"""Reads the records of internal topics and of the metadata log as typed messages, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.in_order import in_order
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.names import printable
from kraftlog.layout.segment import Segment
from kraftlog.messages.arrow_types import UUID_TEXT
from kraftlog.messages.catalog import format_of_topic
from kraftlog.messages.control_format import CONTROL, control_format, read_control
from kraftlog.messages.format_of import METADATA
from kraftlog.messages.reader import MessageReader, Messages
from kraftlog.read.committed_ranges import needs_transactions, ranges_with_transactions
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import is_metadata, topics_of
from kraftlog.read.ranges import Range, plan
from kraftlog.read.records import read_range
from kraftlog.read.segment_reader import located

Made = TypeVar("Made")

BAD_MESSAGE = "bad_message"
_READ = ("key", "value", "offset")


@dataclass(frozen=True)
class TypedChunk:
    """Some records of one segment, in the order of the log.

    Attributes
    ----------
    segment : Segment
    records : pyarrow.RecordBatch
        The requested columns of the ``records`` table, and key, value and offset.
    messages : Messages
        The decoded messages, row by row.
    """

    segment: Segment
    records: pa.RecordBatch
    messages: Messages

    def take_faults(self, faults: list[Fault], *, strict: bool = False) -> None:
        """Add the faults so far, or raise at the first."""
        by_row = dict(self.messages.faults)
        if strict:
            by_row |= {
                row: f"unknown type {self.messages.types[row]}" for row in self.messages.of_unknown_type().tolist()
            }
        for fault in faults_of_messages(self.segment, self.records, by_row):
            if strict:
                raise error_from_fault(fault)
            faults.append(fault)


def faults_of_messages(segment: Segment, records: pa.RecordBatch, by_row: Mapping[int, str]) -> Iterator[Fault]:
    """Return the faults of records with the column offset, by row."""
    offsets = records.column("offset")
    for row in sorted(by_row):
        yield located(segment, Fault(BAD_MESSAGE, f"record at offset {offsets[row]}: {by_row[row]}"))


def format_of(segment: Segment) -> str | None:
    """Return the name of the format of a segment's records; None for a user topic."""
    if segment.topic is not None:
        return format_of_topic(segment.topic)
    return METADATA if is_metadata(segment) else None


def typed_chunks(
    segments: Iterable[Segment],
    columns: Sequence[str],
    read: Pass,
    *,
    uuid: str = UUID_TEXT,
) -> Iterator[TypedChunk]:
    """Read records of internal topics as messages; others are left out.

    Parameters
    ----------
    segments : iterable of Segment
    columns : sequence of str
        Columns of the ``records`` table, in addition to key, value and offset.
    read : Pass
        With ``include_control`` control records are returned as separate chunks, in log order. Faults are those of
        batches and records; the reader of a chunk takes faults of messages from the chunk, after it has read its
        columns. A note is the offset at which a read_committed reader stops.
    uuid : {"text", "binary"}
    """
    segments, options = list(segments), read.options
    readers = {name: MessageReader(one, uuid) for name, one in read.catalog.formats.items()}
    formats = {segment.path: format_of(segment) for segment in segments}
    internal = [segment for segment in segments if formats[segment.path] is not None]
    if formats and not internal:
        read.notes.append(f"no internal topic among {', '.join(topics_of(segments))}")
    names = list(dict.fromkeys([*_READ, *columns, *(["control_type"] if options.include_control else [])]))
    of_control = control_format(read.catalog)
    for part in _parts(internal, names, read):
        reader = readers[formats[part.segment.path] or METADATA]
        for batch in read_range(part, schema.RECORDS.select(names), read):
            for records, is_control in _runs(batch, options):
                if is_control:
                    types, values = records.column("control_type").to_pylist(), records.column("value")
                    messages = read_control(of_control, types, values, uuid)
                else:
                    messages = reader.read(records.column("key"), records.column("value"))
                yield TypedChunk(part.segment, records, messages)


def made_of_chunks(
    make: Callable[[TypedChunk, list[Fault]], Made],
    segments: Iterable[Segment],
    columns: Sequence[str],
    read: Pass,
) -> Iterator[Made]:
    """Return the results of a function for the chunks of ``typed_chunks``, in log order.

    Parameters
    ----------
    make : callable
        Reads a chunk, and adds its faults to a list. With several workers, it is called in threads while the next
        chunks are read.
    segments : iterable of Segment
    columns : sequence of str
    read : Pass
        Receives faults, including those of messages, before the corresponding result is returned. Notes are the offset
        at which a read_committed reader stops, and the number of records of unknown types. Workers are threads in
        addition to the caller's.
    """
    unread: list[Fault] = []  # of the chunks that come next
    unknown = _UnknownTypes()

    def chunks() -> Generator[tuple[TypedChunk, list[Fault]], None, None]:
        for chunk in typed_chunks(segments, columns, replace(read, faults=unread)):
            noted = unread.copy()
            unread.clear()
            yield chunk, noted

    def work(given: tuple[TypedChunk, list[Fault]]) -> tuple[Made, TypedChunk, list[Fault]]:
        chunk, noted = given
        return make(chunk, noted), chunk, noted

    source = chunks()
    try:
        for made, chunk, noted in (
            map(work, source) if read.workers == 1 else in_order(work, source, read.workers, ahead=1)
        ):
            read.faults.extend(noted)
            unknown.count(chunk)
            yield made
    finally:
        source.close()
        read.faults.extend(unread)
    read.notes.extend(unknown.notes)


@dataclass(frozen=True)
class _UnknownTypes:
    """Number of records of unknown types, by partition and type."""

    counts: dict[str, dict[int, int]] = field(default_factory=dict)

    def count(self, chunk: TypedChunk) -> None:
        if chunk.messages.format.name == CONTROL:
            return
        where = printable(f"{chunk.segment.topic}-{chunk.segment.partition}")
        counts = self.counts.setdefault(where, {})
        for api_key, count in chunk.messages.unknown_types.items():
            counts[api_key] = counts.get(api_key, 0) + count

    @property
    def notes(self) -> list[str]:
        return [_note(where, counts) for where, counts in self.counts.items() if counts]


def _parts(segments: list[Segment], columns: Sequence[str], read: Pass) -> Iterator[Range]:
    if needs_transactions(read.options, columns):
        return ranges_with_transactions(segments, columns, replace(read, range_bytes=None), follows=True)
    return plan(segments, read.options, None)


def _runs(batch: pa.RecordBatch, options: ReadOptions) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Split a batch between control records and others."""
    if not options.include_control:
        yield batch, False
        return
    is_control = pc.is_valid(batch.column("control_type")).to_numpy(zero_copy_only=False)
    cuts = [0, *(np.flatnonzero(is_control[1:] != is_control[:-1]) + 1).tolist(), batch.num_rows]
    for begin, end in pairwise(cuts):
        yield batch.slice(begin, end - begin), bool(is_control[begin])


def _note(where: str, counts: dict[int, int]) -> str:
    listed = ", ".join(f"{api_key} ({count})" for api_key, count in sorted(counts.items()))
    return f"{where}: {sum(counts.values())} records of unknown types: {listed}"
