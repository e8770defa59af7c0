"""Columns of metadata records as text of JSON: what is there many times is written once."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog.messages.definition import Field
from kraftlog.metadata.readable import readable_value

INDENT = 2
NULL = "null"


def column_texts(name: str, field: Field, column: pa.Array, depth: int) -> list[str]:
    """Return the JSON of each value of a column.

    Parameters
    ----------
    name : str
        Of the type of record.
    field : Field
    column : pyarrow.Array
        Its values, uuids as 16 bytes.
    depth : int
        How far the lines of a value are indented, in steps of two spaces.
    """
    line = "\n" + depth * INDENT * " "

    def text(value: Any) -> str:
        shown = readable_value(name, field, value)
        return json.dumps(shown, indent=INDENT, ensure_ascii=False).replace("\n", line)

    if field.fields or not len(column):
        return [text(value) for value in column.to_pylist()]
    return _texts(_lists(column) if field.is_array else column.to_pylist(), text)


def _texts(values: list[Any], text: Callable[[Any], str]) -> list[str]:
    known: dict[Hashable, str] = {None: NULL}
    found = []
    for value in values:
        shown = known.get(value)
        if shown is None:
            shown = known[value] = text(value)
        found.append(shown)
    return found


def _lists(column: pa.Array) -> list[Any]:
    """Return a column of lists as tuples; None for null."""
    ends = np.asarray(column.offsets)
    items = column.values.slice(ends[0], ends[-1] - ends[0]).to_pylist()
    places = (ends - ends[0]).tolist()
    lists: list[Any] = [tuple(items[start:end]) for start, end in pairwise(places)]
    for row in np.flatnonzero(np.asarray(column.is_null())) if column.null_count else ():
        lists[row] = None
    return lists
