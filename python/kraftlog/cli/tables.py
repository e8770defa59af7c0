"""A command for each table."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import click
import pyarrow as pa

from kraftlog import schema
from kraftlog.cli import options
from kraftlog.cli.empty import why_empty
from kraftlog.cli.output import SENTENCES, Output
from kraftlog.cli.progress import is_terminal, progress_bar
from kraftlog.cli.redact import redaction_of, redacts
from kraftlog.cli.report import report_faults
from kraftlog.cli.typed import TYPED, typed_options
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.layout.discover import Discovery, LogPaths, each_path
from kraftlog.read.partitions import topics_of
from kraftlog.schema.table import PARTITION
from kraftlog.tables.all_tables import TABLES, table_named
from kraftlog.tables.filtered import among
from kraftlog.tables.open_log import NAMES_SHOWN
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.read import missing_topic
from kraftlog.tables.table import Table
from kraftlog.transactions.cut import CutTime

if TYPE_CHECKING:
    from pyarrow.compute import Expression

    from kraftlog.metadata.diff.change_filter import ChangeFilter
    from kraftlog.stream import Stream
    from kraftlog.tables.log import Log
    from kraftlog.tables.redaction import Redaction
    from kraftlog.tables.search import Search
    from kraftlog.values.typed_options import ResolvedTypes, TypedOptions

# of records, as people read them; Python and Spark begin with key and value, as Spark's source of Kafka does
_IN_ORDER = [*PARTITION, "offset", "timestamp", "key", "value", "timestamp_type", "headers"]
_OF_CHANGES = ("kinds", "changed_topics", "brokers")  # options, in the order of a ChangeFilter


def run_table(
    table: str,
    paths: LogPaths,
    output: Output,
    given: dict[str, Any],
    *,
    search: Search | None = None,
    counts: bool = False,
    filter: Expression | None = None,
    each: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> None:
    """Show a table, and exit.

    Parameters
    ----------
    table : str
    paths : as ``kraftlog.open`` takes them
    output : Output
    given : dict
        The other options.
    search : Search, optional
        Only the records that it finds.
    counts : bool
        Show how many rows there are in each partition.
    filter : pyarrow.compute.Expression, optional
        Only rows for which it is true.
    each : callable, optional
        What is made of the rows before they are shown.
    """
    opened = partial(
        open_log,
        paths,
        topics=given.pop("topics", None) or None,
        partitions=given.pop("partitions", None) or None,
        as_topic=given.pop("as_topic", None),
        definitions=given.pop("definitions", None),
    )
    log = opened()
    follows, last = given.pop("follows", False), given.pop("last", None)
    message_type = given.pop("message_type", None)
    if message_type is not None:
        from kraftlog.tables.message_tables import check_type

        table = check_type(message_type, log.catalog)
    definition = table_named(table, log.catalog)
    check_topic(definition, log)
    quiet = given.pop("no_progress")
    output.check(log.folders)
    scan = Scan.of(definition, given)
    rows = scan.options
    if scan.typed is not None and output.path is not None:  # the types are those of the whole file
        scan = replace(scan, typed=scan.typed.sampling_all())
    if table == "records" and scan.typed is None and output.columns is None and not counts:
        output = replace(output, columns=_IN_ORDER)
    if scan.transaction is not None and (follows or last is not None):
        raise click.UsageError(f"{'--follow' if follows else '--last'} and --transaction exclude each other")
    if rows.committed_only and (follows or last is not None):
        raise click.UsageError(f"{'--follow' if follows else '--last'} and --committed-only exclude each other")
    if (follows or last is not None) and any(isinstance(path, CutTime) for path in each_path(paths)):
        raise click.UsageError(f"{'--follow' if follows else '--last'} and --cut exclude each other")
    if follows or last is not None:
        from kraftlog.cli.follow import check_follow, show_followed
        from kraftlog.tables.follow import Follower

        check_follow(output, follows=follows, last=last, counts=counts, has_end=rows.end_offset != NO_BOUND)
        follower = Follower(
            opened,
            table,
            output.columns,
            rows,
            search=search,
            typed=scan.typed,
            redaction=scan.redaction,
            last=last,
            from_end=scan.from_end,
            workers=scan.workers,
        )
        sys.exit(show_followed(follower, output, follows=follows))
    columns = list(PARTITION) if counts else output.columns
    with progress_bar(
        log.size_in_bytes, wanted=not quiet and (output.path is not None or not is_terminal(sys.stdout))
    ) as bar:
        streams = scan.streams(log, columns, on_progress=bar, filter=filter, search=search)
        rows_schema = schema.MATCHES.select(output.columns) if counts else streams[0].schema
        found = [0]
        read = [_noted(stream, found) for stream in streams]
        with output.open(rows_schema) as writer:
            for batch in _counted(log, read, rows_schema) if counts else chain.from_iterable(read):
                writer.write(batch if each is None else each(batch))
                if writer.is_full:
                    break
    for one in read:
        one.close()  # a pass that is left says then what it could not read
    for stream in streams:
        for note in stream.notes:
            print(note, file=sys.stderr)
    faults = [fault for stream in streams for fault in stream.faults]
    is_explained = bool(faults) or any(stream.notes for stream in streams)
    if not (found[0] or is_explained or writer.is_full) and definition.has_records:
        picks = not (search is None and filter is None and scan.transaction is None)
        parts = scan.parts(log)
        print(why_empty(log.partitions, parts[0][1] if parts else rows, picks=picks), file=sys.stderr)
        if search is not None and search.json_paths and scan.redaction is None:
            from kraftlog.tables.near_paths import near_paths

            for sentence in near_paths(search.json_paths, log.lines.found.segments):
                print(sentence, file=sys.stderr)
    code = report_faults(faults)
    sys.exit(code or (1 if search is not None and not found[0] else 0))


@dataclass(frozen=True)
class Scan:
    """How a command reads a table.

    Attributes
    ----------
    table : Table
    options : ReadOptions
    workers : int
    from_end : int or None
        Start so many offsets before the end of each partition.
    typed : TypedOptions or ResolvedTypes or None
    redaction : Redaction or None
    transaction : (int, int) or None
    where : ChangeFilter or None
    """

    table: Table
    options: ReadOptions
    workers: int = 1
    from_end: int | None = None
    typed: TypedOptions | None = None
    redaction: Redaction | None = None
    transaction: tuple[int, int] | None = None
    where: ChangeFilter | None = None

    @classmethod
    def of(cls, table: Table, given: dict[str, Any]) -> Self:
        """Return what the options of a command say; they are taken from ``given``, of which nothing else may be left.

        Raises
        ------
        TypeError
            For an option that the table does not have.
        """
        workers = given.pop("workers")
        typed = typed_options(given) if table.name == "records" else None
        transaction = given.pop("transaction", None)
        redaction = redaction_of(given.pop("rules", ()), given.pop("key_file", None))
        where = _wanted_changes(*(given.pop(name) for name in _OF_CHANGES)) if table.is_of_metadata else None
        from_end = _take_bounds(given)
        return cls(table, table.read_options(given), workers, from_end, typed, redaction, transaction, where)

    def parts(self, log: Log) -> list[tuple[Log, ReadOptions]]:
        """Return the log, or its partitions if each has bounds of its own, with the bounds."""
        return [(log, self.options)] if self.from_end is None else list(_near_the_end(log, self.options, self.from_end))

    def streams(
        self, log: Log, columns: Sequence[str] | None, *, types: ResolvedTypes | None = None, **how: Any
    ) -> list[Stream]:
        """Return the rows of a log; ``types`` replace the types that they would have by themselves."""
        return [
            one.scan(
                self.table.name,
                columns,
                options,
                workers=self.workers,
                typed=self.typed if types is None else types,
                redaction=self.redaction,
                transaction=self.transaction,
                where=self.where,
                **how,
            )
            for one, options in self.parts(log)
        ]


def _noted(batches: Iterable[pa.RecordBatch], rows: list[int]) -> Generator[pa.RecordBatch]:
    """Return batches, and add their rows to the only number of a list."""
    for batch in batches:
        rows[0] += batch.num_rows
        yield batch


def _counted(
    log: Log, streams: Iterable[Iterable[pa.RecordBatch]], arrow_schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Return how many rows there are of each partition of a log."""
    counts = Counter({(one.topic, one.partition): 0 for one in log.partitions})
    for batch in chain.from_iterable(streams):
        of = pa.Table.from_batches([batch]).group_by(batch.schema.names).aggregate([([], "count_all")])
        for topic, partition, count in zip(*(column.to_pylist() for column in of.columns), strict=True):
            counts[topic, partition] += count
    rows = [(*partition, count) for partition, count in counts.items()]
    columns = zip(schema.MATCHES.shown, zip(*rows, strict=True), strict=True)
    table = pa.table({name: list(values) for name, values in columns}, schema=schema.MATCHES.select())
    yield from table.select(arrow_schema.names).to_batches()


