"""Records of an image before and after a change: what a diff, and the table metadata_changes, are made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.last_by_key import NOWHERE
from kraftlog.metadata import schemas

Rows = npt.NDArray[np.int64]
Record = tuple[Any, ...]
"""The fields of a record, in the order of its type's columns."""


@dataclass(frozen=True)
class Changed:
    """Records of a type that may have changed, each with its key before and after a group of records.

    Attributes
    ----------
    before, after : pyarrow.Table
        Records, with the columns of the type's fields.
    was, now : int64[rows]
        Rows of ``before`` and of ``after``; ``NOWHERE`` where there was, or is, no such record.
    groups : int64[rows]
        The number of the group.
    topics : pyarrow.Array, optional
        Of partitions: the names of their topics.
    """

    before: pa.Table
    after: pa.Table
    was: Rows
    now: Rows
    groups: Rows
    topics: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.groups)

    def take(self, rows: npt.NDArray[Any]) -> Changed:
        """Return some of them, by their numbers or a mask."""
        at = pa.array(rows if rows.dtype != bool else np.flatnonzero(rows))
        topics = None if self.topics is None else self.topics.take(at)
        return Changed(self.before, self.after, self.was[rows], self.now[rows], self.groups[rows], topics)

    def keys(self, columns: Sequence[str]) -> pa.Table:
        """Return columns of the key, which are the same before and after."""
        both = pa.concat_tables([self.before.select(columns), self.after.select(columns)])
        rows = np.where(self.now == NOWHERE, self.was, self.now + self.before.num_rows)
        return both.take(pa.array(rows))


class Noted:
    """How records of a type were before groups of records changed them, for types whose records are applied one by one.

    Parameters
    ----------
    name : str
        Of the type.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._before: dict[Hashable, list[tuple[int, Record | None]]] = {}

    def note(self, group: int, key: Hashable, before: Record | None) -> None:
        """Note a record before it changes; of several notes of a group the first counts."""
        noted = self._before.setdefault(key, [])
        if not noted or noted[-1][0] != group:
            noted.append((group, before))

    def take(self, current: Callable[[Any], Record | None]) -> Changed | None:
        """Return what was noted, and forget it; None when that is nothing.

        Parameters
        ----------
        current : callable
            Returns the record of a key as it is.
        """
        if not self._before:
            return None
        of_types: list[Record] = []

        def number(record: Record | None) -> int:
            if record is None:
                return NOWHERE
            of_types.append(record)
            return len(of_types) - 1

        rows = []
        for key, noted in self._before.items():
            states = [*(number(before) for _, before in noted), number(current(key))]
            rows += [(group, states[at], states[at + 1]) for at, (group, _) in enumerate(noted)]
        self._before = {}
        groups, was, now = np.array(rows, np.int64).T.copy()
        records = table_of(self._name, of_types)
        return Changed(records, records, was, now, groups)


def table_of(name: str, records: Sequence[Record]) -> pa.Table:
    """Return records of a type as a table."""
    schema = schemas.schema_of(name)
    columns = zip(*records, strict=True) if records else [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def records_of(rows: pa.Table | pa.RecordBatch) -> Iterator[Record]:
    """Return the records of a table."""
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


Groups = npt.NDArray[np.int64]
"""Of each group of records the offset of the first, and the number of the group; [groups, 2], by offset."""

ONE_GROUP: Groups = np.array([[np.iinfo(np.int64).min, 0]], np.int64)


def groups_at(groups: Groups, offsets: Rows) -> Rows:
    """Return the numbers of the groups that records are in."""
    return np.asarray(groups[np.searchsorted(groups[:, 0], offsets, "right") - 1, 1])


ChangedByType = Mapping[str, Changed]
