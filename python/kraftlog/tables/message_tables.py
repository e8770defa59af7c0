"""Messages as tables: ``messages`` with their JSON, and a table for each message type with its fields as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog import schema
from kraftlog.codec.arrow_arrays import array_of, texts_of
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.messages.arrow_types import TAGGED_FIELD, UNKNOWN_TAGGED_FIELDS, arrow_type
from kraftlog.messages.catalog import Catalog
from kraftlog.messages.control_format import CONTROL, control_format
from kraftlog.messages.format_of import METADATA, is_certain
from kraftlog.messages.frames import NO_VERSION
from kraftlog.messages.reader import Messages
from kraftlog.messages.record_type import COLUMNS_BEFORE_FIELDS, RecordFormat, RecordType
from kraftlog.metadata.secrets import TYPES_WITH_SECRETS, json_without_secrets, rows_with_secrets, without_secrets
from kraftlog.read.log_pass import Pass
from kraftlog.read.messages import TypedChunk, format_of, made_of_chunks
from kraftlog.stream import rows_of
from kraftlog.tables.read import Read

_OF_SEGMENTS = ("topic", "partition")
_OF_RECORDS = (*_OF_SEGMENTS, "offset", "timestamp", "transaction_state")


def message_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table messages."""
    arrow_schema, options = read.schema, read.options
    wanted = [name for name in arrow_schema.names if name in _OF_RECORDS]

    def rows(chunk: TypedChunk, noted: list[Fault]) -> pa.RecordBatch:
        made = dict(zip(("key", "value"), chunk.messages.json(), strict=True))
        if not options.show_secrets:
            made |= _raw_without_secrets(chunk, arrow_schema)
            made["value"] = _without_secrets(chunk.messages, made["value"])
        columns = [made[name] if name in made else _column(chunk, name) for name in arrow_schema.names]
        chunk.take_faults(noted, strict=options.strict)
        return rows_of(columns, arrow_schema, chunk.records.num_rows)

    return made_of_chunks(rows, _internal(read.segments), wanted, read)


def _internal(segments: list[Segment]) -> list[Segment]:
    """Return the segments without those whose records may be of users, though their topic has a name of MirrorMaker."""
    return [one for one in segments if format_of(one) is None or is_certain(format_of(one))]


def _with_secrets(messages: Messages) -> dict[int, str]:
    """Return the rows of messages with secrets, and their types."""
    if messages.format.name != METADATA:
        return {}
    return {
        int(typed.rows[row]): name
        for name in TYPES_WITH_SECRETS.intersection(messages.types_there)
        for typed in [messages.typed(name)]
        for row in rows_with_secrets(name, typed.fields)
    }


def _without_secrets(messages: Messages, values: pa.StringArray) -> pa.StringArray:
    hidden = _with_secrets(messages)
    if not hidden:
        return values
    texts = values.to_pylist()
    for row, name in hidden.items():
        texts[row] = json_without_secrets(name, texts[row])
    return texts_of(texts)


