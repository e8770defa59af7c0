"""What may be in a log, from what its writers have noted: ``begin``, ``done``, ``shown``, each with rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Rows = tuple[Any, ...]


def possible(notes: Iterable[tuple[Any, ...]]) -> list[Rows]:
    """Return what may be there: all that is done, and of what was begun since as many units as were begun first.

    ``done`` says that all that was begun is acknowledged. What a recovery has shown stays.
    """
    allowed: list[Rows] = [()]
    for kind, *what in notes:
        if kind == "begin":
            allowed.append(allowed[-1] + what[0])
        elif kind == "done":
            allowed = [allowed[-1]]
        elif kind == "shown":
            _check(what[0], allowed)
            allowed = [what[0]]
    return allowed


def assert_possible(rows: Iterable[Any], notes: Iterable[tuple[Any, ...]]) -> None:
    """Raise unless rows are what may be there."""
    _check(tuple(rows), possible(notes))


def _check(rows: Rows, allowed: list[Rows]) -> None:
    sizes = " or ".join(str(len(each)) for each in allowed)
    assert rows in allowed, f"{sizes} rows are possible, {len(rows)} are there"


def assert_closed(notes: Iterable[tuple[Any, ...]]) -> None:
    """Raise unless what was closed was ``found`` to be whole by the next process."""
    is_closed = False
    for kind, *what in notes:
        if kind == "found" and is_closed:
            assert what[0] == (), what[0]
        if kind not in ("found", "opens"):
            is_closed = kind == "closed"
