"""Metadata records in the JSON of Kafka's own converters, as the tables of an image."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from golden_files import GOLDEN, lines
from kraftlog.messages import definition as kinds
from kraftlog.messages.arrow_types import UUID_BINARY, message_schema
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Field

Line = dict[str, Any]
EXPECTED = GOLDEN / "metadata" / "expected"
OFFSETS = {85: "image_at_85", 206: "image_at_206", 321: "image_at_321", 522: "image_final"}


@dataclass(frozen=True)
class KnownImage:
    """An image of which Kafka's own classes say what is in it."""

    records: list[Line]
    offset: int
    epoch: int
    timestamp: int

    @property
    def image(self) -> KnownImage:
        return self

    def tables(self) -> dict[str, pa.Table]:
        return image_tables(self.records)


def known_image(offset: int | None) -> KnownImage:
    """Return the last image of the golden log up to an offset, of those that are known."""
    at = max((known for known in OFFSETS if offset is None or known <= offset), default=None)
    if at is None:
        raise ValueError(f"offset {offset} is before the first image")
    answer = json.loads((EXPECTED / f"{OFFSETS[at]}.json").read_text())
    times = {line["offset"]: line["timestamp"] for line in lines(EXPECTED / "published_images.jsonl")}
    return KnownImage(answer["records"], answer["offset"], answer["epoch"], times[at])


def image_tables(records: Iterable[Line]) -> dict[str, pa.Table]:
    """Return a table for each type of the records, ``{"type_id", "data"}`` each."""
    types = BUILT_IN.formats["metadata"].types
    rows: dict[str, list[Line]] = {}
    for record in records:
        definition = types[record["type_id"]].value
        assert definition is not None
        rows.setdefault(definition.name, []).append(_struct(definition.fields, record["data"]))
    schemas = {name: message_schema(BUILT_IN.messages[name], uuid=UUID_BINARY) for name in rows}
    return {name: pa.Table.from_pylist(rows[name], schemas[name]) for name in rows}


def _struct(fields: Iterable[Field], data: Line) -> Line:
    return {
        field.column: _value(field, data[field.name]) if field.name in data else _default(field) for field in fields
    }


def _value(field: Field, value: Any) -> Any:
    if value is None:
        return None
    return [_item(field, item) for item in value] if field.is_array else _item(field, value)


def _item(field: Field, value: Any) -> Any:
    if field.kind == kinds.STRUCT:
        return _struct(field.fields, value)
    if field.kind == kinds.UUID:
        return base64.urlsafe_b64decode(value + "==")
    if field.kind == kinds.BYTES:
        return base64.b64decode(value)
    return value


def _default(field: Field) -> Any:
    if field.is_array:
        return None if field.default is None else []
    return None if field.default is None else _item(field, field.default)
