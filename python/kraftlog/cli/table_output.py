"""Rows as a table for people; rich, which draws it, is imported with this module alone."""

from __future__ import annotations

from typing import IO, cast

import pyarrow as pa
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kraftlog.cli.jsonl import BINARY_TEXTS, plain_values

ROWS_PER_TABLE = 1000
WIDE = 100_000  # columns; where no terminal limits the width, whole rows stay on a line
LONGEST_CELL = 64  # characters of a value; programs read other formats
NULL = "-"
GAP = 2


class TableForPeople:
    """A table for people: columns side by side, or a block for each row where the terminal is too narrow for that."""

    def __init__(self, file: IO[bytes], schema: pa.Schema, binary: str) -> None:
        self._text = BINARY_TEXTS[binary]
        self._schema = schema
        width = None if file.isatty() else WIDE
        self._console = Console(file=cast(IO[str], _TextFile(file)), width=width, highlight=False, emoji=False)
        self._rows = 0
        self._waiting: list[list[str]] = []
        # what is piped on is for programs as well: there only the bytes of records are cut
        self._longest = [None if pa.types.is_string(f.type) and not file.isatty() else LONGEST_CELL for f in schema]

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        for at in range(0, batch.num_rows, ROWS_PER_TABLE):
            columns = [
                [_cell(value, longest) for value in plain_values(column, self._text)]
                for column, longest in zip(batch.slice(at, ROWS_PER_TABLE).columns, self._longest, strict=True)
            ]
            self._waiting += map(list, zip(*columns, strict=True))
            if len(self._waiting) >= ROWS_PER_TABLE:
                self._print(self._waiting)
                self._waiting = []

    def _print(self, rows: list[list[str]]) -> None:
        names = self._schema.names
        widths = [max(map(cell_len, column)) + GAP for column in zip(names, *rows, strict=True)]
        if rows and sum(widths) - GAP > self._console.width:
            self._print_blocks(rows)
        else:
            self._print_table(rows)
        self._rows += len(rows)

    def _print_table(self, rows: list[list[str]]) -> None:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for field in self._schema:
            is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
            table.add_column(field.name, justify="right" if is_number else "left", no_wrap=True)
        for row in rows:
            table.add_row(*map(Text, row))
        self._console.print(table)

    def _print_blocks(self, rows: list[list[str]]) -> None:
        names = self._schema.names
        width = max(map(len, names)) + GAP
        for number, row in enumerate(rows, self._rows + 1):
            self._console.print(f"[dim]-- row {number}[/dim]")
            for name, cell in zip(names, row, strict=True):
                line = Text(f"{name:<{width}}", "bold").append(cell, "not bold")
                self._console.print(line, no_wrap=True, overflow="ellipsis")

    def close(self) -> None:
        """Write what is left."""
        if self._waiting or not self._rows:
            self._print(self._waiting)


class _TextFile:
    """A text file over one of bytes, for rich; says whether it is a terminal."""

    encoding = "utf-8"

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())

    def flush(self) -> None:
        self._file.flush()

    def isatty(self) -> bool:
        return self._file.isatty()

    def fileno(self) -> int:
        return self._file.fileno()


def _cell(value: object, longest: int | None) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return _cell(" ".join(_cell(item, None) for item in value), longest)
    if isinstance(value, dict):
        if value.keys() == {"key", "value"}:  # a header
            return f"{value['key']}={_cell(value['value'], None)}"
        pairs = (f"{name}={_cell(inner, None)}" for name, inner in value.items())
        return _cell("{" + " ".join(pairs) + "}", longest)
    text = str(value).translate(_CONTROL_CHARACTERS)
    if longest is None or len(text) <= longest:
        return text
    return text[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


_CONTROL_CHARACTERS = dict.fromkeys((*range(32), *range(127, 160)), "�")
