"""What changed between two metadata images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.metadata.diff.differing import differing
from kraftlog.metadata.diff.text import KINDS, Kind, Texts
from kraftlog.metadata.image import TYPES, Image
from kraftlog.metadata.last_by_key import codes_of
from kraftlog.metadata.quota_entities import entity_texts

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
        own; of what was added or removed, the main fields are told in one. Secrets are hidden.
    """
    old, new = before.tables(), after.tables()
    found: list[tuple[Any, ...]] = []
    for name in TYPES:
        if not old[name].equals(new[name]):
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
    line, told = "", ""
    for row in changes.to_pylist():
        subject = " ".join(part for part in (_MARKS[row["change"]], row["kind"], row["key"]) if part)
        if row["change"] == CHANGED:
            what = f"{row['field']} {_text(row['before'])} -> {_text(row['after'])}"
            if told == subject:
                line += f", {what}"
                continue
        else:
            value = row["after"] if row["change"] == ADDED else row["before"]
            what = f"{row['field']} = {value}" if row["field"] else ""
            subject += f" ({value})" if value and not row["field"] else ""
        if line:
            yield line
        line, told = f"{subject}: {what}" if what else subject, subject
    if line:
        yield line


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _changes(name: str, old: Tables, new: Tables) -> Iterator[tuple[Any, tuple[str | None, ...]]]:
    kind = KINDS[name]
    pairs = _paired(kind, old[name], new[name])
    for change, rows, tables in ((REMOVED, pairs.removed, old), (ADDED, pairs.added, new)):
        texts = Texts(name, tables)
        for row in tables[name].take(pa.array(rows)).to_pylist():
            key, field, value = texts.key(row), texts.field(row), texts.value(row)
            values = (value, None) if change == REMOVED else (None, value)
            yield texts.rank(row), (kind.name, key, change, field, *values)
    yield from _changed_fields(name, pairs, old, new)


def _changed_fields(name: str, pairs: _Pairs, old: Tables, new: Tables) -> Iterator[tuple[Any, tuple[str | None, ...]]]:
    kind = KINDS[name]
    texts = Texts(name, new)
    before, after = _rows(old[name], pairs.before), _rows(new[name], pairs.after)
    changed = {
        column: differing(before.column(column).combine_chunks(), after.column(column).combine_chunks())
        for column in texts.columns
        if column not in kind.keys and not before.column(column).equals(after.column(column))
    }
    any_changed = np.logical_or.reduce([np.zeros(len(pairs.before), bool), *changed.values()])
    rows = np.flatnonzero(any_changed)
    was, now = (table.take(pa.array(rows)).to_pylist() for table in (before, after))
    for at, row in enumerate(rows.tolist()):
        for column, differs in changed.items():
            if differs[row]:
                field = texts.field(now[at]) or column
                values = texts.text(column, was[at]), texts.text(column, now[at])
                yield texts.rank(now[at]), (kind.name, texts.key(now[at]), CHANGED, field, *values)


def _rows(table: pa.Table, rows: Rows) -> pa.Table:
    """Return some rows of a table; all of them are not copied."""
    is_all = len(rows) == table.num_rows and bool((rows == np.arange(len(rows))).all())
    return table if is_all else table.take(pa.array(rows))


def _paired(kind: Kind, before: pa.Table, after: pa.Table) -> _Pairs:
    if before.num_rows == after.num_rows and all(before.column(key).equals(after.column(key)) for key in kind.keys):
        rows, none = np.arange(before.num_rows), np.empty(0, np.int64)
        return _Pairs(none, none, rows, rows)
    keys = []
    for key in kind.keys:
        column = pa.concat_arrays([*before.column(key).chunks, *after.column(key).chunks])
        keys.append(entity_texts(column) if pa.types.is_list(column.type) else column)
    codes = codes_of(keys, before.num_rows + after.num_rows)
    first, second = codes.rows[: before.num_rows], codes.rows[before.num_rows :]
    places = np.full(codes.end, -1, np.int64)
    places[first] = np.arange(len(first))
    found = places[second]
    is_gone = np.ones(len(first), bool)
    is_gone[found[found >= 0]] = False
    return _Pairs(np.flatnonzero(is_gone), np.flatnonzero(found < 0), found[found >= 0], np.flatnonzero(found >= 0))
