"""Records and markers as the tables take them, from lines in the form of the JSON that Kafka's serdes write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from kafka_rows import Line, markers, typed

import kraftlog
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import int16_prefix
from kraftlog.messages.last_records import LastRecords
from kraftlog.messages.record_type import KEY, VALUE, RecordType
from kraftlog.messages.writer import encode_messages

_RECORDS = pa.schema(
    [("key", pa.binary()), ("value", pa.binary()), ("offset", pa.int64()), ("producer_id", pa.int64())]
)


def add_lines(last: LastRecords, lines: list[Line], format_name: str) -> None:
    """Add records and markers, none of which is odd."""
    rows = [_record(line, format_name) for line in lines if "key" in line]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(_RECORDS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _RECORDS, strict=True)]
    assert last.add(pa.record_batch(arrays, schema=_RECORDS), markers(lines)) is None


def write_log(folder: Path, lines: list[Line], format_name: str) -> None:
    """Write records, none of which is of a transaction, as the log of a partition."""
    rows = [dict(zip(("key", "value"), _record(line, format_name)[:2], strict=True)) for line in lines]
    table = pa.Table.from_pylist(rows, pa.schema([("key", pa.binary()), ("value", pa.binary())]))
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(kraftlog.encode(table).to_pybytes())


def _record(line: Line, format_name: str) -> tuple[bytes, bytes | None, int, int]:
    ((name, row),) = typed([line], format_name).items()
    record_type = BUILT_IN.formats[format_name].by_name[name][-1]
    key = _message(record_type, KEY, 0, record_type.api_key, row)
    version = line["value"] and line["value"].get("version", 0)
    value = None if version is None else _message(record_type, VALUE, version, version, row)
    return key, value, line["offset"], line["producer_id"]


def _message(record_type: RecordType, side: str, version: int, prefix: int, row: pa.RecordBatch) -> bytes:
    definition = record_type.key if side == KEY else record_type.value
    assert definition is not None
    columns = {field.column: row.column(name) for name, field, of in record_type.columns if of == side}
    encoded = encode_messages(definition, version, pa.record_batch(columns), prefix=int16_prefix(prefix))
    message: bytes = encoded[0].as_py()
    return message