def _take_bounds(given: dict[str, Any]) -> int | None:
    """Turn bounds of kcat into those of a reader; returns how many offsets before the end to begin, if they say so."""
    bounds = dict[str, int]()
    for name, value in given.pop("bounds", ()):
        if bounds.setdefault(name, value) != value:
            raise click.UsageError("-o is given twice")
    start = given.get(options.START_OFFSET)
    if start is not None and start < 0:
        if bounds.keys() & {options.START_OFFSET, options.OFFSETS_FROM_END}:
            raise click.UsageError("-o and --start-offset exclude each other")
        bounds[options.OFFSETS_FROM_END], given[options.START_OFFSET] = -start, None
    from_end = bounds.pop(options.OFFSETS_FROM_END, None)
    if from_end is not None and (options.START_OFFSET in bounds or given.get(options.START_OFFSET) is not None):
        raise click.UsageError("-o and another start offset exclude each other")
    for name, value in bounds.items():
        if given.get(name) is not None:
            raise click.UsageError(f"-o and --{name.replace('_', '-')} exclude each other")
        given[name] = value
    return from_end


def _near_the_end(log: Log, rows: ReadOptions, count: int) -> Iterator[tuple[Log, ReadOptions]]:
    """Return a log of each partition, and how to read its last offsets."""
    unread = log.found.unread
    for partition in log.partitions:
        found = Discovery(segments=list(partition.segments), unread=unread)
        yield log.of_files(found), replace(rows, start_offset=max(partition.end_offset - count, 0))
        unread = []  # reported once


