"""Format strings of kcat: a topic is ``%t``, an offset ``%o``, a value ``%s``."""

from __future__ import annotations

import re
from dataclasses import dataclass

import click
import numpy as np
import pyarrow as pa

FIELDS = {
    "s": "value",
    "S": "value",
    "R": "value",
    "k": "key",
    "K": "key",
    "h": "headers",
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "T": "timestamp_ms",
}
HELP = (
    "Text of each record, as kcat has it: %t topic, %p partition, %o offset, %k key, %s value, %T timestamp in"
    " milliseconds, %h headers, %K and %S length of key and value (-1 of null), %R length of the value in 4 bytes, %% a"
    " percent sign; \\n, \\t, \\r, \\xHH."
)
BYTES = pa.large_binary()
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0"}
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_ABSENT = -1


@dataclass(frozen=True)
class FormatString:
    """A format string in pieces: bytes that are written as they are, and letters of ``FIELDS``."""

    pieces: tuple[bytes | str, ...]

    @classmethod
    def parse(cls, text: str) -> FormatString:
        """Read a format string.

        Raises
        ------
        click.UsageError
            When a letter behind a percent sign means nothing.
        """
        literal, *others = text.split("%")
        pieces: list[bytes | str] = [_literal(literal)]
        at = 0
        while at < len(others):
            part = others[at]
            if not part:  # two percent signs in a row, or one at the end
                if at + 1 == len(others):
                    raise click.UsageError(f"-f {text!r} ends with a single %; %% is a percent sign")
                pieces.append(b"%" + _literal(others[at + 1]))
                at += 2
                continue
            if part[0] not in FIELDS:
                known = ", ".join(f"%{letter}" for letter in FIELDS)
                raise click.UsageError(f"-f {text!r}: %{part[0]} is not one of {known}, %%")
            pieces += [part[0], _literal(part[1:])]
            at += 1
        return cls(tuple(piece for piece in pieces if piece))

    @property
    def columns(self) -> list[str]:
        """The columns of the table ``records`` that it needs."""
        letters = [piece for piece in self.pieces if isinstance(piece, str)]
        return list(dict.fromkeys(FIELDS[letter] for letter in letters)) or ["offset"]

    def lines(self, batch: pa.RecordBatch, *, is_terminal: bool = False) -> pa.Array:
        """Return the bytes of each row; for a terminal without control characters but those of the format itself."""
        from kraftlog.cli.cells import joined

        parts = []
        for piece in self.pieces:
            if isinstance(piece, str):
                field = _field(piece, batch.column(FIELDS[piece]))
                parts.append(_shown(field) if is_terminal else field)
            else:
                parts.append(piece)
        return joined(parts, batch.num_rows, BYTES)


def _literal(text: str) -> bytes:
    def plain(found: re.Match[bytes]) -> bytes:
        if found[1] is not None:
            return bytes([int(found[1], 16)])
        return _ESCAPES.get(found[2], found[2])

    return _ESCAPE.sub(plain, text.encode("utf-8", "surrogateescape"))


def _field(letter: str, column: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    if letter in "skSKR":
        column = _as_text(column)
    if letter in "sk":
        return column.cast(BYTES).fill_null(b"")
    if letter == "h":
        return _headers(column)
    if letter in "SKR":
        column = pc.binary_length(column).fill_null(_ABSENT)
    if letter == "R":
        data = np.asarray(column).astype(">i4").tobytes()
        ends = np.arange(len(column) + 1, dtype=np.int64) * 4
        return pa.Array.from_buffers(BYTES, len(column), [None, pa.py_buffer(ends), pa.py_buffer(data)])
    text = column.cast(pa.large_string()).fill_null("" if letter == "t" else str(_ABSENT))
    return text.cast(BYTES)


def _as_text(column: pa.Array) -> pa.Array:
    """Return keys or values as they are, and typed ones that are neither bytes nor text as JSON; null stays null."""
    import pyarrow.compute as pc

    from kraftlog.cli.cells import json_cells

    if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
        return column
    texts = json_cells(column, pa.field("value", column.type), "base64")
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, texts.type))


def _shown(field: pa.Array) -> pa.Array:
    from kraftlog.cli.cells import plain_cells
    from kraftlog.cli.table_output import printable

    return printable(plain_cells(field, "utf8")).cast(BYTES)


def _headers(column: pa.Array) -> pa.Array:
    """Return ``key=value`` with commas between them; ``NULL`` where a header has no value."""
    import pyarrow.compute as pc

    from kraftlog.cli.cells import joined

    keys, values = column.flatten().flatten()
    pairs = joined([keys.cast(BYTES), b"=", values.cast(BYTES).fill_null(b"NULL")], len(keys), BYTES)
    ends = np.concatenate([[0], np.cumsum(np.asarray(column.value_lengths().fill_null(0)), dtype=np.int64)])
    return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(ends), pairs), pa.scalar(b",", BYTES)).fill_null(b"")
