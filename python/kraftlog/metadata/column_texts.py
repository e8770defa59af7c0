"""Columns of metadata records as text and as JSON: what ``readable`` makes of single records, a column at a time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Field
from kraftlog.metadata.readable import field_of, readable_item, readable_value
from kraftlog.metadata.record_types import CONFIGS, IMAGE_TYPES
from kraftlog.metadata.secrets import REDACTED, is_password

_COMPACT = (",", ":")


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
    return _texts(name, column, rows, as_json=False, show_secrets=show_secrets)


def json_texts(name: str, rows: pa.Table, *, show_secrets: bool = False) -> pa.Array:
    """Return records as JSON, with Kafka's names of fields and for numbers."""
    parts = []
    for field in BUILT_IN.messages[name].fields:
        values = pc.fill_null(_texts(name, field.column, rows, as_json=True, show_secrets=show_secrets), "null")
        parts.append(pc.binary_join_element_wise(f'"{field.name}":', values, ""))
    joined = pc.binary_join_element_wise(*parts, ",") if parts else pa.repeat("", rows.num_rows)
    return _whole(pc.binary_join_element_wise("{", joined, "}", ""))


def _texts(name: str, column: str, rows: pa.Table, *, as_json: bool, show_secrets: bool) -> pa.Array:
    redacted = json.dumps(REDACTED) if as_json else REDACTED
    if not show_secrets and name in IMAGE_TYPES and column in IMAGE_TYPES[name].secrets:
        return pa.repeat(redacted, rows.num_rows)
    texts = _values(name, field_of(name, column), _whole(rows.column(column)), as_json=as_json)
    if not show_secrets and name == CONFIGS.name and column == "value":
        is_secret = pa.array([is_password(config) for config in rows.column("name").to_pylist()], pa.bool_())
        texts = pc.if_else(is_secret, redacted, texts)
    return texts


def _values(name: str, field: Field, values: pa.Array, *, as_json: bool) -> pa.Array:
    if field.fields:
        shown = (readable_value(name, field, value) for value in values.to_pylist())
        return pa.array([None if one is None else _text(one, as_json=as_json) for one in shown], pa.string())
    if not field.is_array:
        return _items(name, field, values, as_json=as_json)
    items = _items(name, field, values.flatten(), as_json=as_json)
    lengths = pc.fill_null(values.value_lengths(), 0).to_numpy(zero_copy_only=False)
    lists = pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)), pa.int32()), items)
    joined = pc.binary_join(lists, "," if as_json else ", ")
    texts = pc.binary_join_element_wise("[", joined, "]", "")
    return pc.if_else(values.is_null(), pa.scalar(None, pa.string()), texts) if values.null_count else texts


def _items(name: str, field: Field, values: pa.Array, *, as_json: bool) -> pa.Array:
    has_names = name in IMAGE_TYPES and field.column in IMAGE_TYPES[name].numbers
    if pa.types.is_integer(values.type) and not has_names:
        return pc.cast(values, pa.string())
    if pa.types.is_string(values.type) and not as_json:
        return values
    encoded = values.dictionary_encode()
    shown = [readable_item(name, field, value) for value in encoded.dictionary.to_pylist()]
    return pa.array([_text(one, as_json=as_json) for one in shown], pa.string()).take(encoded.indices)


def _text(shown: Any, *, as_json: bool) -> str:
    if as_json:
        return json.dumps(shown, ensure_ascii=False, separators=_COMPACT)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
