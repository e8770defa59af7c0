"""What Spark sees: schemas, options, and the byte ranges that its tasks read. No Spark is needed to import this."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog import schema
from kraftlog.codec.headers import TIMESTAMP_TYPES
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.log.arguments import catalog_of, read_options
from kraftlog.log.discover import Discovery, Segment
from kraftlog.log.log import Log
from kraftlog.log.log import open as open_log
from kraftlog.log.message_tables import note_bad_messages
from kraftlog.log.metadata_gaps import incomplete_faults
from kraftlog.log.partitions import by_partition
from kraftlog.log.ranges import Range, plan
from kraftlog.log.read import read_range
from kraftlog.log.table_rows import table_schema
from kraftlog.log.tables import index_rows
from kraftlog.log.transaction_checks import beside_faults, marker_faults
from kraftlog.stream import errors_table

RANGE_TABLES = ("segments", "batches", "records", "errors")
PARTITION_TABLES = ("messages", "transactions", "metadata_transactions", "producers", "hanging_transactions")
FOLDED_TABLES = ("offsets", "groups", "transactional_ids")
TABLES = (*RANGE_TABLES, *PARTITION_TABLES, *FOLDED_TABLES)
DEFAULT_RANGE_BYTES = 64 << 20
ROWS_PER_BATCH = 16_384

# Spark's own Kafka source has the timestamp type as a number, under this name.
TIMESTAMP_TYPE = "timestampType"
TIMESTAMP_TYPE_NUMBERS = {"CreateTime": 0, "LogAppendTime": 1, "NoTimestampType": -1}

_BYTE_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_KNOWN_OPTIONS = frozenset(
    {
        "table",
        "path",
        "paths",
        "columns",
        "isolationlevel",
        "startingoffset",
        "endingoffset",
        "starttimestamp",
        "endtimestamp",
        "topics",
        "onerror",
        "rangebytes",
        "includecontrol",
        "type",
        "definitions",
    }
)


@dataclass(frozen=True)
class WholePartition:
    """The segments of a partition, or of all, for what is only known of them together."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class LeftAlone:
    """Files that belong to no range."""


Part = Range | WholePartition | LeftAlone


@dataclass(frozen=True)
class Request:
    """What a Spark job asks for; plain values, so that it can be sent to executors."""

    table: str
    paths: tuple[str, ...]
    columns: tuple[str, ...]
    topics: tuple[str, ...] | None
    definitions: str | None
    range_bytes: int
    options: ReadOptions

    def log(self) -> Log:
        """Open the log files."""
        return open_log(self.paths, topics=self.topics, definitions=self.definitions)

    @property
    def schema(self) -> pa.Schema:
        """The columns of every record batch."""
        return spark_schema(self.table, self.columns, self.definitions)


def parse_request(options: Mapping[str, str]) -> Request:
    """Read the options of ``spark.read.format("kraftlog")``; names are taken without regard to case.

    Raises
    ------
    ValueError
        For an unknown option, table or column, or a value that cannot be read.
    """
    given = {key.lower(): value for key, value in options.items()}
    unknown = set(given) - _KNOWN_OPTIONS
    if unknown:
        raise ValueError(f"unknown option {', '.join(sorted(unknown))}; there are {', '.join(sorted(_KNOWN_OPTIONS))}")
    table = given.get("table", "messages" if "type" in given else "records")
    if table not in TABLES:
        raise ValueError(f"option table is {table!r}, not one of {', '.join(TABLES)}")
    definitions = given.get("definitions")
    if "type" in given:
        if table != "messages":
            raise ValueError(f"option type goes with the table messages, not with {table}")
        table = given["type"]
    on_error = given.get("onerror", "fail").lower()
    include_control = given.get("includecontrol", "false").lower()
    if include_control not in ("true", "false"):
        raise ValueError(f"option includeControl is {include_control!r}, not true or false")
    if on_error not in ("fail", "skip"):
        raise ValueError(f"option onError is {on_error!r}, not fail or skip")
    columns = _words(given.get("columns"))
    shown = spark_schema(table, columns, definitions)
    return Request(
        table=table,
        paths=_paths(given),
        columns=columns or tuple(shown.names),
        topics=_words(given.get("topics")),
        definitions=definitions,
        range_bytes=_bytes(given.get("rangebytes", str(DEFAULT_RANGE_BYTES))),
        options=read_options(
            isolation_level=given.get("isolationlevel", "read_uncommitted"),
            start_offset=_number(given, "startingOffset"),
            end_offset=_number(given, "endingOffset"),
            start_timestamp=_moment(given, "startTimestamp"),
            end_timestamp=_moment(given, "endTimestamp"),
            include_control=include_control == "true",
            strict=on_error == "fail" and table != "errors",
            batch_rows=ROWS_PER_BATCH,
        ),
    )