def _raw_without_secrets(chunk: TypedChunk, arrow_schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the requested raw columns; null if a record has secrets, or cannot be read."""
    asked_for = [name for name in ("raw_key", "raw_value") if name in arrow_schema.names]
    messages = chunk.messages
    if not asked_for or messages.format.name != METADATA:
        return {}
    is_shown = np.ones(chunk.records.num_rows, bool)
    is_shown[list(_with_secrets(messages))] = False
    for name in TYPES_WITH_SECRETS.intersection(messages.types_there) if messages.faults else ():
        is_shown[np.setdiff1d(messages.rows_of(name), messages.typed(name).rows)] = False
    columns = {name: chunk.records.column(name.removeprefix("raw_")) for name in asked_for}
    shown = pa.array(is_shown)
    return {name: pc.if_else(shown, column, pa.scalar(None, column.type)) for name, column in columns.items()}


def _column(chunk: TypedChunk, name: str) -> pa.Array:
    return _COLUMNS[name](chunk) if name in _COLUMNS else chunk.records.column(name)


def _versions(versions: npt.NDArray[np.int32]) -> pa.Array:
    return array_of(versions.astype(np.int16), mask=versions == NO_VERSION)


_COLUMNS: dict[str, Callable[[TypedChunk], pa.Array]] = {
    "type": lambda chunk: chunk.messages.type_names,
    "key_version": lambda chunk: _versions(chunk.messages.key_versions),
    "value_version": lambda chunk: _versions(chunk.messages.value_versions),
    "is_tombstone": lambda chunk: array_of(chunk.messages.is_tombstone),
    "error": lambda chunk: chunk.messages.errors,
    "raw_key": lambda chunk: chunk.records.column("key"),
    "raw_value": lambda chunk: chunk.records.column("value"),
}


def type_schema(name: str, catalog: Catalog) -> schema.TableSchema | None:
    """Return the table of a record type; None if there is no such type.

    Its columns are the position of the record, the fields of its key and of its value, and unknown tagged fields of the
    value.
    """
    record_type = _type_named(name, catalog)
    if record_type is None:
        return None
    before = {column: schema.MESSAGES.shown[column] for column in COLUMNS_BEFORE_FIELDS}
    fields = {column: arrow_type(field) for column, field, _ in record_type.columns}
    unknown = {UNKNOWN_TAGGED_FIELDS: pa.list_(TAGGED_FIELD)}
    return schema.TableSchema(
        name, f"a record of the type {name}", before | fields | unknown, schema.MESSAGES.on_request
    )


def type_names(catalog: Catalog) -> list[str]:
    """Return the names of the types that have a table."""
    return sorted({one.name for one in _types(catalog)})


def check_type(name: str, catalog: Catalog) -> str:
    """Return the name of a message type.

    Raises
    ------
    ValueError
        When there is no such type.
    """
    if name not in (known := type_names(catalog)):
        raise ValueError(f"{name!r} is not a type of message; there are {', '.join(known)}")
    return name


def _type_named(name: str, catalog: Catalog) -> RecordType | None:
    return next((one for one in _types(catalog) if one.name == name), None)


def _types(catalog: Catalog) -> Iterator[RecordType]:
    for of in _formats(catalog):
        yield from (one for one in of.types.values() if one.value is not None)


def _formats(catalog: Catalog) -> list[RecordFormat]:
    return [*catalog.formats.values(), control_format(catalog)]


def type_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table of one type. A record of it that cannot be read is a row with an ``error``, its fields null."""
    name, segments, arrow_schema = read.table.name, read.segments, read.schema
    formats = {of.name for of in _formats(read.catalog) if any(one.name == name for one in of.types.values())}
    is_control = CONTROL in formats
    options = replace(read.options, include_control=is_control)
    of_format = segments if is_control else [segment for segment in segments if format_of(segment) in formats]
    wanted = [column for column in arrow_schema.names if column in _OF_RECORDS]

    def rows(chunk: TypedChunk, noted: list[Fault]) -> pa.RecordBatch | None:
        if chunk.messages.format.name not in formats:
            return None
        made = _rows_of_type(name, chunk, arrow_schema, hides_secrets=not options.show_secrets)
        chunk.take_faults(noted, strict=options.strict)
        return made

    every = made_of_chunks(rows, of_format, wanted, read.with_options(options))
    return (batch for batch in every if batch is not None)


def _rows_of_type(
    name: str, chunk: TypedChunk, arrow_schema: pa.Schema, *, hides_secrets: bool
) -> pa.RecordBatch | None:
    """Return the records of a type; None if there are none."""
    typed = chunk.messages.typed(name)
    rows = chunk.messages.rows_of(name) if chunk.messages.faults else typed.rows
    if not len(rows):
        return None
    fields, raw = typed.fields, dict[str, pa.Array]()
    if hides_secrets and chunk.messages.format.name == METADATA and name in TYPES_WITH_SECRETS:
        raw = _raw_without_secrets(chunk, arrow_schema)
        fields = without_secrets(name, fields)
    if len(typed.rows) < len(rows):
        is_good = np.isin(rows, typed.rows)
        fields = fields.take(pa.array(np.cumsum(is_good) - 1, mask=~is_good))
    own = set(fields.schema.names)
    columns = [
        fields.column(name)
        if name in own
        else _some(raw[name] if name in raw else _column(chunk, name), rows, is_constant=name in _OF_SEGMENTS)
        for name in arrow_schema.names
    ]
    return rows_of(columns, arrow_schema, len(rows))


def _some(column: pa.Array, rows: npt.NDArray[np.int64], *, is_constant: bool) -> pa.Array:
    """Return some rows of a column, without a copy if these are all rows, or all values are equal."""
    if is_constant or len(rows) == len(column) or column.null_count == len(column):
        return column.slice(0, len(rows))
    return column.take(pa.array(rows))


def note_bad_messages(segments: list[Segment], read: Pass) -> None:
    """Report the records of internal topics that are invalid messages; faults of batches are not reported again."""

    def bad(chunk: TypedChunk, _: list[Fault]) -> list[Fault]:
        chunk.messages.json()
        found: list[Fault] = []
        chunk.take_faults(found, strict=read.options.strict)
        return found

    for found in made_of_chunks(bad, _internal(segments), [], read.apart().faults_only()):
        read.faults.extend(found)
