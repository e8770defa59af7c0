"""What changed between two metadata images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kraftlog.metadata.changed import ChangedByType
from kraftlog.metadata.diff.change_filter import ChangeFilter
from kraftlog.metadata.diff.images import changed_records
from kraftlog.metadata.diff.rows import ADDED, CHANGED, REMOVED, change_rows, main_fields
from kraftlog.metadata.image import Image

SCHEMA = pa.schema([(name, pa.string()) for name in ("kind", "key", "change", "field", "before", "after")])
_MARKS = {REMOVED: "-", ADDED: "+", CHANGED: "~"}


def diff(before: Image, after: Image) -> pa.Table:
    """Return what changed from one image to another.

    Returns
    -------
    pyarrow.Table
        Columns ``kind`` (``topic``, ``partition``, ``broker`` ...), ``key`` (``orders-3``), ``change`` (``added``,
        ``removed``, ``changed``), ``field``, ``before`` and ``after``, all text. A field that changed has a row of its
        own; the main fields of what was added or removed are in one row. Secrets are hidden.
    """
    return diff_rows(changed_records(before, after)).select(SCHEMA.names)


def diff_rows(changed: ChangedByType, where: ChangeFilter = ChangeFilter()) -> pa.Table:  # noqa: B008  (frozen)
    """Return what changed, as ``diff`` does, from the records that may have changed; the first column is ``group``."""
    rows = change_rows(where.records(changed), main_fields, with_brokers=where.brokers is not None)
    return where.rows(rows).select(["group", *SCHEMA.names])


def by_step(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Return the rows of each group, and its number."""
    groups = rows.column("group").to_numpy()
    cuts = np.flatnonzero(np.diff(groups)) + 1
    for start, end in pairwise([0, *cuts.tolist(), len(groups)]) if len(groups) else ():
        yield int(groups[start]), rows.slice(start, end - start)


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
