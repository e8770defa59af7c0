"""Columns to messages: the reverse of ``reader``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import status
from kraftlog._native.message_encode import encode
from kraftlog.errors import InvalidRecordError
from kraftlog.messages.arrow_types import UNKNOWN_TAGGED_FIELDS, UUID_BINARY, UUID_TEXT, message_schema
from kraftlog.messages.columns import sources
from kraftlog.messages.defaults import default_column
from kraftlog.messages.definition import Definition
from kraftlog.messages.layout import field_path
from kraftlog.messages.program import program


def encode_messages(
    definition: Definition,
    version: int,
    columns: pa.RecordBatch | pa.Table,
    *,
    prefix: bytes = b"",
    rows: npt.NDArray[np.int64] | None = None,
) -> pa.BinaryArray:
    """Encode a message for each row.

    Parameters
    ----------
    definition : Definition
    version : int
        In which they are written.
    columns : pyarrow.RecordBatch or pyarrow.Table
        A column for each field, as ``message_schema`` has it with uuids as text or as bytes; a column that is missing
        has the field's default. Tagged fields are written where they differ from their defaults, unknown ones as
        they are.
    prefix : bytes
        Stands before each message: see ``frame`` and ``int16_prefix``.
    rows : numpy.ndarray of int64, optional
        Only these rows, in this order.

    Returns
    -------
    pyarrow.BinaryArray
        It owns its memory.

    Raises
    ------
    InvalidRecordError
        When the version has no place for a value; the message names row and field.
    ValueError
        When the definition has no such version, or a column is of another type.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from kraftlog.messages.catalog import BUILT_IN
    >>> from kraftlog.messages.frames import frame
    >>> topics = pa.table({"name": ["orders"], "topic_id": ["xxmuDHBfSWqUkjNiXl8dFQ"]})
    >>> encode_messages(BUILT_IN.messages["TopicRecord"], 0, topics, prefix=frame(2, 0))[0].as_py().hex()
    '010200076f7264657273c719ae0c705f496a949233625e5f1d1500'
    """
    compiled = program(definition, version)
    batch = columns.combine_chunks() if isinstance(columns, pa.Table) else columns
    uuid = _uuid_form(batch.schema)
    fields = message_schema(definition, uuid)
    unexpected = set(batch.schema.names) - set(fields.names)
    if unexpected:
        raise ValueError(f"{definition.name} has no field {sorted(unexpected)[0]!r}; it has {', '.join(fields.names)}")
    twice = [name for name in fields.names if batch.schema.names.count(name) > 1]
    if twice:
        raise ValueError(f"{definition.name}: two columns {twice[0]}")
    arrays = [_column(batch, field, definition) for field in fields]
    wanted = np.arange(batch.num_rows, dtype=np.int64) if rows is None else np.ascontiguousarray(rows, np.int64)
    table = pa.StructArray.from_arrays(arrays, fields=list(fields)) if batch.num_rows else None
    if table is None or not len(wanted):
        return pa.array([], pa.binary())
    if wanted.min() < 0 or wanted.max() >= batch.num_rows:
        raise ValueError(f"rows are not all between 0 and {batch.num_rows - 1}")
    found = encode(compiled, sources(definition, table), uuid == UUID_TEXT, wanted, prefix)
    if len(found) == 5:
        raise _refusal(definition, version, found)
    ends, data = found
    return pa.Array.from_buffers(pa.binary(), len(wanted), [None, pa.py_buffer(ends), pa.py_buffer(data)], 0)


def _refusal(definition: Definition, version: int, found: tuple[int, int, int, int, int]) -> InvalidRecordError:
    row, field, number, expected, actual = found
    sentence = status.TEXTS[status.CODES[number]].format(expected=expected or version, actual=actual)
    path = field_path(definition, field)
    return InvalidRecordError(
        f"row {row}: {definition.name}, version {version}{', ' + path if path else ''}: {sentence}"
    )


def _uuid_form(schema: pa.Schema) -> str:
    def is_binary(kind: pa.DataType) -> bool:
        if pa.types.is_list(kind):
            return is_binary(kind.value_type)
        if pa.types.is_struct(kind):
            return any(is_binary(field.type) for field in kind)
        return bool(pa.types.is_fixed_size_binary(kind))

    return UUID_BINARY if any(is_binary(field.type) for field in schema) else UUID_TEXT


def _column(batch: pa.RecordBatch, field: pa.Field, definition: Definition) -> pa.Array:
    if field.name in batch.schema.names:
        column = batch.column(field.name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if column.type != field.type:
            raise ValueError(f"{definition.name}: column {field.name} is {column.type}, not {field.type}")
        return column
    if field.name == UNKNOWN_TAGGED_FIELDS:
        return pa.repeat(pa.scalar([], field.type), batch.num_rows) if batch.num_rows else pa.array([], field.type)
    own = next(one for one in definition.fields if one.column == field.name)
    return default_column(own, field.type, batch.num_rows)