def check_topic(table: Table, log: Log, command: str = "") -> None:
    """Refuse files that cannot hold what a table is made of; ``command`` is what needs it, when it is another one."""
    segments = log.found.segments
    missing = missing_topic(table, segments)
    if missing is not None and not any(one.is_fault and one.topic in (missing, None) for one in log.found.unread):
        hint = "; --as-topic says that a copy of one segment is of it" if table.topic and not command else ""
        raise click.UsageError(
            f"{command or table.command} reads {missing}, and found {', '.join(topics_of(segments)[:NAMES_SHOWN])}:"
            f" give a log directory that has a folder {missing}-0{hint}"
        )


def _wanted_changes(*wanted: tuple[Any, ...]) -> ChangeFilter | None:
    if not any(wanted):
        return None
    from kraftlog.metadata.diff.change_filter import ChangeFilter

    return ChangeFilter(*(values or None for values in wanted))


def _command(table: Table) -> click.Command:
    columns = table.schema
    extra = f" On request: {', '.join(columns.on_request)}." if columns.on_request else ""
    help_text = (
        f"Show the table {table.name}: each row is {columns.row}.\n\n"
        f"Columns: {', '.join(columns.shown)}.{extra}\n\n\b\nExample:\n  {table.example}"
    )

    def run(paths: LogPaths, output: Output, **given: Any) -> None:
        chosen = among({column: given.pop(name) or None for name, column in table.choices.items()})
        if table.name == "waits" and output.form in (None, SENTENCES):
            if output.columns is None:
                output = replace(output, form=SENTENCES, columns=["sentence"])
            elif output.form == SENTENCES:
                raise click.UsageError("--columns does not go with --format text, which has sentences")
        if table.name != "offsets":
            run_table(table.name, paths, output, given, filter=chosen)
        from kraftlog.cli.reset_plan import wanted_offsets

        groups, mapping = given.pop("groups"), given.pop("mapping")
        wanted = wanted_offsets(output, groups, mapping, is_plan=given.pop("is_plan"))
        run_table(table.name, paths, wanted.output, given, filter=wanted.rows, each=wanted.each)

    decorators = [options.PATHS, options.CHANGES if table.is_of_metadata else options.WHICH, options.of_table(table)]
    if table.name == "offsets":
        decorators.append(options.OFFSETS_ONLY)
    decorators += [options.CHOICES[name] for name in table.choices]
    if table.name == "messages":
        decorators.append(options.MESSAGES_ONLY)
    if table.name == "messages" or table.topic is not None:
        decorators.append(options.AS_TOPIC)
    if {"start_timestamp", "salvage"} <= {*table.option_names}:  # rows are batches, or what is in them
        decorators.append(options.KCAT_OFFSET)
    if table.has_records:
        decorators.append(options.CUT)
    if table.name == "records":
        decorators += [options.TRANSACTION, options.KCAT_FORMAT, TYPED, redacts]
    if table.can_be_followed:
        decorators.append(options.FOLLOW)
    output_options = options.OUTPUT_OF_RECORDS if table.has_records else options.OUTPUT
    decorators += [options.OUTPUT_OF_SENTENCES if table.name == "waits" else output_options, options.READING]
    return click.command(table.command, help=help_text)(options.applied(decorators)(run))


COMMANDS = [_command(table) for table in TABLES.values() if table.module == "tables"]
