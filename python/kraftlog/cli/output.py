"""Where rows go: a table for people, or JSON Lines, CSV, Parquet or Arrow for programs."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import click
import pyarrow as pa

from kraftlog.cli.target import check_target, is_device, is_standard_output, open_target, pager
from kraftlog.disk.remote_path import LogPath

if TYPE_CHECKING:
    from kraftlog.cli.format_string import FormatString

FIRST_ROWS = 100  # of a table on a terminal
NARROWEST_TEXT = 60  # columns that lines of text take where the terminal has fewer
COUNTING_SECONDS = 0.3  # for which the rows behind these are counted
FORMATS = ("table", "jsonl", "csv", "parquet", "arrow")
SENTENCES = "text"  # lines for people, of a command that says what it found in sentences
CONTINUED = "    "  # before the other parts of a sentence that takes several lines
BINARY_TEXTS = ("text", "base64", "hex", "utf8")
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

    @property
    def remarks(self) -> Sequence[str]:
        """What is to be said when all is written."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""

    def flush(self) -> None:
        """Write what waits, as no more rows come for now."""

    def close(self) -> None:
        """Write what is left."""

    def abandon(self) -> None:
        """Write nothing more: the file is not wanted."""


class _Quiet:
    remarks = ()

    def abandon(self) -> None:
        """Write nothing more."""


class _Lines(_Quiet):
    """JSON Lines or CSV. In CSV null is an empty field, and an empty value a quoted one."""

    def __init__(self, file: IO[bytes], form: str, schema: pa.Schema, binary: str, *, has_names: bool = True) -> None:
        self._file = file
        self._form = form
        self._binary = binary
        if form == "csv" and has_names:
            self._file.write((",".join(schema.names) + "\n").encode())

    def write(self, batch: pa.RecordBatch) -> None:
        from kraftlog.cli.cells import csv_lines, json_lines, pieces

        lines = csv_lines if self._form == "csv" else json_lines
        for piece in pieces(batch):
            self._file.write(memoryview(lines(piece, self._binary)))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.flush()


class _Formatted(_Quiet):
    """Records by a format string of kcat."""

    def __init__(self, file: IO[bytes], template: FormatString) -> None:
        self._file = file
        self._template = template

    def write(self, batch: pa.RecordBatch) -> None:
        from kraftlog.cli.cells import bytes_of, pieces

        for piece in pieces(batch):
            lines = self._template.lines(piece, is_terminal=self._file.isatty())
            self._file.write(memoryview(bytes_of(lines)))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.flush()


