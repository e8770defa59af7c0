"""Columns of metadata records as text and as JSON: what ``readable`` makes of single records, a column at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Field
from kraftlog.metadata.readable import field_of, readable_item, readable_value
from kraftlog.metadata.record_types import CONFIGS, IMAGE_TYPES
from kraftlog.metadata.secrets import REDACTED, is_password

INDENT = 2
_COMPACT = (",", ":")


@dataclass(frozen=True)
class _Json:
    """How JSON is laid out.

    Attributes
    ----------
    line : str
        What stands before a member of a record: the end of a line, and spaces; empty for JSON of one line.
    """

    line: str = ""

    @property
    def end(self) -> str:
        """What stands before the bracket that ends a record."""
        return self.line[:-INDENT]

    @property
    def item_line(self) -> str:
        """What stands before an item of a member."""
        return self.line and self.line + INDENT * " "

    @property
    def colon(self) -> str:
        return ": " if self.line else ":"

    def text(self, shown: Any) -> str:
        """Return the value of a member."""
        if not self.line:
            return json.dumps(shown, ensure_ascii=False, separators=_COMPACT)
        return json.dumps(shown, ensure_ascii=False, indent=INDENT).replace("\n", self.line)


def column_texts(name: str, column: str, rows: pa.Table, *, show_secrets: bool = False) -> pa.Array:
    """Return a field of records as text; null for null.

    Parameters
    ----------
    name : str
        Of the records' type.
    column : str
    rows : pyarrow.Table
        With ``name``, too, of records of configs: it says whether a value is a password.
    show_secrets : bool

    Examples
    --------
    >>> rows = pa.table({"isr": [[1, 2], []], "leader_recovery_state": pa.array([0, 1], pa.int8())})
    >>> column_texts("PartitionRecord", "isr", rows).to_pylist()
    ['[1, 2]', '[]']
    >>> column_texts("PartitionRecord", "leader_recovery_state", rows).to_pylist()
    ['RECOVERED', 'RECOVERING']
    """
    return _texts(name, column, rows, None, show_secrets=show_secrets)


def json_texts(
    name: str, rows: pa.Table, *, show_secrets: bool = False, without: Sequence[str] = (), line: str = ""
) -> pa.Array:
    """Return records as JSON, with Kafka's names of fields and for numbers.

    Parameters
    ----------
    name : str
        Of the records' type.
    rows : pyarrow.Table
    show_secrets : bool
    without : sequence of str
        Columns that are left out.
    line : str
        The end of a line and the spaces before each field; by default a record is one line.

    Examples
    --------
    >>> rows = pa.table({"name": ["orders"], "topic_id": pa.array([bytes(16)], pa.binary(16))})
    >>> json_texts("TopicRecord", rows, without=["topic_id"]).to_pylist()
    ['{"name":"orders"}']
    """
    form = _Json(line)
    parts: list[str | pa.Array] = []
    for field in BUILT_IN.messages[name].fields:
        if field.column in without:
            continue
        values = pc.fill_null(_texts(name, field.column, rows, form, show_secrets=show_secrets), "null")
        parts += [f'{"," if parts else "{"}{line}"{field.name}"{form.colon}', values]
    if not parts:
        return pa.repeat("{}", rows.num_rows)
    return _whole(pc.binary_join_element_wise(*parts, f"{form.end}}}", ""))


def _texts(name: str, column: str, rows: pa.Table, form: _Json | None, *, show_secrets: bool) -> pa.Array:
    redacted = REDACTED if form is None else form.text(REDACTED)
    if not show_secrets and name in IMAGE_TYPES and column in IMAGE_TYPES[name].secrets:
        return pa.repeat(redacted, rows.num_rows)
    texts = _values(name, field_of(name, column), _whole(rows.column(column)), form)
    if not show_secrets and name == CONFIGS.name and column == "value":
        is_secret = pa.array([is_password(config) for config in rows.column("name").to_pylist()], pa.bool_())
        texts = pc.if_else(is_secret, redacted, texts)
    return texts


def _values(name: str, field: Field, values: pa.Array, form: _Json | None) -> pa.Array:
    if field.fields:
        shown = (readable_value(name, field, value) for value in values.to_pylist())
        return pa.array([None if one is None else _text(one, form) for one in shown], pa.string())
    if not field.is_array:
        return _items(name, field, values, form)
    items = _items(name, field, values.flatten(), form)
    lengths = pc.fill_null(values.value_lengths(), 0).to_numpy(zero_copy_only=False)
    lists = pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)), pa.int32()), items)
    line, end = (form.item_line, form.line) if form else ("", "")
    joined = pc.binary_join(lists, f",{line}" if form else ", ")
    texts = pc.binary_join_element_wise(f"[{line}", joined, f"{end}]", "")
    if line:
        texts = pc.if_else(pa.array(lengths == 0), "[]", texts)
    return pc.if_else(values.is_null(), pa.scalar(None, pa.string()), texts) if values.null_count else texts


def _items(name: str, field: Field, values: pa.Array, form: _Json | None) -> pa.Array:
    has_names = name in IMAGE_TYPES and field.column in IMAGE_TYPES[name].numbers
    if pa.types.is_integer(values.type) and not has_names:
        return pc.cast(values, pa.string())
    if pa.types.is_string(values.type) and form is None:
        return values
    encoded = values.dictionary_encode()
    shown = [readable_item(name, field, value) for value in encoded.dictionary.to_pylist()]
    return pa.array([_text(one, form) for one in shown], pa.string()).take(encoded.indices)


def _text(shown: Any, form: _Json | None) -> str:
    if form is not None:
        return form.text(shown)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
