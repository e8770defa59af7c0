"""Rows for what changed: one for each record that was added or removed, and for each field that changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.last_by_key import NOWHERE
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata.changed import Changed, ChangedByType, Rows
from kraftlog.metadata.column_texts import column_texts, json_texts
from kraftlog.metadata.diff.concerned import brokers_concerned, key_columns, topics_concerned
from kraftlog.metadata.diff.differing import differing
from kraftlog.metadata.record_keys import record_keys
from kraftlog.metadata.record_types import IMAGE_TYPES, PARTITIONS, TOPICS, ImageType

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
CHANGES = pa.array([REMOVED, ADDED, CHANGED])  # in the order in which those of one key come
_REMOVED, _ADDED, _CHANGED = range(3)
_LABELS = {"topic_id": "id", "feature_level": "level"}
SCHEMA = pa.schema(
    [
        ("group", pa.int64()),
        *((name, pa.string()) for name in ("kind", "key", "change", "field", "before", "after", "topic")),
        ("partition", pa.int32()),
        ("brokers", pa.list_(pa.int32())),
    ]
)

Whole = Callable[[str, pa.Table], pa.Array]
"""Returns a text for each record of a type that was added or removed as a whole."""


def main_fields(name: str, rows: pa.Table, *, without: Sequence[str] = ()) -> pa.Array:
    """Return the main fields of records as text: ``replicas [1, 2], isr [1, 2], leader 1``; secrets are hidden."""
    parts = [
        pc.binary_join_element_wise(_LABELS.get(column, column), column_texts(name, column, rows), " ")
        for column in IMAGE_TYPES[name].shown
        if column not in without
    ]
    if not parts:
        return pa.repeat("", rows.num_rows)
    return pc.binary_join_element_wise(*parts, ", ", null_handling="skip")


def change_rows(
    changed: ChangedByType, whole: Whole = json_texts, *, show_secrets: bool = False, with_brokers: bool = False
) -> pa.Table:
    """Return rows of what changed, by group, by type, and then by key.

    Parameters
    ----------
    changed : Mapping of str to Changed
    whole : callable
        Says how records that came or went are shown; of types whose keys describe parts, such as configs, it is the
        part's value.
    show_secrets : bool
    with_brokers : bool
        Whether the column ``brokers`` is filled in.

    Returns
    -------
    pyarrow.Table
        Columns of ``SCHEMA``.
    """
    rows = [
        _rows_of_type(name, changed[name], whole, show_secrets=show_secrets, with_brokers=with_brokers)
        for name in IMAGE_TYPES
        if name in changed
    ]
    table = pa.concat_tables([SCHEMA.empty_table(), *rows])
    groups = table.column("group").to_numpy()
    return table.take(pa.array(np.argsort(groups, kind="stable"))) if (groups[1:] < groups[:-1]).any() else table


@dataclass(frozen=True)
class _Piece:
    """Rows of one kind of change: which records, the column that changed if one did, and the texts."""

    records: Rows
    change: int
    column: int
    before: pa.Array
    after: pa.Array


def _rows_of_type(name: str, changed: Changed, whole: Whole, *, show_secrets: bool, with_brokers: bool) -> pa.Table:
    kind = IMAGE_TYPES[name]
    pieces = list(_pieces(kind, changed, whole, show_secrets=show_secrets))
    records = np.concatenate([np.empty(0, np.int64), *(piece.records for piece in pieces)])
    if not len(records):
        return SCHEMA.empty_table()
    lengths = [len(piece.records) for piece in pieces]
    changes = np.repeat([piece.change for piece in pieces], lengths)
    columns = np.repeat([piece.column for piece in pieces], lengths)
    distinct, of_record = np.unique(records, return_inverse=True)
    those = changed.take(distinct)
    named = those.keys(key_columns(kind))
    keys = record_keys(name, named, those.topics)
    parts = named.column(kind.part) if kind.part else None
    topics, partitions = topics_concerned(kind, named, those.topics)
    values = {
        "group": pa.array(changed.groups[records]),
        "kind": pa.repeat(kind.kind, len(records)),
        "key": keys.take(pa.array(of_record)),
        "change": CHANGES.take(pa.array(changes)),
        "field": _fields(name, changes, columns) if parts is None else parts.take(pa.array(of_record)),
        "before": pa.concat_arrays([_text(piece.before) for piece in pieces]),
        "after": pa.concat_arrays([_text(piece.after) for piece in pieces]),
        "topic": topics.take(pa.array(of_record)),
        "partition": partitions.take(pa.array(of_record)),
        "brokers": pa.nulls(len(records), SCHEMA.field("brokers").type),
    }
    if with_brokers:
        values["brokers"] = brokers_concerned(kind, changed, named.take(pa.array(of_record)), records, columns)
    order = _order(kind, named, keys, those.topics, of_record, changed.groups[records], changes, columns)
    return pa.table(values, schema=SCHEMA).take(order)


def _pieces(kind: ImageType, changed: Changed, whole: Whole, *, show_secrets: bool) -> Iterator[_Piece]:
    name = kind.name

    def shown(rows: pa.Table) -> pa.Array:
        return column_texts(name, kind.shown[0], rows, show_secrets=show_secrets) if kind.part else whole(name, rows)

    gone, came = changed.now == NOWHERE, changed.was == NOWHERE
    for change, is_it, table, rows in (
        (_REMOVED, gone & ~came, changed.before, changed.was),
        (_ADDED, came & ~gone, changed.after, changed.now),
    ):
        records = np.flatnonzero(is_it)
        if len(records):
            texts = shown(table.take(pa.array(rows[records])))
            none = pa.nulls(len(records), pa.string())
            yield _Piece(records, change, -1, *((texts, none) if change == _REMOVED else (none, texts)))
    records = np.flatnonzero(~gone & ~came)
    if not len(records):
        return
    before, after = (
        _rows(table, rows[records]) for table, rows in ((changed.before, changed.was), (changed.after, changed.now))
    )
    for number, field in enumerate(BUILT_IN.messages[name].fields):
        was, now = before.column(field.column), after.column(field.column)
        if field.column in kind.keys or was.equals(now):
            continue
        at = np.flatnonzero(differing(was.combine_chunks(), now.combine_chunks()))
        texts = (
            column_texts(name, field.column, table.take(pa.array(at)), show_secrets=show_secrets)
            for table in (before, after)
        )
        yield _Piece(records[at], _CHANGED, number, *texts)


def _fields(name: str, changes: Rows, columns: Rows) -> pa.Array:
    """Return the columns that changed; null for what was added or removed."""
    names = pa.array([field.column for field in BUILT_IN.messages[name].fields], pa.string())
    return names.take(pa.array(columns, mask=changes != _CHANGED))


def _order(
    kind: ImageType,
    named: pa.Table,
    keys: pa.Array,
    topics: pa.Array | None,
    of_record: npt.NDArray[np.intp],
    groups: Rows,
    changes: Rows,
    columns: Rows,
) -> pa.Array:
    """Return the order of rows: by group, by the numbers of the key, then its text; partitions by topic first."""
    if kind is PARTITIONS:
        ranks = [topics, named.column("topic_id"), named.column("partition_id")]
    else:
        numbers = [named.column(key) for key in kind.keys if pa.types.is_integer(named.column(key).type)]
        ranks = [*numbers, keys, *([named.column(kind.part)] if kind.part else [])]
    at = pa.array(of_record)
    ids = [named.column("topic_id")] if kind is TOPICS else []
    sorted_by = [*(rank.take(at) for rank in ranks), pa.array(changes), *(one.take(at) for one in ids)]
    sorted_by = [pa.array(groups), *sorted_by, pa.array(columns)]
    names = [str(number) for number in range(len(sorted_by))]
    return pc.sort_indices(pa.table(sorted_by, names=names), [(name, "ascending") for name in names])


def _rows(table: pa.Table, rows: Rows) -> pa.Table:
    """Return some rows of a table; all of them are not copied."""
    is_all = len(rows) == table.num_rows and bool((rows == np.arange(len(rows))).all())
    return table if is_all else table.take(pa.array(rows))


def _text(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