class _Sentences(_Quiet):
    """A line for each row, of its only column, which is text."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._width = max(shutil.get_terminal_size().columns, NARROWEST_TEXT) if file.isatty() else None

    def write(self, batch: pa.RecordBatch) -> None:
        from kraftlog.cli.table_output import printable

        texts = batch.column(0)
        for line in (printable(texts) if self._file.isatty() else texts).to_pylist():
            self._file.write(f"{broken_line(line, self._width, CONTINUED)}\n".encode())

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.flush()


class _Arrow(_Quiet):
    """A stream of Arrow's IPC format, or a file of it."""

    def __init__(self, file: IO[bytes], schema: pa.Schema, *, is_stream: bool) -> None:
        self._file = file
        self._writer = (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._writer.close()


class _Parquet(_Quiet):
    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        from pyarrow.parquet import ParquetWriter

        self._writer = ParquetWriter(file, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def flush(self) -> None:
        """Write nothing: a file is complete at its end alone."""

    def close(self) -> None:
        self._writer.close()

    def abandon(self) -> None:
        self._writer.is_open = (
            False  # else pyarrow writes the footer when it frees the writer, after the file is closed
        )


def _writer(
    file: IO[bytes],
    form: str | FormatString,
    schema: pa.Schema,
    binary: str,
    *,
    is_stream: bool,
    is_full: bool,
    has_names: bool,
) -> Writer:
    if not isinstance(form, str):
        return _Formatted(file, form)
    if form in ("jsonl", "csv"):
        return _Lines(file, form, schema, binary, has_names=has_names)
    if form == SENTENCES:
        return _Sentences(file)
    if form == "arrow":
        return _Arrow(file, schema, is_stream=is_stream)
    if form == "parquet":
        return _Parquet(file, schema)
    from kraftlog.cli.table_output import TableForPeople

    return TableForPeople(file, schema, binary, is_full=is_full)


@contextmanager
def open_writer(
    form: str | FormatString,
    output: str | None,
    schema: pa.Schema,
    binary: str,
    *,
    force: bool,
    is_full: bool = False,
    is_paged: bool = False,
    has_names: bool = True,
) -> Iterator[Writer]:
    """Open a writer on a file, or on standard output when ``output`` is None or ``-``.

    The file takes its name when the ``with`` block ends; nothing is left when it raises.
    """
    is_stream = is_standard_output(output) or str(output).endswith(STREAM_ENDING)
    with open_target(output, force=force, is_paged=is_paged) as file:
        writer = _writer(file, form, schema, binary, is_stream=is_stream, is_full=is_full, has_names=has_names)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abandon()
            raise
    for remark in writer.remarks:
        print(remark, file=sys.stderr)


def format_of(form: str | None, output: str | None, own_format: str | None = None) -> str | None:
    """Return the format that was given, or that the name of a file calls for; None where neither says one.

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
        None is the default of the command: of rows a table.
    force : bool
        Whether an existing file is replaced.
    columns : list of str or None
    limit, tail : int or None
        Most rows to write: the first, or the last.
    shows_all : bool
        Whether a table on a terminal goes on behind ``FIRST_ROWS`` rows.
    is_full : bool
        Whether a table on a terminal has all columns, with nothing shortened.
    binary : str or None
        Text of bytes; by default text where they are text: else hex in tables, and base64 elsewhere.
    template : FormatString or None
        Takes the place of a format.
    piped : str
        The format where none was given, and standard output is no terminal.
    has_names : bool
        Whether CSV begins with the names of the columns.
    """

    path: str | None
    form: str | None
    force: bool = False
    columns: list[str] | None = None
    limit: int | None = None
    tail: int | None = None
    shows_all: bool = False
    is_full: bool = False
    binary: str | None = None
    template: FormatString | None = None
    piped: str = "table"
    has_names: bool = True

    def check(self, folders: Iterable[LogPath]) -> None:
        """Refuse a file in a folder that is read, and one that exists."""
        check_target(self.path, folders, force=self.force)

    @property
    def is_on_terminal(self) -> bool:
        """Whether rows are shown on a terminal."""
        return is_standard_output(self.path) and sys.stdout is not None and sys.stdout.isatty()

    @property
    def text_width(self) -> int | None:
        """Columns that lines of text are broken for; None where they are not."""
        return max(shutil.get_terminal_size().columns, NARROWEST_TEXT) if self.is_on_terminal else None

    @property
    def is_paged(self) -> bool:
        """Whether a pager shows them."""
        return self.is_on_terminal and pager() is not None

    @contextmanager
    def open(self, schema: pa.Schema, *, is_endless: bool = False) -> Iterator[WantedRows]:
        """Open a writer of the rows that are wanted; says on standard error how many more there are.

        Parameters
        ----------
        schema : pyarrow.Schema
        is_endless : bool
            Whether rows come for ever: all are shown, and no pager shows them.
        """
        form = self.template or self.form or ("table" if self.is_on_terminal else self.piped)
        is_short = (
            self.is_on_terminal and form == "table" and not self.shows_all and (self.limit, self.tail) == (None, None)
        )
        is_short = is_short and not is_endless
        binary = self.binary or "text"
        with open_writer(
            form,
            self.path,
            schema,
            binary,
            force=self.force,
            is_full=self.is_full,
            is_paged=self.is_paged and not is_endless,
            has_names=self.has_names,
        ) as writer:
            rows = WantedRows(writer, FIRST_ROWS if is_short else self.limit, self.tail, counts_others=is_short)
            yield rows
            rows.finish()
        if is_short and rows.others:
            others = f"{rows.others} more" if rows.is_at_end else f"more than {rows.others} more"
            shown = f"the first {FIRST_ROWS} rows, and there are {others}"
            print(f"{shown}: --all shows all, --limit N other numbers, --tail N the last", file=sys.stderr)

    def write_texts(self, texts: Iterable[str], *, is_endless: bool = False) -> None:
        """Write what a command has printed in a format of its own."""
        with open_target(self.path, force=self.force, is_paged=self.is_paged and not is_endless) as file:
            for text in texts:
                file.write(text.encode())


def broken_line(line: str, width: int | None, indent: str) -> str:
    """Return a line broken between words, with an indent before all parts but the first; words stay whole."""
    if width is None or len(line) <= width:
        return line
    return "\n".join(
        textwrap.wrap(
            line,
            width,
            subsequent_indent=indent,
            drop_whitespace=True,
            break_long_words=False,
            break_on_hyphens=False,
            expand_tabs=False,
            replace_whitespace=False,
        )
    )


class WantedRows:
    """Hands on the rows that are wanted, the first or the last ones, to a writer.

    Parameters
    ----------
    writer : Writer
    limit, tail : int or None
        Most rows to hand on: the first, or the last, which are held until ``finish``.
    counts_others : bool
        Whether rows behind the limit are counted, for ``COUNTING_SECONDS``.

    Attributes
    ----------
    others : int
        Rows that were not handed on.
    is_at_end : bool
        Whether these are all.
    """

    def __init__(self, writer: Writer, limit: int | None, tail: int | None, *, counts_others: bool = False) -> None:
        self._writer = writer
        self._left = limit
        self._tail = tail
        self._last: deque[pa.RecordBatch] = deque()
        self._held = 0
        self._counts_until = float("inf") if counts_others else 0.0
        self.others = 0
        self.is_at_end = True

    @property
    def is_full(self) -> bool:
        """Whether no more rows are wanted."""
        if self._left != 0 or time.monotonic() < self._counts_until:
            return False
        self.is_at_end = False
        return True

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take rows, and write those that are wanted."""
        for batch in [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches():
            if self._tail is not None:
                self._hold(batch, self._tail)
                continue
            wanted = batch if self._left is None else batch.slice(0, self._left)
            if wanted.num_rows:
                self._writer.write(wanted)
            self.others += batch.num_rows - wanted.num_rows
            if self._left is not None:
                self._left -= wanted.num_rows
                if self._left == 0 and self._counts_until == float("inf"):
                    self._counts_until = time.monotonic() + COUNTING_SECONDS

    def flush(self) -> None:
        """Write what waits, as no more rows come for now."""
        self._writer.flush()

    def finish(self) -> None:
        """Write the rows that are held."""
        for at, batch in enumerate(self._last):
            self._writer.write(batch.slice(max(0, self._held - (self._tail or 0))) if at == 0 else batch)

    def _hold(self, batch: pa.RecordBatch, tail: int) -> None:
        self._last.append(batch)
        self._held += batch.num_rows
        while self._last and self._held - self._last[0].num_rows >= tail:
            self._held -= self._last.popleft().num_rows


def takes_output(command: Callable[..., Any], own_format: str | None, piped: str) -> Callable[..., Any]:
    """Return a command that is given its options of output as one ``Output``."""
    names = [field.name for field in fields(Output) if field.name not in ("path", "form", "piped")]

    @wraps(command)
    def run(**given: Any) -> Any:
        path, form = given.pop("output"), given.pop("form")
        rest = {name: given.pop(name) for name in names if name in given}
        if rest.get("template") is None:
            form = format_of(form, path, own_format)
        else:
            if form is not None or rest["columns"] is not None:
                raise click.UsageError("-f says format and columns; --format and --columns do not go with it")
            rest["columns"] = rest["template"].columns
        if sum((rest["limit"] is not None, rest["tail"] is not None, rest["shows_all"])) > 1:
            raise click.UsageError("--limit, --tail and --all exclude each other")
        return command(output=Output(path, form, piped=piped, **rest), **given)

    return run
