"""The table ``groups``: groups and their members, assembled from the last records of each."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable
from typing import cast

import pyarrow as pa

from kraftlog.coordinator.classic_groups import classic_groups, simple_group
from kraftlog.coordinator.group_types import FAMILIES, Row
from kraftlog.coordinator.groups import Groups
from kraftlog.coordinator.members import Names
from kraftlog.coordinator.newer_groups import newer_groups
from kraftlog.stream import rows_of


def group_columns(
    groups: Groups, simple_groups: Iterable[str], names: Names, arrow_schema: pa.Schema
) -> pa.RecordBatch | None:
    """Return the table ``groups``, by group; None without groups.

    Parameters
    ----------
    groups : Groups
    simple_groups : iterable of str
        Groups that only have commits. A group without records of its own is shown as in Kafka: classic, empty and
        without a protocol.
    names : mapping
        The names of topics by their ids, in addition to those in records of groups.
    arrow_schema : pyarrow.Schema
        Columns of the table.
    """
    rows = {name: simple_group(name) for name in simple_groups} | group_rows(groups, names)
    if not rows:
        return None
    ordered = [rows[name] for name in sorted(rows)]
    columns = [pa.array([row[field.name] for row in ordered], field.type) for field in arrow_schema]
    return rows_of(columns, arrow_schema, len(ordered))


def group_rows(groups: Groups, names: Names) -> dict[str, Row]:
    """Return the groups that have records of their own, by name, as rows of the table ``groups``."""
    every_name = ChainMap(groups.topic_names(), cast("dict[str, str]", names))  # a copy: the source must not change
    rows: dict[str, tuple[int, Row]] = {}
    rows_of_each = classic_groups(groups)
    for family in FAMILIES:
        rows_of_each += newer_groups(groups, family, every_name)
    for offset, row in rows_of_each:
        name = row["group"]
        if name not in rows or offset > rows[name][0]:  # a group of two types has the later one
            rows[name] = offset, row
    return {name: row for name, (_, row) in rows.items()}