def _words(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(word.strip() for word in text.split(",") if word.strip())


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    if "paths" in given:
        text = given["paths"]
        return tuple(json.loads(text)) if text.startswith("[") else _words(text) or ()
    if "path" in given:
        return (given["path"],)
    raise ValueError('no path: use .load("...") or the option paths')


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    try:
        return None if text is None else int(text)
    except ValueError:
        raise ValueError(f"option {name} is {text!r}, not a number") from None


def _moment(given: Mapping[str, str], name: str) -> datetime | int | None:
    text = given.get(name.lower())
    if text is None or text.lstrip("-").isdigit():
        return None if text is None else int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"option {name} is {text!r}, neither milliseconds nor RFC 3339") from None


def _bytes(text: str) -> int:
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].isalpha() else (text, "")
    if not number.isdigit() or (unit and unit not in _BYTE_UNITS) or int(number) == 0:
        raise ValueError(f"option rangeBytes is {text!r}, not a size such as 67108864 or 64m")
    return int(number) * _BYTE_UNITS.get(unit, 1)


def spark_schema(table: str, columns: tuple[str, ...] | None = None, definitions: str | None = None) -> pa.Schema:
    """Return the Arrow schema of a table, or of a type of message, as Spark shows it."""
    definition = table_schema(table, catalog_of(definitions))
    names = tuple(definition.shown) if columns is None else columns
    fields = []
    for name in names:
        if table == "records" and name in ("timestamp_type", TIMESTAMP_TYPE):
            fields.append(pa.field(TIMESTAMP_TYPE, pa.int32()))
        else:
            fields.append(definition.select([name]).field(0))
    return pa.schema(fields)


def plan_parts(request: Request) -> Iterator[Part]:
    """Return what tasks read.

    Records and errors are cut into ranges, batches and segments are read a segment at a time, and transactions a
    partition at a time.
    """
    log = request.log()
    if request.table in RANGE_TABLES:
        cut = request.range_bytes if request.table in ("records", "errors") else None
        if request.table == "records":
            yield from log.ranges(request.options, cut, _library_columns(request), [], [])
        else:
            yield from plan(log.found.segments, request.options, cut)
    if request.table in FOLDED_TABLES:  # of several replicas one counts, and topics have names in any partition
        yield WholePartition(tuple(log.found.segments))
    elif request.table not in RANGE_TABLES or request.table == "errors":
        yield from (WholePartition(tuple(group)) for group in by_partition(log.found.segments))
    if request.table in ("errors", "segments"):
        yield LeftAlone()


def read(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Read one part; record batches have the columns of ``spark_schema``."""
    if isinstance(part, Range):
        return _read_range(request, part)
    return _read_left_alone(request) if isinstance(part, LeftAlone) else _read_partition(request, part)


def _library_columns(request: Request) -> list[str]:
    return ["timestamp_type" if name == TIMESTAMP_TYPE else name for name in request.columns]


def _read_partition(request: Request, part: WholePartition) -> Iterator[pa.RecordBatch]:
    target = request.schema
    segments = list(part.segments)
    if request.table == "errors":
        faults = [*marker_faults(segments), *beside_faults(segments), *incomplete_faults(segments)]
        note_bad_messages(segments, request.options, faults, catalog_of(request.definitions))
        yield from errors_table(faults).select(target.names).to_batches()
    else:
        log = Log(Discovery(segments), catalog_of(request.definitions))
        yield from log.scan(request.table, target.names, request.options).batches()


def _read_range(request: Request, part: Range) -> Iterator[pa.RecordBatch]:
    target = request.schema
    faults: list[Fault] = []
    if request.table == "records":
        for batch in read_range(part, schema.RECORDS.select(_library_columns(request)), request.options, faults):
            yield _as_spark(batch, target)
    elif request.table == "errors":
        for _ in read_range(part, schema.RECORDS.select([]), request.options, faults):
            pass
        if part.is_first:
            for _ in index_rows([part.segment], schema.INDEX_ENTRIES.select(), request.options, faults):
                pass
        yield from errors_table(faults).select(target.names).to_batches()
    else:
        yield from Log.of_segment(part.segment).scan(request.table, target.names, request.options).batches()


def _read_left_alone(request: Request) -> Iterator[pa.RecordBatch]:
    """Return files that are not read, in the table errors; set aside ones in segments."""
    log = request.log()
    if request.table == "errors":
        yield from errors_table(log.left_alone()).select(list(request.columns)).to_batches()
    if request.table == "segments":
        aside = Log(Discovery(set_aside=log.found.set_aside))
        yield from aside.scan("segments", request.columns, request.options).batches()


def _as_spark(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    if TIMESTAMP_TYPE not in target.names:
        return batch
    columns = [
        _timestamp_type_numbers(column) if field.name == TIMESTAMP_TYPE else column
        for column, field in zip(batch.columns, target, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=target)


_NAMES = pa.array(TIMESTAMP_TYPES)
_NUMBERS = pa.array([TIMESTAMP_TYPE_NUMBERS[name] for name in TIMESTAMP_TYPES], pa.int32())


def _timestamp_type_numbers(column: pa.Array) -> pa.Array:
    return _NUMBERS.take(pc.index_in(column, value_set=_NAMES))


def with_columns(request: Request, columns: tuple[str, ...]) -> Request:
    """Return the same request for other columns."""
    return replace(request, columns=columns)
