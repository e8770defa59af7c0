"""What changed between two metadata images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.metadata.diff.differing import differing
from kraftlog.metadata.diff.text import Texts
from kraftlog.metadata.image import TYPES, Image
from kraftlog.metadata.keyed_records import key_codes
from kraftlog.metadata.readable import Row
from kraftlog.metadata.record_keys import record_keys
from kraftlog.metadata.record_types import IMAGE_TYPES, PARTITIONS, ImageType

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
SCHEMA = pa.schema([(name, pa.string()) for name in ("kind", "key", "change", "field", "before", "after")])
_ORDER = {REMOVED: 0, ADDED: 1, CHANGED: 2}
_MARKS = {REMOVED: "-", ADDED: "+", CHANGED: "~"}

Rows = npt.NDArray[np.int64]
Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class _Pairs:
    """Rows of two tables: those that only one of them has, and those with the same key, side by side."""

    removed: Rows
    added: Rows
    before: Rows
    after: Rows


def diff(before: Image, after: Image) -> pa.Table:
    """Return what changed from one image to another.

    Returns
    -------
    pyarrow.Table
        Columns ``kind`` (``topic``, ``partition``, ``broker`` ...), ``key`` (``orders-3``), ``change`` (``added``,
        ``removed``, ``changed``), ``field``, ``before`` and ``after``, all text. A field that changed has a row of its
        own; the main fields of what was added or removed are in one row. Secrets are hidden.
    """
    return diff_tables(before.tables(), after.tables())


def diff_tables(old: Tables, new: Tables) -> pa.Table:
    """Return what changed, as ``diff`` does, from the records of two images; types that are in neither are the same."""
    found: list[tuple[Any, ...]] = []
    for name in TYPES:
        if name in new and not old[name].equals(new[name]):
            found += sorted(_changes(name, old, new), key=lambda change: (change[0], _ORDER[change[1][2]]))
    columns = zip(*(change[1] for change in found), strict=True) if found else [()] * len(SCHEMA)
    return pa.Table.from_arrays([pa.array(column, pa.string()) for column in columns], schema=SCHEMA)


def describe(changes: pa.Table) -> Iterator[str]:
    """Return a line for each thing that ``diff`` found.

    Examples
    --------
    >>> row = {"kind": "partition", "key": "orders-3", "change": "changed"}
    >>> rows = [row | {"field": "leader", "before": "1", "after": "2"}]
    >>> list(describe(pa.Table.from_pylist(rows, schema=SCHEMA)))
    ['~ partition orders-3: leader 1 -> 2']
    """
    line, shown = "", ""
    for row in changes.to_pylist():
        subject = " ".join(part for part in (_MARKS[row["change"]], row["kind"], row["key"]) if part)
        if row["change"] == CHANGED:
            what = f"{row['field']} {_text(row['before'])} -> {_text(row['after'])}"
            if shown == subject:
                line += f", {what}"
                continue
        else:
            value = row["after"] if row["change"] == ADDED else row["before"]
            what = f"{row['field']} = {value}" if row["field"] else ""
            subject += f" ({value})" if value and not row["field"] else ""
        if line:
            yield line
        line, shown = f"{subject}: {what}" if what else subject, subject
    if line:
        yield line


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _changes(name: str, old: Tables, new: Tables) -> Iterator[tuple[Any, tuple[str | None, ...]]]:
    kind, texts = IMAGE_TYPES[name], Texts(name)
    pairs = _paired(kind, old[name], new[name])
    for change, rows, tables in ((REMOVED, pairs.removed, old), (ADDED, pairs.added, new)):
        found = tables[name].take(pa.array(rows))
        for key, row in zip(record_keys(name, found, tables).to_pylist(), found.to_pylist(), strict=True):
            part, value = texts.part(row), texts.value(row)
            values = (value, None) if change == REMOVED else (None, value)
            yield _rank(kind, key, row), (kind.kind, key, change, part, *values)
    yield from _changed_fields(name, pairs, old, new)


def _changed_fields(name: str, pairs: _Pairs, old: Tables, new: Tables) -> Iterator[tuple[Any, tuple[str | None, ...]]]:
    kind, texts = IMAGE_TYPES[name], Texts(name)
    before, after = _rows(old[name], pairs.before), _rows(new[name], pairs.after)
    changed = {
        column: differing(before.column(column).combine_chunks(), after.column(column).combine_chunks())
        for column in texts.columns
        if column not in kind.keys and not before.column(column).equals(after.column(column))
    }
    any_changed = np.logical_or.reduce([np.zeros(len(pairs.before), bool), *changed.values()])
    rows = np.flatnonzero(any_changed)
    shown = after.take(pa.array(rows))
    was, now = before.take(pa.array(rows)).to_pylist(), shown.to_pylist()
    keys = record_keys(name, shown, new).to_pylist()
    for at, row in enumerate(rows.tolist()):
        for column, differs in changed.items():
            if differs[row]:
                field = texts.part(now[at]) or column
                values = texts.text(column, was[at]), texts.text(column, now[at])
                yield _rank(kind, keys[at], now[at]), (kind.kind, keys[at], CHANGED, field, *values)


def _rank(kind: ImageType, key: str, row: Row) -> tuple[Any, ...]:
    """Return what records of a type are sorted by: numbers in their keys, then texts; partitions by topic first."""
    if kind is PARTITIONS:
        return (key.rpartition("-")[0], row["topic_id"], row["partition_id"])
    numbers = [row[column] for column in kind.keys if isinstance(row[column], int)]
    return (*numbers, key, (row[kind.part] or "") if kind.part else "")


def _rows(table: pa.Table, rows: Rows) -> pa.Table:
    """Return some rows of a table; all of them are not copied."""
    is_all = len(rows) == table.num_rows and bool((rows == np.arange(len(rows))).all())
    return table if is_all else table.take(pa.array(rows))


def _paired(kind: ImageType, before: pa.Table, after: pa.Table) -> _Pairs:
    if before.num_rows == after.num_rows and all(before.column(key).equals(after.column(key)) for key in kind.keys):
        rows, none = np.arange(before.num_rows), np.empty(0, np.int64)
        return _Pairs(none, none, rows, rows)
    keys = [
        pa.chunked_array([*before.column(key).chunks, *after.column(key).chunks], before.column(key).type)
        for key in kind.keys
    ]
    codes = key_codes(keys, before.num_rows + after.num_rows)
    first, second = codes.rows[: before.num_rows], codes.rows[before.num_rows :]
    places = np.full(codes.end, -1, np.int64)
    places[first] = np.arange(len(first))
    found = places[second]
    is_gone = np.ones(len(first), bool)
    is_gone[found[found >= 0]] = False
    return _Pairs(np.flatnonzero(is_gone), np.flatnonzero(found < 0), found[found >= 0], np.flatnonzero(found >= 0))
