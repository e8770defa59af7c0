"""What a metadata log shows, by a plain state machine over its records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import kraftlog

BEGIN, END, ABORT = 0x17, 0x18, 0x19


def records(folder: Path) -> list[tuple[int, bytes]]:
    """Return offsets and values of the log's data records; every fault is an error here."""
    rows = kraftlog.open(folder).records(columns=["offset", "value"], strict=True).to_table()
    return list(zip(rows["offset"].to_pylist(), rows["value"].to_pylist(), strict=True))


def visible(folder: Path) -> list[bytes]:
    """Return the values that are visible at the end of the log."""
    return [value for _, value in _visible(records(folder))]


def _visible(rows: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    held: list[tuple[int, bytes]] | None = None
    for row in rows:
        kind = row[1][1]
        if kind == BEGIN:
            assert held is None, "Begin inside a transaction"
            held = []
        elif kind in (END, ABORT):
            assert held is not None, "End or Abort outside a transaction"
            yield from held if kind == END else ()
            held = None
        elif held is None:
            yield row
        else:
            held.append(row)
