"""Rows as JSON Lines: one object a row, keys are column names.

Bytes are text by ``--binary``, timestamps RFC 3339 in UTC with milliseconds, or microseconds where they have them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from kraftlog.schema import IS_JSON

BinaryText = Callable[[bytes], str]

BINARY_TEXTS: dict[str, BinaryText] = {
    "base64": lambda data: base64.b64encode(data).decode(),
    "hex": bytes.hex,
    "utf8": lambda data: data.decode("utf-8", "replace"),
}


def timestamp_texts(column: pa.Array) -> list[str | None]:
    """Return timestamps as RFC 3339 text."""
    micros = np.asarray(column.cast(pa.int64()).fill_null(0))
    stamps = micros.astype("datetime64[us]")
    fine = micros % 1000 != 0
    texts = np.where(
        fine, np.datetime_as_string(stamps, "us"), np.datetime_as_string(stamps.astype("datetime64[ms]"), "ms")
    )
    return [f"{text}Z" if valid else None for text, valid in zip(texts, column.is_valid().to_pylist(), strict=True)]


def plain_values(column: pa.Array, text: BinaryText) -> list[object]:
    """Return a column's values with bytes and timestamps as text, nested ones included."""
    kind = column.type
    if pa.types.is_binary(kind):
        return [None if value is None else text(value) for value in column.to_pylist()]
    if pa.types.is_timestamp(kind):
        return list(timestamp_texts(column))
    if pa.types.is_list(kind):
        inner = plain_values(column.flatten(), text)
        lengths = column.value_lengths().to_pylist()
        values: list[object] = []
        at = 0
        for length in lengths:
            values.append(None if length is None else inner[at : at + length])
            at += length or 0
        return values
    if pa.types.is_struct(kind):
        fields = [plain_values(part, text) for part in column.flatten()]
        names = [field.name for field in kind]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*fields, strict=True)]
        return [row if valid else None for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)]
    return list(column.to_pylist())


def _encoded(column: pa.Array, field: pa.Field, text: BinaryText) -> list[str]:
    if field.metadata == IS_JSON:  # as it is, and not once more as text
        return ["null" if value is None else value for value in column.to_pylist()]
    if pa.types.is_string(column.type):
        distinct = column.dictionary_encode()
        texts = [json.dumps(value) for value in distinct.dictionary.to_pylist()]
        return ["null" if code is None else texts[code] for code in distinct.indices.to_pylist()]
    if pa.types.is_integer(column.type):
        return ["null" if value is None else str(value) for value in column.to_pylist()]
    return [json.dumps(value) for value in plain_values(column, text)]


def json_lines(batch: pa.RecordBatch, text: BinaryText) -> Iterator[str]:
    """Return a line, with its line end, for each row."""
    keys = [json.dumps(name) + ":" for name in batch.schema.names]
    columns = zip(keys, batch.columns, batch.schema, strict=True)
    cells = [[key + value for value in _encoded(column, field, text)] for key, column, field in columns]
    for row in zip(*cells, strict=True):
        yield "{" + ",".join(row) + "}\n"
