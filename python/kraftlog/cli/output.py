"""Where rows go: a table for people, or JSON Lines, CSV, Parquet or Arrow for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Protocol

import pyarrow as pa

from kraftlog.cli.jsonl import BINARY_TEXTS, json_lines, plain_values

FORMATS = ("table", "jsonl", "csv", "parquet", "arrow")


class Writer(Protocol):
    """Takes record batches."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""

    def close(self) -> None:
        """Write what is left."""


class _JsonLines:
    def __init__(self, file: IO[bytes], binary: str) -> None:
        self._file = file
        self._text = BINARY_TEXTS[binary]

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write("".join(json_lines(batch, self._text)).encode())

    def close(self) -> None:
        self._file.flush()


class _Csv:
    """Null is an empty field, and an empty value a quoted one: a tombstone is not an empty record."""

    def __init__(self, file: IO[bytes], schema: pa.Schema, binary: str) -> None:
        self._file = file
        self._text = BINARY_TEXTS[binary]
        self._file.write((",".join(schema.names) + "\n").encode())

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [list(map(_csv_cell, plain_values(column, self._text))) for column in batch.columns]
        self._file.write("".join(",".join(row) + "\n" for row in zip(*columns, strict=True)).encode())

    def close(self) -> None:
        self._file.flush()


_NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$')


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
    return '"' + text.replace('"', '""') + '"' if not text or _NEEDS_QUOTES.search(text) else text


class _Arrow:
    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._writer = pa.ipc.new_stream(file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class _Parquet:
    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        from pyarrow.parquet import ParquetWriter

        self._writer = ParquetWriter(file, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


def _writer(file: IO[bytes], form: str, schema: pa.Schema, binary: str) -> Writer:
    if form == "jsonl":
        return _JsonLines(file, binary)
    if form == "csv":
        return _Csv(file, schema, binary)
    if form == "arrow":
        return _Arrow(file, schema)
    if form == "parquet":
        return _Parquet(file, schema)
    from kraftlog.cli.table_output import TableForPeople

    return TableForPeople(file, schema, binary)


@contextmanager
def open_writer(form: str, output: str | None, schema: pa.Schema, binary: str) -> Iterator[Writer]:
    """Open a writer on a file, or on standard output when ``output`` is None or ``-``."""
    if output in (None, "-"):
        if sys.stdout is None:
            raise OSError("standard output is closed")
        writer = _writer(sys.stdout.buffer, form, schema, binary)
        yield writer
        writer.close()
        sys.stdout.buffer.flush()
        return
    with open(str(output), "wb") as file:  # noqa: PTH123
        writer = _writer(file, form, schema, binary)
        yield writer
        writer.close()
