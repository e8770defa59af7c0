"""Reading one part: the function that implements the data source, ``read_ranges`` and ``to_parquet``."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from kraftlog import schema
from kraftlog.check.partitions import transaction_faults
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.notes import Notes
from kraftlog.read.log_pass import Pass
from kraftlog.read.ranges import Range
from kraftlog.read.records import read_range
from kraftlog.spark.parts import LOGGER, LeftAlone, Part, WholePartition
from kraftlog.spark.request import Request
from kraftlog.spark.tables import as_spark
from kraftlog.stream import errors_table
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.log import Log
from kraftlog.tables.message_tables import note_bad_messages
from kraftlog.tables.read import Read
from kraftlog.tables.replica_table import PartitionReplicas, rows_of_partition
from kraftlog.tables.stage import Redacted, Stage, through
from kraftlog.tables.table import TaskCut
from kraftlog.tables.typed_rows import Typed
from kraftlog.tables.user_options import catalog_of


def read(request: Request, part: Part, faults: list[Fault], notes: Notes | None = None) -> Iterator[pa.RecordBatch]:
    """Read one part.

    Parameters
    ----------
    request : Request
    part : Part
        A part from ``plan_parts(request)``.
    faults : list of Fault
        Receives what could not be read.
    notes : Notes, optional
        Receives the number of records of aborted transactions that were left out.

    Returns
    -------
    iterator of pyarrow.RecordBatch
        With the columns of ``request.schema``.
    """
    faults += part.faults
    notes = Notes() if notes is None else notes
    if isinstance(part.work, Range):
        return _read_range(request, part, part.work, faults, notes)
    if isinstance(part.work, PartitionReplicas):
        return _read_replicas(request, part, part.work, faults)
    if isinstance(part.work, LeftAlone):
        return _read_left_alone(request, faults)
    return _read_partition(request, part, part.work, faults, notes)


def _read_range(
    request: Request, part: Part, work: Range, faults: list[Fault], notes: Notes
) -> Iterator[pa.RecordBatch]:
    target, cut = request.schema, request.definition.cut
    if cut is TaskCut.RANGES:
        stages: list[Stage] = [] if request.redaction is None else [Redacted(request.redaction)]
        if request.typed is not None:
            stages.append(Typed(request.typed))

        def records(one: Read) -> Iterator[pa.RecordBatch]:
            return read_range(work, one.schema, one)

        read = Read(
            table=request.definition,
            files=Discovery([work.segment]),
            schema=request.record_schema,
            options=part.options,
            faults=faults,
            notes=notes,
        )
        for batch in through(stages, records)(read):
            yield as_spark(batch, target)
    elif cut is TaskCut.CHECKS:
        for _ in read_range(work, schema.RECORDS.select([]), Pass(part.options, faults)):
            pass
        if work.is_first:
            entries = Read.of_segments(TABLES["index_entries"], [work.segment], options=part.options, faults=faults)
            for _ in entries.rows():
                pass
        yield from errors_table(faults, target.names).to_batches()
    else:
        yield from _scan(Log.of_segment(work.segment), request, part, faults, notes)


def _read_partition(
    request: Request, part: Part, work: WholePartition, faults: list[Fault], notes: Notes
) -> Iterator[pa.RecordBatch]:
    segments = list(work.segments)
    if request.definition.cut is TaskCut.CHECKS:
        faults += transaction_faults(segments)
        note_bad_messages(segments, Pass(part.options, faults, catalog=catalog_of(request.definitions)))
        yield from errors_table(faults, request.schema.names).to_batches()
    elif segments:
        found = Discovery(segments=segments, metadata_log=list(work.metadata_log), ends_at_cut=work.ends_at_cut)
        yield from _scan(Log(found, catalog_of(request.definitions)), request, part, faults, notes)


def _read_replicas(
    request: Request, part: Part, work: PartitionReplicas, faults: list[Fault]
) -> Iterator[pa.RecordBatch]:
    rows = rows_of_partition(work, request.schema, Pass(part.options, faults))
    if faults and part.options.strict:
        raise error_from_fault(faults[0])
    yield rows


def _scan(log: Log, request: Request, part: Part, faults: list[Fault], notes: Notes) -> Iterator[pa.RecordBatch]:
    stream = log.scan(request.table, request.columns, part.options)
    yield from stream.batches()
    faults += stream.faults
    notes.add(stream.notes)
    for note in stream.notes if request.definition.cut is TaskCut.WHOLE else ():
        LOGGER.warning("%s", note)


def _read_left_alone(request: Request, faults: list[Fault]) -> Iterator[pa.RecordBatch]:
    """Return files that are not read, for the table errors; renamed ones, for the table segments."""
    log = request.log()
    if request.definition.cut is TaskCut.CHECKS:
        yield from errors_table(log.left_alone(), request.columns).to_batches()
    else:
        aside = Log(Discovery(set_aside=log.found.set_aside))
        stream = aside.scan("segments", request.columns, request.options)
        yield from stream.batches()
        faults += stream.faults
