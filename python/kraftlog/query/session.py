"""A connection of DuckDB that knows the tables and topics of a log by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.dataset as ds

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import LogPaths
from kraftlog.metadata.image import TYPES, Image
from kraftlog.metadata.image_table import image_table
from kraftlog.query.dataset import Open, TableDataset
from kraftlog.query.end_query import NO_BOUNDS, Bounds, EndQuery
from kraftlog.read.log_pass import Progress
from kraftlog.read.partitions import is_metadata
from kraftlog.stream import Stream, optional_package
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.log import Log
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.typed_rows import typed_table
from kraftlog.topics import INTERNAL_TOPICS
from kraftlog.types import IsolationLevel
from kraftlog.values.typed_options import ResolvedTypes, TypedOptions

TOPICS, IMAGE = "topics", "image"  # schemas of SQL
_TOPIC_COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")
_ROWS_AT_ONCE = 1 << 16
_OF_NO_QUERY = (["Count"], ["Success"])  # columns that DuckDB has for statements without rows, such as create view


@dataclass(frozen=True)
class Statement:
    """A statement of SQL.

    Attributes
    ----------
    text : str
    kind : str
        DuckDB's name of its kind, such as SELECT.
    is_query : bool
        Whether it has rows.
    """

    text: str
    kind: str
    is_query: bool

    @classmethod
    def of(cls, parsed: Any) -> Self:
        """Return what DuckDB has parsed."""
        results = [one.name for one in parsed.expected_result_type]
        kind = parsed.type.name  # MULTI is a pivot, which may have any result
        return cls(parsed.query, kind, results == ["QUERY_RESULT"] or kind == "MULTI")


class SqlSession:
    """Answers queries over a log.

    Tables have their names. ``topics.orders``, or ``orders`` alone, are the records of a topic, with all columns of the
    table ``records`` but ``topic``. ``image.TopicRecord`` and the like are the records of the metadata image at the end
    of the log. Each query reads the log anew.

    Parameters
    ----------
    log : Log
    isolation_level : {"read_uncommitted", "read_committed"}
        Of records and messages.
    on_progress : callable, optional
        Is called with the bytes of log that were read since the last call.
    heal : bool
        Read what the chosen replica of a partition lacks, or has damaged, from others that agree with it.
    committed_only : bool
        Of records and messages: end each partition at the high watermark that its files prove.
    against : path or iterable of paths
        The log directories of another cluster: the table ``findings`` is what that lacks or has otherwise.
    show_secrets : bool
        Whether salt and keys of SCRAM credentials, and passwords in configs, are shown in messages and the image.
    typed : TypedOptions, optional
        Formats of keys and values of topics. They are structs then, whose fields conditions may name, or other types
        of Arrow; ``value_error`` and ``key_error`` say what does not fit, ``value_raw`` and ``key_raw`` have its bytes.
        A topic is typed by the first query that names it; of JSON all values say the type, unless a sample is chosen. A
        topic keeps bytes, with a note, that has no subject of its own where no schema is named; so do Kafka's own
        topics.
    redaction : Redaction, optional
        What is taken out of the table ``records`` and of topics before a query sees them, and its conditions. A query
        cannot read files then. Tables that are made of Kafka's own topics, such as ``messages``, are as they are.

    Attributes
    ----------
    errors : tuple of type
        What ``query`` raises for a text that is no query, or a log that cannot be read.

    Raises
    ------
    ImportError
        When DuckDB is not installed.
    ValueError
        When there is no such schema as ``typed`` names.

    Examples
    --------
    >>> import kraftlog
    >>> from kraftlog.query.session import SqlSession
    >>> with SqlSession(kraftlog.open("tests/golden/transactions/log")) as session:
    ...     rows = session.query("select partition, count(*) as records from orders group by 1 order by 1").read_all()
    >>> rows.to_pylist()
    [{'partition': 0, 'records': 118}, {'partition': 1, 'records': 60}, {'partition': 2, 'records': 29}]
    """

    def __init__(
        self,
        log: Log,
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        on_progress: Progress | None = None,
        show_secrets: bool = ReadOptions.show_secrets,
        heal: bool = ReadOptions.heal,
        committed_only: bool = ReadOptions.committed_only,
        against: LogPaths = (),
        typed: TypedOptions | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self._log = log
        self._schema_faults: list[Fault] = []
        self._typed = None if typed is None else self._typed_options(typed)
        self._untyped: list[str] = []  # topics that no query has named
        self._kept_bytes: dict[str, str] = {}  # why a topic has no types
        self._query = ""
        self._heal, self._show_secrets = heal, show_secrets
        self._given = {
            "isolation_level": isolation_level,
            "show_secrets": show_secrets,
            "heal": heal,
            "committed_only": committed_only,
            "against": against,
            "check_crc": True,  # a query asks for crc_ok by its name
        }
        self._on_progress = on_progress
        self._redaction = redaction
        self._streams: list[Stream] = []
        self._bounds = NO_BOUNDS  # of the offsets that are read
        self._has_other_names = False  # whether statements may have given names of tables to something else
        self._image_faults: list[Fault] = []
        duckdb = optional_package("duckdb", "SQL", "'kraftlog[sql]'")
        self.errors = (duckdb.Error,)
        self._connection = duckdb.connect()
        for sql_schema in (TOPICS, IMAGE):
            self._connection.execute(f"create schema {sql_schema}")
        for place, arrow_schema, open_stream in self._views():
            self._create_view(place, arrow_schema, open_stream)
            if self._typed is not None and place[0] == TOPICS and place[1] not in INTERNAL_TOPICS:
                self._untyped.append(place[1])
        self._connection.execute("set timezone = 'UTC'")
        if redaction is not None:  # files of the log can be read as bytes, and by other ways to this process
            self._connection.execute("set python_enable_replacements = false")
            self._connection.execute("set enable_external_access = false")
            self._connection.execute("set lock_configuration = true")

    def statements(self, text: str) -> list[Statement]:
        """Return each statement of a text, in order.

        Raises
        ------
        duckdb.Error
            When it is no SQL.
        """
        return [Statement.of(one) for one in self._connection.extract_statements(text)]

    def query(self, text: str) -> pa.RecordBatchReader:
        """Run one query; its rows are read from the log as they are asked for.

        Statements that are not queries, such as create view, have no columns.

        Raises
        ------
        duckdb.Error
            When it is no query, or names what is not there.
        """
        self._image_faults.clear()
        self._query = text
        for topic in [one for one in self._untyped if _names(text, one)]:
            self._untyped.remove(topic)
            self._give_types(topic)
        statements = self.statements(text)
        self._has_other_names |= not {one.kind for one in statements} <= {"SELECT", "EXPLAIN"}
        rows = self._rows_at_the_end(text) or self._rows(text)
        is_query = any(one.is_query for one in statements)
        return rows if is_query or rows.schema.names not in _OF_NO_QUERY else _no_rows()

    def _rows(self, text: str, bounds: Bounds = NO_BOUNDS) -> pa.RecordBatchReader:
        self._streams.clear()
        self._bounds = bounds
        found = self._connection.sql(text)
        return _no_rows() if found is None else _reader(found)

    def _rows_at_the_end(self, text: str) -> pa.RecordBatchReader | None:
        """Return the answer to a query for few offsets; None for other queries, and if it needs the whole log."""
        query = None if self._has_other_names else EndQuery.of(text)
        if query is None:
            return None
        if query.table in TABLES and TABLES[query.table].has_records:
            log = self._log
        elif query.table in self._log.topics and query.table not in TABLES:
            log = self._files_of(query.table)
        else:
            return None
        for bounds in query.bounds(log.lines.found.segments):
            rows = self._rows(text, bounds).read_all()
            if query.is_answered(rows):
                return rows.to_reader()
        return None

    @property
    def faults(self) -> list[Fault]:
        """What the last query could not read, of what it has read."""
        return [
            *self._schema_faults,
            *self._image_faults,
            *(fault for stream in self._streams for fault in stream.faults),
        ]

    @property
    def notes(self) -> list[str]:
        """What a reader of the last query's rows should know of what it has read."""
        notes = [
            *self._log.lines.notes(heals=self._heal),
            *(note for topic, note in self._kept_bytes.items() if _names(self._query, topic)),
            *(note for stream in self._streams for note in stream.notes),
        ]
        return list(dict.fromkeys(notes))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _typed_options(self, typed: TypedOptions) -> TypedOptions:
        found = typed.with_schemas_of(self._log.lines.found, self._schema_faults).sampling_all()
        found.check_names()
        return found

    def _create_view(self, place: tuple[str, str], arrow_schema: pa.Schema, open_stream: Open) -> None:
        """Create a view over a dataset that has no name of its own: ``show tables`` would show that, too."""
        dataset = TableDataset(_counted_first(arrow_schema), open_stream)
        columns = ", ".join(map(_quoted, arrow_schema.names))
        self._connection.execute(f"set search_path = '{place[0]}'")
        self._connection.from_arrow(dataset).project(columns).create_view(place[1], replace=True)
        self._connection.execute(f"set search_path = 'main,{TOPICS}'")

    def _views(self) -> Iterator[tuple[tuple[str, str], pa.Schema, Open]]:
        for name, each in TABLES.items():
            columns = [*each.schema.shown, *each.schema.on_request]
            yield ("main", name), each.schema.select(columns), self._opener(self._log, name)
        for topic in self._log.topics:
            yield (TOPICS, topic), *self._topic(topic, None)
        if any(map(is_metadata, self._log.found.segments)):
            for name in TYPES:
                yield (IMAGE, name), _image_schema(name), self._image_opener(name)

    def _files_of(self, topic: str) -> Log:
        return self._log.of_files(self._log.lines.found.only(lambda one, _: one == topic))

    def _topic(self, topic: str, types: ResolvedTypes | None) -> tuple[pa.Schema, Open]:
        table = schema.RECORDS if types is None else typed_table(types)
        others = [name for name in (*table.shown, *table.on_request) if name not in ("topic", *_TOPIC_COLUMNS)]
        return table.select([*_TOPIC_COLUMNS, *others]), self._opener(self._files_of(topic), "records", types)

    def _give_types(self, topic: str) -> None:
        """Give the keys and values of a topic their types; a topic that has none keeps bytes."""
        assert self._typed is not None
        if not self._typed.has_schemas_of(topic):
            self._kept_bytes[topic] = f"{topic} keeps bytes: it has no schema"
            return
        try:
            types = self._typed.resolved(self._files_of(topic).found, strict=False)
        except ValueError as error:
            self._kept_bytes[topic] = f"{topic} keeps bytes: {error}"
            return
        self._create_view((TOPICS, topic), *self._topic(topic, types))

    def _opener(self, log: Log, table: str, types: ResolvedTypes | None = None) -> Open:
        definition = TABLES[table]
        given = {name: value for name, value in self._given.items() if name in definition.option_names}
        options = replace(definition.read_options(given), from_headers=True)

        def open_stream(columns: Sequence[str], filter: ds.Expression | None) -> Stream:
            how: dict[str, Any] = {"on_progress": self._on_progress, "typed": types}
            if table == "records":
                how |= {"redaction": self._redaction, "filters_redacted": True}
            start, end = self._bounds
            bounded = replace(options, start_offset=start, end_offset=end)
            stream = log.scan(table, columns, bounded, filter=filter, **how)
            self._streams.append(stream)
            return stream

        return open_stream

    def _image_opener(self, name: str) -> Open:
        def open_stream(columns: Sequence[str], filter: ds.Expression | None) -> Stream:
            rows = image_table(self._image, name, show_secrets=self._show_secrets)
            rows = (rows if filter is None else rows.filter(filter)).select(columns)
            return Stream(rows.schema, lambda _: iter(rows.to_batches()))

        return open_stream

    @cached_property
    def _image(self) -> Image:
        at = self._log.image(strict=False, heal=self._heal)
        self._image_faults = list(at.faults)
        return at.image


def _no_rows() -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(pa.schema([]), [])


def _reader(relation: Any) -> pa.RecordBatchReader:
    """Return the rows of a relation; DuckDB has changed the name of the method."""
    start = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return start(_ROWS_AT_ONCE)


def _image_schema(name: str) -> pa.Schema:
    return image_table(Image.empty(), name).schema


def _counted_first(arrow_schema: pa.Schema) -> pa.Schema:
    """Return the columns with the one first that DuckDB reads to count rows; the partition needs no records."""
    at = arrow_schema.get_field_index("partition")
    return arrow_schema if at < 0 else arrow_schema.remove(at).insert(0, arrow_schema.field(at))


def _names(query: str, topic: str) -> bool:
    """Whether a query may read a topic: its name is there as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(topic)}(?!\w)", query, re.IGNORECASE) is not None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
