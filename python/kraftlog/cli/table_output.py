"""Rows as a table for people: columns side by side that fit the terminal."""

from __future__ import annotations

import shutil
import textwrap
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.cli.cells import TEXT, joined, pairs_of, plain_cells, size_cells
from kraftlog.cli.target import has_styles

NULL = "-"
GAP = "  "
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
LONGEST_CELL = 64  # characters of the bytes of records
COMFORTABLE, SHORTEST = 24, 12  # characters that a cell keeps when its column is made narrower
ROWS_MEASURED = 1000  # of which the widths of columns are those of all
NEVER_CUT = frozenset({"path", "file", "topic", "group", "error", "message", "command", "abort_command", "crc"})
IMPORTANT = frozenset(
    (
        *("topic", "partition", "group", "offset", "start_offset", "base_offset", "key", "value", "type", "name"),
        *("error", "state", "action", "outcome", "kind", "change", "field", "before", "after"),
    )
)
SIZES = frozenset({"size_in_bytes", "torn_bytes", "mean_batch_bytes", "size_before", "size_after"})
OWN_LINE = (
    "command",
    "abort_command",
    "message",
    "reason",
    "sentence",
    "file",
    "path",
)  # of long values, which people copy
_CONTROL = r"[\x00-\x1f\x7f-\x9f]"
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


