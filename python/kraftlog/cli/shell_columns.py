"""Names in columns that fit a terminal, as ``ls`` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

_GAP = 2
_NARROWEST = 4


def columns(names: Sequence[str], width: int | None) -> Iterator[str]:
    """Return lines with the names, read downwards, in as many columns as fit; in one where no width is given."""
    lengths = [cell_len(name) + _GAP for name in names] if width else []
    for count in range(min((width or 0) // _NARROWEST, len(names)), 1, -1):
        height = -(-len(names) // count)
        widths = [max(lengths[start : start + height]) for start in range(0, len(names), height)]
        if len(widths) == count and sum(widths) <= (width or 0):
            yield from (_line(names[row::height], lengths[row::height], widths) for row in range(height))
            return
    yield from names


def _line(names: Sequence[str], lengths: Sequence[int], widths: Sequence[int]) -> str:
    padded = [name + " " * (width - length + _GAP) for name, length, width in zip(names, lengths, widths, strict=False)]
    return "".join(padded).rstrip()
