"""Where rows go: a table for people, or JSON Lines, CSV, Parquet or Arrow for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import IO, Any, Protocol

import click
import pyarrow as pa

from kraftlog.cli.cells import csv_lines, json_lines, pieces
from kraftlog.cli.target import check_target, is_device, is_standard_output, open_target
from kraftlog.disk.remote_path import LogPath

FORMATS = ("table", "jsonl", "csv", "parquet", "arrow")
STREAM_ENDING = ".arrows"  # Arrow's own name for files that hold a stream
ENDINGS = {
    ".txt": "table",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    STREAM_ENDING: "arrow",
}
ENDINGS_OF_OWN = {"json": ".json", "text": ".txt"}


class Writer(Protocol):
    """Takes record batches."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""

    def close(self) -> None:
        """Write what is left."""


class _JsonLines:
    def __init__(self, file: IO[bytes], binary: str) -> None:
        self._file = file
        self._binary = binary

    def write(self, batch: pa.RecordBatch) -> None:
        for piece in pieces(batch):
            self._file.write(memoryview(json_lines(piece, self._binary)))

    def close(self) -> None:
        self._file.flush()


class _Csv:
    """Null is an empty field, and an empty value a quoted one: a tombstone is not an empty record."""

    def __init__(self, file: IO[bytes], schema: pa.Schema, binary: str) -> None:
        self._file = file
        self._binary = binary
        self._file.write((",".join(schema.names) + "\n").encode())

    def write(self, batch: pa.RecordBatch) -> None:
        for piece in pieces(batch):
            self._file.write(memoryview(csv_lines(piece, self._binary)))

    def close(self) -> None:
        self._file.flush()


class _Arrow:
    """A stream of Arrow's IPC format, or a file of it."""

    def __init__(self, file: IO[bytes], schema: pa.Schema, *, is_stream: bool) -> None:
        self._writer = (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(file, schema)

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


def _writer(file: IO[bytes], form: str, schema: pa.Schema, binary: str, *, is_stream: bool, is_full: bool) -> Writer:
    if form == "jsonl":
        return _JsonLines(file, binary)
    if form == "csv":
        return _Csv(file, schema, binary)
    if form == "arrow":
        return _Arrow(file, schema, is_stream=is_stream)
    if form == "parquet":
        return _Parquet(file, schema)
    from kraftlog.cli.table_output import TableForPeople

    return TableForPeople(file, schema, binary, is_full=is_full)


@contextmanager
def open_writer(
    form: str, output: str | None, schema: pa.Schema, binary: str, *, force: bool, is_full: bool = False
) -> Iterator[Writer]:
    """Open a writer on a file, or on standard output when ``output`` is None or ``-``.

    The file takes its name when the ``with`` block ends; nothing is left when it raises.
    """
    is_stream = is_standard_output(output) or str(output).endswith(STREAM_ENDING)
    with open_target(output, force=force) as file:
        writer = _writer(file, form, schema, binary, is_stream=is_stream, is_full=is_full)
        yield writer
        writer.close()


def format_of(form: str | None, output: str | None, own_format: str | None = None) -> str | None:
    """Return the format that was given, or that the name of a file calls for; None on standard output.

    Raises
    ------
    click.UsageError
        When the file's name says none and the command has no format of its own, or when bytes would go where they
        cannot.
    """
    if output is None or is_standard_output(output):
        if form == "parquet":
            raise click.UsageError("--format parquet needs --output")
        if form == "arrow" and sys.stdout is not None and sys.stdout.isatty():
            raise click.UsageError("--format arrow is not for a terminal; give --output, or a pipe")
        return form
    path = Path(output)
    if form is not None or is_device(path):
        return form
    if own_format is not None and path.suffix == ENDINGS_OF_OWN[own_format]:
        return own_format
    known = ENDINGS.get(path.suffix.lower())
    if known is None and own_format is None:
        raise click.UsageError(f"--output {output}: expected a name that ends in {', '.join(ENDINGS)}, or --format")
    return known


@dataclass(frozen=True)
class Output:
    """What the options of output say.

    Attributes
    ----------
    path : str or None
        A file; None and - are standard output.
    form : str or None
        None is the default of the command.
    force : bool
        Whether an existing file is replaced.
    columns : list of str or None
    limit : int or None
        Most rows to write.
    binary : str
        Text of bytes.
    """

    path: str | None
    form: str | None
    force: bool
    columns: list[str] | None
    limit: int | None
    binary: str

    def check(self, folders: Iterable[LogPath]) -> None:
        """Refuse a file in a folder that is read, and one that exists."""
        check_target(self.path, folders, force=self.force)

    @contextmanager
    def open(self, schema: pa.Schema) -> Iterator[LimitedWriter]:
        """Open a writer of as many rows as are wanted."""
        with open_writer(self.form or "table", self.path, schema, self.binary, force=self.force) as writer:
            yield LimitedWriter(writer, self.limit)

    def write_texts(self, texts: Iterable[str]) -> None:
        """Write what a command has printed in a format of its own."""
        with open_target(self.path, force=self.force) as file:
            for text in texts:
                file.write(text.encode())


class LimitedWriter:
    """Hands on as many rows as are wanted."""

    def __init__(self, writer: Writer, limit: int | None) -> None:
        self._writer = writer
        self._left = limit

    @property
    def is_full(self) -> bool:
        """Whether no more rows are wanted."""
        return self._left == 0

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Write rows, or those that are wanted of them."""
        if self._left is not None:
            rows = rows.slice(0, self._left)
            self._left -= rows.num_rows
        for batch in [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches():
            self._writer.write(batch)


def takes_output(command: Callable[..., Any], own_format: str | None) -> Callable[..., Any]:
    """Return a command that is given its options of output as one ``Output``."""

    @wraps(command)
    def run(**given: Any) -> Any:
        path = given.pop("output")
        form = format_of(given.pop("form"), path, own_format)
        force, columns, limit = (given.pop(name) for name in ("force", "columns", "limit"))
        return command(output=Output(path, form, force, columns, limit, given.pop("binary", "base64")), **given)

    return run