class TableForPeople:
    """A header, then a line for each row.

    On a terminal, until a row fits the width, long values that people copy get a line of their own below the row; then
    columns are made narrower, and then left out from the last one on; of what is left out the last line says the names.
    Sizes have units there, and times are of a second; ``is_full`` shows both as they are. Elsewhere nothing is left
    out. The bytes of records are cut everywhere.
    """

    def __init__(self, file: IO[bytes], schema: pa.Schema, binary: str, *, is_full: bool) -> None:
        self._file = file
        self._schema = schema
        self._binary = binary
        self._is_terminal = file.isatty()
        self._is_full = is_full
        self._width = shutil.get_terminal_size().columns if self._is_terminal and not is_full else None
        self._waiting: list[pa.RecordBatch] = []
        self._layout: _Layout | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        if self._layout is not None:
            self._print(batch)
            return
        self._waiting.append(batch)
        if sum(rows.num_rows for rows in self._waiting) >= ROWS_MEASURED:
            self._begin()

    def abandon(self) -> None:
        """Write nothing more."""

    def flush(self) -> None:
        """Write what waits; the rows so far say how wide columns are."""
        if self._layout is None and self._waiting:
            self._begin()
        self._file.flush()

    def close(self) -> None:
        """Write what is left."""
        if self._layout is None:
            self._begin()
        self._file.flush()

    @property
    def remarks(self) -> list[str]:
        """Names of columns that were left out."""
        names = ", ".join(self._layout.left_out if self._layout else ())
        if not names:
            return []
        remark = f"not shown for want of width: {names}; --columns chooses, --full shows all"
        return textwrap.wrap(remark, self._width or len(remark), break_long_words=False, break_on_hyphens=False)

    def _begin(self) -> None:
        """Lay out the columns by the first rows, and print these."""
        waiting, self._waiting = self._waiting, []
        batch = pa.Table.from_batches(waiting, self._schema).slice(0, ROWS_MEASURED).combine_chunks()
        first = batch.to_batches()[0] if batch.num_rows else pa.RecordBatch.from_pylist([], self._schema)
        self._layout = _Layout(self._schema, self._cells(first), self._width)
        header = self._layout.header()
        self._file.write(
            (f"{_BOLD}{header}{_PLAIN}" if self._is_terminal and has_styles() else header).encode() + b"\n"
        )
        for rows in waiting:
            self._print(rows)

    def _print(self, batch: pa.RecordBatch) -> None:
        assert self._layout is not None
        if batch.num_rows:
            lines = self._layout.lines(self._cells(batch))
            self._file.write("".join(lines.to_pylist()).encode())

    def _cells(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return [
            _shortened(printable(self._texts(field, column)), self._longest(field))
            for field, column in zip(self._schema, batch.columns, strict=True)
        ]

    def _texts(self, field: pa.Field, column: pa.Array) -> pa.Array:
        if self._width is not None and field.name in SIZES:
            return size_cells(column).fill_null(NULL)
        return people_cells(column, self._binary, is_exact=self._width is None)

    def _longest(self, field: pa.Field) -> int | None:
        """Return the most characters of a cell; texts are cut where the width asks for it."""
        is_whole = self._is_full or field.name in NEVER_CUT or pa.types.is_string(field.type)
        return None if is_whole else LONGEST_CELL


class _Layout:
    """Which columns a table has, how wide each is, which stand below the row, and which were left out."""

    def __init__(self, schema: pa.Schema, cells: list[pa.Array], width: int | None) -> None:
        names = schema.names
        self._names = names
        self._is_number = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in schema]
        self._widths = [max([_width(name), *_widths(column)]) for name, column in zip(names, cells, strict=True)]
        self._cuts = [
            width is not None
            and not is_number
            and field.name not in NEVER_CUT
            and not pa.types.is_timestamp(field.type)
            for field, is_number in zip(schema, self._is_number, strict=True)
        ]
        self._shown = list(range(len(names)))
        self._below: list[int] = []
        if width is not None:
            self._put_below(width)
            self._narrow(width)
        self.left_out = [name for at, name in enumerate(names) if at not in (*self._shown, *self._below)]

    def _put_below(self, width: int) -> None:
        """Give the widest of the values that people copy lines of their own, until the others fit."""
        wide = [at for at in self._shown if self._names[at] in OWN_LINE and self._widths[at] > 2 * SHORTEST]
        for at in sorted(wide, key=lambda at: self._widths[at], reverse=True):
            if self._total() > width and len(self._shown) > 1:
                self._shown.remove(at)
                self._below = sorted([*self._below, at])

    def _narrow(self, width: int) -> None:
        """Shorten texts and leave columns out, in turns: the less important a column is, the sooner it goes."""
        full = list(self._widths)
        for least, goes in ((COMFORTABLE, set(self._names) - IMPORTANT), (SHORTEST, set(self._names))):
            self._shrink(width, least)
            for at in reversed([at for at in self._shown if self._names[at] in goes]):
                if self._total() > width and len(self._shown) > 1:
                    self._shown.remove(at)
        for at in self._shown:
            self._widths[at] = min(full[at], self._widths[at] + max(0, width - self._total()))

    def _shrink(self, width: int, least: int) -> None:
        can_shrink = [at for at in self._shown if self._cuts[at] and self._widths[at] > least]
        while self._total() > width and can_shrink:
            widest = max(can_shrink, key=lambda at: self._widths[at])
            narrowest = max(least, _width(self._names[widest]))
            self._widths[widest] = max(narrowest, self._widths[widest] - (self._total() - width))
            if self._widths[widest] == narrowest:
                can_shrink.remove(widest)

    def _total(self) -> int:
        return sum(self._widths[at] for at in self._shown) + len(GAP) * (len(self._shown) - 1)

    def header(self) -> str:
        """Return the line with the names of the columns."""
        return str(self._rows([pa.array([name], TEXT) for name in self._names])[0].as_py().rstrip("\n"))

    def lines(self, cells: list[pa.Array]) -> pa.Array:
        """Return the lines of each row, with their line ends."""
        lines = self._rows(cells)
        for at in self._below:
            with_value = joined([lines, f"{GAP}{self._names[at]}: ", cells[at], "\n"], len(lines))
            lines = pc.if_else(pc.equal(cells[at], NULL), lines, with_value)
        return lines

    def _rows(self, cells: list[pa.Array]) -> pa.Array:
        parts: list[pa.Array | str] = []
        for at in self._shown:
            is_last = at == self._shown[-1]
            cell = _shortened(cells[at], self._widths[at]) if self._cuts[at] else cells[at]
            parts += [_padded(cell, self._widths[at], right=self._is_number[at], is_last=is_last)]
            parts.append("\n" if is_last else GAP)
        lines = joined(parts, len(cells[0]))
        if pc.any(pc.ends_with(lines, " \n"), min_count=0).as_py():
            lines = pc.replace_substring_regex(lines, r" +\n$", "\n")
        return lines


