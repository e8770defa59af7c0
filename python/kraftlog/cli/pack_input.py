"""Records to pack: from JSON Lines as ``kraftlog records`` writes them, or from Parquet."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.errors import RecordError

BYTES_AT_ONCE = 4 << 20
ROWS_AT_ONCE = 1 << 13
PARQUET_MAGIC = b"PAR1"
PACKED = ("key", "value", "timestamp", "timestamp_ms", "headers")
_IGNORED = (schema.RECORDS.shown.keys() | schema.RECORDS.on_request.keys()) - set(PACKED)
_ROWS = schema.RECORDS.select(["key", "value", "timestamp_ms", "headers"])
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class InputError(RecordError):
    """Input that cannot be packed; names the line, or the record, and the field."""


BINARY_HELP = 'Strings as bytes; {"base64": "..."} is bytes that are no text.'
BINARY_BYTES: dict[str, Callable[[str], bytes]] = {
    "text": str.encode,
    "base64": lambda text: base64.b64decode(text, validate=True),
    "hex": bytes.fromhex,
    "utf8": str.encode,
}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("it is not a text")
    return value


def _timestamp_ms(value: Any) -> int:
    if value is None:
        return NO_TIMESTAMP
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise TypeError("it is not a number of milliseconds")
    return value


def _timestamp(value: Any) -> int:
    if value is None:
        return NO_TIMESTAMP
    moment = datetime.fromisoformat(_text(value))
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND


class _Line:
    """Turns a line into a row of ``_ROWS``."""

    def __init__(self, binary: str) -> None:
        self._bytes = BINARY_BYTES[binary]
        self._readers: dict[str, Callable[[Any], Any]] = {
            "key": self._binary,
            "value": self._binary,
            "timestamp": _timestamp,
            "timestamp_ms": _timestamp_ms,
            "headers": self._headers,
        }

    def row(self, number: int, line: bytes) -> tuple[Any, ...]:
        try:
            given = json.loads(line)
        except ValueError as error:
            raise InputError(f"line {number}: not JSON: {error}") from None
        if not isinstance(given, dict):
            raise InputError(f"line {number}: not a JSON object")
        row = {name: self._read(number, name, value) for name, value in given.items() if name not in _IGNORED}
        if not row:
            raise InputError(f"line {number}: none of the fields {', '.join(PACKED)}")
        stamp = row.get("timestamp_ms", row.get("timestamp", NO_TIMESTAMP))
        return row.get("key"), row.get("value"), stamp, row.get("headers", [])

    def _read(self, number: int, name: str, value: Any) -> Any:
        if name not in self._readers:
            raise InputError(f"line {number}: field {name!r} is not a column of the table records")
        try:
            return self._readers[name](value)
        except (TypeError, ValueError) as error:
            raise InputError(f"line {number}: field {name!r}: {error}") from None

    def _binary(self, value: Any) -> bytes | None:
        if isinstance(value, dict):  # bytes that are no text
            if value.keys() != {"base64"}:
                raise TypeError('an object is {"base64": "..."}')
            return BINARY_BYTES["base64"](_text(value["base64"]))
        return None if value is None else self._bytes(_text(value))

    def _headers(self, value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list) or not all(isinstance(pair, dict) for pair in value):
            raise TypeError("it is not a list of objects")
        return [{"key": _text(pair.get("key")), "value": self._binary(pair.get("value"))} for pair in value]


def json_rows(lines: Iterable[bytes], binary: str) -> Iterator[pa.RecordBatch]:
    """Read JSON Lines. A field that is left out is null; other columns of the table records are passed over.

    Parameters
    ----------
    lines : iterable of bytes
    binary : {"text", "base64", "hex", "utf8"}
        How strings stand for bytes; ``{"base64": "..."}`` is understood in their place whatever it is.

    Raises
    ------
    InputError
        Names the line and the field.
    """
    reader = _Line(binary)
    rows: list[tuple[Any, ...]] = []
    size = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        rows.append(reader.row(number, line))
        size += len(line)
        if size >= BYTES_AT_ONCE or len(rows) == ROWS_AT_ONCE:
            yield _record_batch(rows)
            rows, size = [], 0
    if rows:
        yield _record_batch(rows)


def _record_batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(_ROWS, zip(*rows, strict=True), strict=True)
    return pa.RecordBatch.from_arrays([pa.array(values, field.type) for field, values in columns], schema=_ROWS)


def parquet_rows(file: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """Read the columns of Parquet that are packed.

    Raises
    ------
    InputError
        When it has none of them.
    """
    from pyarrow.parquet import ParquetFile

    parquet = ParquetFile(file)
    columns = [name for name in PACKED if name in parquet.schema_arrow.names]
    if not columns:
        raise InputError(f"none of the columns {', '.join(PACKED)}")
    groups = [parquet.metadata.row_group(number) for number in range(parquet.metadata.num_row_groups)]
    row_bytes = sum(group.total_byte_size for group in groups) // max(1, parquet.metadata.num_rows) + 1
    rows = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE // row_bytes))
    yield from parquet.iter_batches(rows, columns=columns)


@contextmanager
def input_rows(source: str, binary: str) -> Iterator[Iterator[pa.RecordBatch]]:
    """Open JSON Lines, or Parquet, for a ``with`` block; ``-`` is standard input, for JSON Lines."""
    if source == "-":
        yield json_rows(sys.stdin.buffer, binary)
        return
    with Path(source).open("rb") as file:
        yield parquet_rows(file) if _is_parquet(file) else json_rows(file, binary)


def _is_parquet(file: IO[bytes]) -> bool:
    magic = file.read(len(PARQUET_MAGIC))
    file.seek(0)
    return magic == PARQUET_MAGIC
