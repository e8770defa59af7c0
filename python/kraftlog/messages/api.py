"""Public functions for messages: columns of bytes to typed columns and back, by message name."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog._native import message as native
from kraftlog.messages import writer
from kraftlog.messages.arrow_types import UNKNOWN_TAGGED_FIELDS, UUID_TEXT
from kraftlog.messages.catalog import BUILT_IN, Catalog
from kraftlog.messages.definition import Definition
from kraftlog.messages.format_of import METADATA, REMOTE_LOG_METADATA, UNNAMED_KEYS, VERSIONLESS
from kraftlog.messages.frames import NO_VERSION, Frames, Side, frame, int16_prefix, native_values
from kraftlog.messages.reader import MessageReader, Messages
from kraftlog.messages.record_type import KEY, VALUE, RecordFormat, RecordType
from kraftlog.messages.written_version import written_version

_TYPE = 0
KEY_ROLE = "coordinator-key"


def decode_messages(
    name: str,
    values: pa.BinaryArray,
    *,
    keys: pa.BinaryArray | None = None,
    version: int | None = None,
    catalog: Catalog = BUILT_IN,
) -> pa.RecordBatch:
    """Decode messages.

    Parameters
    ----------
    name : str
        A record type, such as ``PartitionRecord`` or ``OffsetCommit``, or another message:
        ``ConsumerProtocolSubscription``, ``ProducerSnapshot``.
    values : pyarrow.BinaryArray
        Values of records as in the log; for other messages, each after the int16 of its version.
    keys : pyarrow.BinaryArray, optional
        The records' keys, for types of the coordinators' topics.
    version : int, optional
        Version of messages that are not records, if they have no version prefix.
    catalog : Catalog

    Returns
    -------
    pyarrow.RecordBatch
        A row for each value: the fields, ``unknown_tagged_fields``, and ``error``, the reason why a value could not be
        decoded or has another type; its fields are then null. It owns its memory.

    Raises
    ------
    ValueError
        When there is no such message or version.

    Examples
    --------
    >>> import pyarrow as pa
    >>> value = bytes.fromhex("010200076f7264657273c719ae0c705f496a949233625e5f1d1500")
    >>> rows = decode_messages("TopicRecord", pa.array([value, value[:9]]))
    >>> rows.column("name").to_pylist(), rows.column("error")[1].as_py()
    (['orders', None], 'value: version 0 of TopicRecord, name: length 6 exceeds 5 bytes left, at byte 4')
    """
    return message_columns(read_messages(name, values, keys, version, catalog), name, catalog)


def message_columns(messages: Messages, name: str, catalog: Catalog = BUILT_IN) -> pa.RecordBatch:
    """Return the result of ``decode_messages`` for messages from ``read_messages``."""
    typed = messages.typed(name)
    fields = typed.fields
    if len(messages.format.types) == 1 and name in catalog.messages and catalog.messages[name].role != "metadata":
        own = [*(field.column for field in catalog.messages[name].fields), UNKNOWN_TAGGED_FIELDS]
        fields = pa.RecordBatch.from_arrays(fields.columns, own)
    is_there = np.zeros(len(messages.types), bool)
    is_there[typed.rows] = True
    if not is_there.all():
        fields = fields.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))
    names = messages.type_names
    is_other = pc.fill_null(pc.not_equal(names, name), fill_value=False)
    others = pc.binary_join_element_wise("a record of type", names, " ")
    return fields.append_column("error", pc.if_else(is_other, others, messages.errors))


def encode_messages(
    name: str,
    columns: pa.RecordBatch | pa.Table,
    version: int | None = None,
    *,
    with_prefix: bool = True,
    catalog: Catalog = BUILT_IN,
) -> pa.BinaryArray:
    """Encode a message for each row.

    Parameters
    ----------
    name : str
        Name of a message: ``PartitionRecord``, ``OffsetCommitKey``, ``OffsetCommitValue``,
        ``ConsumerProtocolSubscription``.
    columns : pyarrow.RecordBatch or pyarrow.Table
        A column for each field, as in ``decode_messages``, with or without the prefix ``key_`` or ``value_``; missing
        columns have the field's default.
    version : int, optional
        Version to write. Default: a version that older releases can read, the highest non-flexible one unless a newer
        one has required fields (KIP-915); for messages of the metadata log the last one.
    with_prefix : bool
        Whether each message begins with its type and version, as in the log.
    catalog : Catalog

    Returns
    -------
    pyarrow.BinaryArray
        It owns its memory.

    Raises
    ------
    InvalidRecordError
        When the version cannot represent a value.
    ValueError
        When there is no such message or version, or a column has another type.

    Examples
    --------
    >>> import pyarrow as pa
    >>> key = pa.table({"group": ["g"], "topic": ["orders"], "partition": pa.array([3], pa.int32())})
    >>> encode_messages("OffsetCommitKey", key, 0)[0].as_py().hex()
    '000100016700066f726465727300000003'
    """
    definition = _definition(name, catalog)
    columns = _with_own_names(definition, columns)
    version = written_version(definition, columns) if version is None else version
    prefix = _prefix(definition, version) if with_prefix else b""
    return writer.encode_messages(definition, version, columns, prefix=prefix)


def _definition(name: str, catalog: Catalog) -> Definition:
    if name not in catalog.messages:
        raise ValueError(f"no message {name!r} is known")
    return catalog.messages[name]


def _prefix(definition: Definition, version: int) -> bytes:
    if definition.format in (METADATA, REMOTE_LOG_METADATA) and definition.api_key is not None:
        return frame(definition.api_key, version)
    if _has_no_prefix(definition):
        return b""
    if definition.role == KEY_ROLE and definition.api_key is not None:
        return int16_prefix(definition.api_key)
    return b"" if _says_its_version(definition) else int16_prefix(version)


def _has_no_prefix(definition: Definition) -> bool:
    """Whether a message begins neither with its type nor with its version: it has one of each."""
    is_key = definition.role == KEY_ROLE
    return definition.format in UNNAMED_KEYS and (is_key or definition.format in VERSIONLESS)


def _says_its_version(definition: Definition) -> bool:
    """Whether the version is a message's own first field, as in the control records of a Raft log."""
    return definition.fields[:1] != () and definition.fields[0].name == "version" and definition.role == "data"