def people_cells(column: pa.Array, binary: str, *, is_exact: bool) -> pa.Array:
    """Return the text of each value: lists with spaces between their elements, headers as key=value.

    Times are as exact as they are, or like ``2026-11-01 12:00:00``, in UTC.
    """
    if pa.types.is_map(column.type):
        column = pairs_of(column)
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        elements = people_cells(column.flatten(), binary, is_exact=is_exact)
        ends = np.concatenate([[0], np.cumsum(np.asarray(column.value_lengths().fill_null(0)), dtype=np.int64)])
        texts = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(ends), elements), pa.scalar(" ", TEXT))
    elif pa.types.is_struct(kind):
        names = [field.name for field in kind]
        inner = [people_cells(part, binary, is_exact=is_exact) for part in column.flatten()]
        if names == ["key", "value"]:
            texts = joined([inner[0], "=", inner[1]], len(column))
        else:
            pairs = [part for name, cells in zip(names, inner, strict=True) for part in (f" {name}=", cells)]
            texts = pc.replace_substring_regex(joined(["{", *pairs, "}"], len(column)), r"^\{ ", "{")
    else:
        texts = plain_cells(column, binary)
        if pa.types.is_timestamp(kind) and not is_exact:
            texts = pc.replace_substring_regex(texts, r"T([0-9:]{8}).*", r" \1")
    if column.null_count:
        texts = pc.if_else(column.is_valid(), texts, pa.scalar(None, TEXT))
    return texts.fill_null(NULL)


def printable(texts: pa.Array) -> pa.Array:
    """Return texts without control characters: one could change the terminal."""
    data = texts.buffers()[2]
    if data is None:
        return texts
    at = np.frombuffer(data, np.uint8)
    if not np.any((at < 32) | (at == 127) | (at == 0xC2)):  # 0xC2 begins those from U+0080 on
        return texts
    return pc.replace_substring_regex(texts, _CONTROL, "\ufffd")


def _shortened(texts: pa.Array, longest: int | None) -> pa.Array:
    """Return texts of which none takes more columns of a terminal."""
    if longest is None or max(_widths(texts)) <= longest:
        return texts
    if not _is_narrow(texts):
        return pa.array([_cut(text, longest) for text in texts.to_pylist()], TEXT)
    cut = joined([pc.utf8_slice_codeunits(texts, 0, longest - 1), ELLIPSIS], len(texts))
    return pc.if_else(pc.greater(pc.utf8_length(texts), longest), cut, texts)


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while _width(text) > width - 1:
        text = text[:-1]
    return text + ELLIPSIS


def _width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _is_narrow(texts: pa.Array) -> bool:
    """Whether each character takes one column: of those from U+0300 on, the ellipsis alone is known to."""
    data = texts.buffers()[2]
    if data is None:
        return True
    at = np.frombuffer(data, np.uint8)
    (high,) = np.nonzero(at >= 0xCC)  # which begin characters from U+0300 on
    if not len(high):
        return True
    if high[-1] + 3 > len(at):
        return False
    found = at[high].astype(np.uint32) << 16 | at[high + 1].astype(np.uint32) << 8 | at[high + 2]
    return bool(np.all(found == int.from_bytes(ELLIPSIS.encode())))


def _widths(texts: pa.Array) -> list[int]:
    if not len(texts):
        return [0]
    if _is_narrow(texts):
        return [pc.max(pc.utf8_length(texts)).as_py()]
    return [_width(text) for text in texts.to_pylist()]


def _padded(texts: pa.Array, width: int, *, right: bool, is_last: bool) -> pa.Array:
    """Return texts of one width; the last column has no spaces behind it."""
    if is_last and not right:
        return texts
    if _is_narrow(texts):
        return (pc.utf8_lpad if right else pc.utf8_rpad)(texts, width)
    return pa.array([text + " " * (width - _width(text)) for text in texts.to_pylist()], TEXT)
