"""What changed between two images: their records side by side, by key."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from kraftlog.last_by_key import NOWHERE
from kraftlog.metadata.changed import Changed, ChangedByType, Rows
from kraftlog.metadata.image import TYPES, Image
from kraftlog.metadata.keyed_records import key_codes
from kraftlog.metadata.record_keys import topic_names
from kraftlog.metadata.record_types import IMAGE_TYPES, ImageType


def changed_records(before: Image, after: Image, group: int = 0) -> ChangedByType:
    """Return the records of two images of types that are not the same in both; all of them are of one group."""
    return changed_tables(before.tables(), after.tables(), group)


def changed_tables(old: Mapping[str, pa.Table], new: Mapping[str, pa.Table], group: int = 0) -> ChangedByType:
    """Return the records of two images, as ``changed_records`` does, from their tables."""
    by_type = {}
    for name in TYPES:
        if old[name].equals(new[name]):
            continue
        was, now = _paired(IMAGE_TYPES[name], old[name], new[name])
        changed = Changed(old[name], new[name], was, now, np.full(len(was), group, np.int64))
        names = [topic_names(name, rows, tables) for rows, tables in ((old[name], old), (new[name], new))]
        if names[0] is not None:
            rows = np.where(now == NOWHERE, was, now + old[name].num_rows)
            topics = pa.concat_arrays(names).take(pa.array(rows))
            changed = Changed(old[name], new[name], was, now, changed.groups, topics)
        by_type[name] = changed
    return by_type


def _paired(kind: ImageType, before: pa.Table, after: pa.Table) -> tuple[Rows, Rows]:
    """Return which rows have the same key; first those that only one of the two tables has."""
    if before.num_rows == after.num_rows and all(before.column(key).equals(after.column(key)) for key in kind.keys):
        rows = np.arange(before.num_rows)
        return rows, rows
    keys = [
        pa.chunked_array([*before.column(key).chunks, *after.column(key).chunks], before.column(key).type)
        for key in kind.keys
    ]
    codes = key_codes(keys, before.num_rows + after.num_rows)
    first, second = codes.rows[: before.num_rows], codes.rows[before.num_rows :]
    places = np.full(codes.end, NOWHERE, np.int64)
    places[first] = np.arange(len(first))
    pairs = places[second]
    is_gone = np.ones(len(first), bool)
    is_gone[pairs[pairs >= 0]] = False
    removed = np.flatnonzero(is_gone)
    was = np.concatenate((removed, pairs))
    return was, np.concatenate((np.full(len(removed), NOWHERE), np.arange(len(second))))