def read_messages(
    name: str,
    values: pa.BinaryArray,
    keys: pa.BinaryArray | None = None,
    version: int | None = None,
    catalog: Catalog = BUILT_IN,
) -> Messages:
    """Read the frames of values that should have a type; parameters as in ``decode_messages``."""
    if version is None and name in catalog.messages and _has_no_prefix(catalog.messages[name]):
        version = catalog.messages[name].versions.last
    for record_format in catalog.formats.values():
        if any(one.name == name for one in record_format.types.values()):
            if version is not None:
                raise ValueError(f"{name} is a record, which says its version itself")
            return MessageReader(record_format).read(keys, values)
    definition = _definition(name, catalog)
    if version is not None and version not in definition.versions:
        raise ValueError(f"{name}: version {version} is not in {definition.versions}")
    of_format = RecordFormat(name, {_TYPE: RecordType(name, _TYPE, None, definition)})
    native_values(values)  # raises unless it is a column of bytes
    return Messages(of_format, lambda: _plain(definition, values, version), UUID_TEXT)


def _plain(definition: Definition, values: pa.BinaryArray, version: int | None) -> Frames:
    """Return the frames of messages that are not records, or of one side of a record."""
    source = native_values(values)
    numbers, starts, faults = native.read_prefixes(source, False)
    versions = numbers.copy()
    if version is not None or definition.role == KEY_ROLE:
        versions[:] = definition.versions.last if version is None else version
    if version is not None or _says_its_version(definition):
        starts = np.zeros(len(values), np.int32)
    is_null = np.asarray(values.is_null().to_numpy(zero_copy_only=False), bool)
    types = np.full(len(values), _TYPE, np.int32)
    frames = Frames(types, Side(source, versions, starts), None, np.zeros(len(values), bool), is_strict=True)
    if version is None:
        frames.note(VALUE, faults)
    if version is None and definition.role == KEY_ROLE:
        for row in np.flatnonzero((numbers != definition.api_key) & ~is_null).tolist():
            frames.faults.setdefault(row, f"value: type {numbers[row]} is not {definition.api_key}")
    for row in np.flatnonzero(is_null).tolist():
        frames.faults[row] = "value: the value is null"
    versions[list(frames.faults)] = NO_VERSION
    return frames


def _with_own_names(definition: Definition, columns: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
    """Return columns under the names of the message's fields, without the prefix key_ or value_ of record tables."""
    own = {field.column for field in definition.fields}
    names = {
        name: name.split("_", 1)[1]
        for name in columns.schema.names
        if name not in own and name.split("_", 1)[0] in (KEY, VALUE) and name.split("_", 1)[-1] in own
    }
    return columns.rename_columns([names.get(name, name) for name in columns.schema.names])
