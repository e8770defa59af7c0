"""``LogFiles``: files of one or many partitions, and their tables by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import DamagedLogWarning, Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.messages.catalog import BUILT_IN, Catalog
from kraftlog.notes import Notes
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.read.partitions import Partition, replicas_of
from kraftlog.read.ranges import Range
from kraftlog.stream import Stream, raising
from kraftlog.tables.all_tables import table_named
from kraftlog.tables.lines import Lines
from kraftlog.tables.read import Read
from kraftlog.tables.record_rows import record_ranges
from kraftlog.tables.shown_partitions import as_html, as_text, summary
from kraftlog.tables.stage import Redacted, Stage, through
from kraftlog.tables.table import Replicas, Table
from kraftlog.tables.unread_files import left_alone, not_needed, unreadable
from kraftlog.topics import names

if TYPE_CHECKING:
    from pyarrow.compute import Expression

    from kraftlog.metadata.diff.change_filter import ChangeFilter
    from kraftlog.tables.redaction import Redaction
    from kraftlog.tables.search import Search
    from kraftlog.values.typed_options import ResolvedTypes, TypedOptions


def whole(stream: Stream, table: str, faults: list[Fault] | None, *, stacklevel: int) -> pa.Table:
    """Read a stream for a method that returns a table without faults.

    Parameters
    ----------
    stream : Stream
    table : str
    faults : list of Fault, optional
        Receives the faults of the stream. Without it, a warning is issued.
    stacklevel : int
        Stack level of the warning, as in ``warnings.warn``.
    """
    rows = stream.to_table()
    if faults is not None:
        faults += stream.faults
    elif stream.faults:
        first, count = stream.faults[0].message, len(stream.faults)
        found = first if count == 1 else f"{first} (the first of {count} faults)"
        text = f"{table} may lack rows, or show old ones: {found}; faults=[] receives them"
        warnings.warn(text, DamagedLogWarning, stacklevel=stacklevel)
    return rows


class LogFiles:
    """Log files, and their tables by name."""

    def __init__(self, found: Discovery, catalog: Catalog = BUILT_IN) -> None:
        self.found = found
        self.catalog = catalog
        self._whole: LogFiles | None = None

    @cached_property
    def lines(self) -> Lines:
        """The chosen replica of each partition, for readers of data.

        Raises
        ------
        ValueError
            When the files belong to several clusters, or several topics have the same name.
        """
        return Lines(self.found)

    @classmethod
    def of_segment(cls, segment: Segment) -> Self:
        """Return a log of one segment."""
        return cls(Discovery(segments=[segment]))

    def of_files(self, found: Discovery) -> Self:
        """Return a log of some of the files, with the same message definitions."""
        some = type(self)(found, self.catalog)
        some._whole = self._whole or self
        return some

    def line_files(self, notes: list[str] | None = None, *, heal: bool = True) -> Discovery:
        """Return the files for readers of data: those of lines, and those of other replicas with missing offsets.

        Parameters
        ----------
        notes : list of str, optional
            Receives the offsets and replicas that are used.
        heal : bool
        """
        return self.healed(self.lines.found, ReadOptions(heal=heal), [] if notes is None else notes)

    def healed(self, found: Discovery, options: ReadOptions, notes: list[str]) -> Discovery:
        """Return files of lines with missing offsets from other replicas, unless the options forbid it."""
        lines = (self._whole or self).lines
        if not options.heal:
            return found
        return lines.healed(found, notes, check_crc=options.checks_crc, salvages=options.searches)

    def scan(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
        *,
        workers: int = 1,
        range_bytes: int | None = None,
        on_progress: Progress | None = None,
        where: ChangeFilter | None = None,
        filter: Expression | None = None,
        search: Search | None = None,
        typed: TypedOptions | ResolvedTypes | None = None,
        redaction: Redaction | None = None,
        filters_redacted: bool = False,
        transaction: tuple[int, int] | None = None,
    ) -> Stream:
        """Stream a table by name; the methods named like tables are shortcuts.

        Parameters
        ----------
        table : str
            One of ``kraftlog.tables.all_tables.TABLES``, or a message type such as ``PartitionRecord``.
        columns : sequence of str, optional
            Columns to read; by default those that the table shows.
        options : ReadOptions
        workers : int
            Number of decoding threads; rows and their order do not depend on it.
        range_bytes : int, optional
            Bytes of log per task of a worker.
        on_progress : callable, optional
            Called with the number of log bytes read since the last call.
        where : ChangeFilter, optional
            Selects rows of ``metadata_changes``.
        filter : pyarrow.compute.Expression, optional
            Only rows for which it is true; it applies to decoded keys and values. Partitions, offsets and times of
            records and messages that cannot match are not read.
        search : Search, optional
            Only matching records; only for the table records, and without a filter.
        typed : TypedOptions or ResolvedTypes, optional
            Formats of keys and values; only for ``records``.
        redaction : Redaction, optional
            Redaction of ``records``, before they are decoded; searches apply to the original data.
        filters_redacted : bool
            Whether the filter applies to redacted data, so that filters reveal nothing. With ``typed`` it always does.
        transaction : (int, int), optional
            Only the ``records`` of the transaction with this producer id and epoch.
        """
        if workers < 1:
            raise ValueError(f"workers {workers} is less than 1")
        if search is not None and (table != "records" or filter is not None):
            raise ValueError(
                f"a search is of the table records, without a filter; found table {table}, filter {filter}"
            )
        if redaction is not None and table != "records":
            raise ValueError(f"redaction is of the table records, not of {table}")
        if typed is not None and table != "records":
            raise ValueError(f"keys and values of the table records have formats, not those of {table}")
        if transaction is not None and table != "records":
            raise ValueError(f"records of one transaction are of the table records, not of {table}")
        definition = table_named(table, self.catalog)
        if options.committed_only and not definition.has_records:
            raise ValueError(f"committed_only is of tables whose rows are records, not of {table}")
        wanted = names(columns)
        once = None if wanted is None else list(dict.fromkeys(wanted))
        arrow_schema, types = None, None
        stages: list[Stage] = [] if search is None else [search]
        redacted = [] if redaction is None else [Redacted(redaction)]
        if typed is not None:
            from kraftlog.tables.typed_rows import Typed, typed_table

            types = typed.resolved(self.lines.found, strict=options.strict)
            definition = replace(definition, columns=typed_table(types))
            arrow_schema = types.records(once, strict=options.strict).schema
            stages += [*redacted, Typed(types)]
        elif filters_redacted:
            stages += redacted
        if transaction is not None:
            from kraftlog.tables.transaction_records import OfTransaction
            from kraftlog.transactions.transaction import ProducerIdAndEpoch

            stages.insert(0, OfTransaction(ProducerIdAndEpoch(*transaction), self.found))
        if options.committed_only:
            from kraftlog.tables.committed import CommittedOnly

            stages.insert(0, CommittedOnly((self._whole or self).lines))
        if filter is not None:
            from kraftlog.tables.filtered import Filtered

            stages.append(Filtered(filter, definition))
        if typed is None and not filters_redacted:
            stages += redacted
        if arrow_schema is None:
            arrow_schema = definition.schema.select(once)
        shown = arrow_schema if wanted is None else pa.schema([arrow_schema.field(name) for name in wanted])

        def produce(faults: list[Fault]) -> Iterator[pa.RecordBatch]:
            read = Read(
                table=definition,
                files=self.files_of(definition),
                schema=arrow_schema,
                options=options,
                faults=faults,
                notes=notes,
                catalog=self.catalog,
                workers=workers,
                range_bytes=range_bytes,
                on_progress=on_progress,
                where=where,
                healed=self.healed if definition.replicas is Replicas.LINE else None,
            )
            if definition.replicas is Replicas.EACH:
                notes.extend(self._note_of_replicas(definition, arrow_schema))
            elif definition.replicas is Replicas.COMPARED:
                notes.extend(self.found.notes)
            else:
                notes.extend(self.lines.notes(heals=options.heal))
            if types is not None:
                faults.extend(types.faults)
            rows = through(stages, Read.rows)(read)
            if len(shown) > len(arrow_schema):  # a column that is asked for twice is read once
                rows = (batch.select(shown.names) for batch in rows)
            return raising(rows, faults) if options.strict else rows

        notes = Notes()
        return Stream(shown, produce, notes=notes, is_of_faults=definition.is_of_faults)

    def files_of(self, table: Table) -> Discovery:
        """Return the files from which a table is built."""
        return self.lines.found if table.replicas is Replicas.LINE else self.found

    def _stream(
        self, table: str, columns: Sequence[str] | None, given: Mapping[str, object], *, workers: int = 1, **how: Any
    ) -> Stream:
        """Stream a table for options given by users."""
        options = table_named(table, self.catalog).read_options(given)
        return self.scan(table, columns, options, workers=workers, **how)

    @property
    def _has_several_folders(self) -> bool:
        """Whether a partition has more than one folder; a quick check for the usual case."""
        folders = {(segment.topic, segment.partition, segment.folder) for segment in self.found.segments}
        return len({folder[:2] for folder in folders}) < len(folders)

    def _note_of_replicas(self, table: Table, arrow_schema: pa.Schema) -> Iterator[str]:
        """Return a note that rows of several replicas follow each other without a column that names the replica."""
        if "replica" in table.schema.on_request and "replica" not in arrow_schema.names and self._has_several_folders:
            count = sum(len(replicas) > 1 for replicas in replicas_of(self.found.segments))
            if count:
                of = "1 partition has" if count == 1 else f"{count} partitions have"
                yield f"{of} several replicas, and each is shown; the column replica says which one a row is of"

    def _table(
        self, table: str, columns: Sequence[str] | None, given: Mapping[str, object], faults: list[Fault] | None
    ) -> pa.Table:
        return whole(self._stream(table, columns, given), table, faults, stacklevel=4)

    def ranges(self, columns: Sequence[str], read: Pass) -> Iterator[Range]:
        """Return the byte ranges with the requested records; each starts at a batch boundary."""
        return record_ranges(self.lines.found, columns, read)

    @property
    def topics(self) -> list[str]:
        """The names of the topics, sorted.

        Examples
        --------
        >>> import kraftlog
        >>> kraftlog.open("tests/golden/transactions/log").topics
        ['__consumer_offsets', '__transaction_state', 'orders']
        """
        return sorted({segment.topic for segment in self.found.segments if segment.topic is not None})

    @property
    def partitions(self) -> list[Partition]:
        """The partitions, by topic and number: their segments, sizes, and first and last offsets.

        For partitions with several replicas, these are the values of the chosen replica.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> [(each.topic, each.partition, each.start_offset, each.end_offset) for each in log.partitions]
        [('orders', 0, 0, 130), ('orders', 1, 0, 69), ('orders', 2, 0, 38)]
        """
        return self.lines.partitions

    @property
    def _shown(self) -> list[Partition]:
        """The partitions, shown also if the identities of the files are contradictory."""
        return [Partition(replicas) for replicas in replicas_of(self.found.segments)]

    def __repr__(self) -> str:
        partitions = self._shown
        return f"<kraftlog.Log: {summary(partitions)}>\n{as_text(partitions)}"

    def _repr_html_(self) -> str:
        partitions = self._shown
        return f"<p>kraftlog.Log: {summary(partitions)}</p>{as_html(partitions)}"

    @property
    def size_in_bytes(self) -> int:
        """Size of all log files when they were listed, in bytes."""
        return sum(segment.size for segment in self.found.segments)

    @property
    def folders(self) -> set[LogPath]:
        """The folders of the segments."""
        return {segment.folder for segment in [*self.found.segments, *self.found.set_aside]}

    @property
    def segments_count(self) -> int:
        """The number of live segments."""
        return len(self.found.segments)

    def unreadable(self) -> list[Fault]:
        """Return the folders that could not be listed."""
        return unreadable(self.found)

    def not_needed(self) -> list[Fault]:
        """Return the unused objects of a remote tier: orphans and duplicates."""
        return not_needed(self.found)

    def left_alone(self) -> list[Fault]:
        """Return the ignored files and folders, as rows of the ``errors`` table with error ``not_read``."""
        return left_alone(self.found)
