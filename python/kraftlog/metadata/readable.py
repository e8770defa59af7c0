"""Fields of metadata records with Kafka's names for numbers, as JSON and as text; secrets hidden."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import Any

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Field
from kraftlog.metadata.record_types import named
from kraftlog.metadata.secrets import REDACTED, secret_columns
from kraftlog.metadata.uuids import uuid_text

Row = Mapping[str, Any]


def readable(name: str, row: Row, *, show_secrets: bool = False) -> dict[str, Any]:
    """Return a record as a value of JSON.

    Parameters
    ----------
    name : str
        Of its type.
    row : Mapping
        Its fields by column.
    show_secrets : bool
        Whether salt and keys of SCRAM credentials, and passwords in configs, are shown.

    Returns
    -------
    dict
        Kafka's names of fields; uuids as Kafka prints them, bytes in base64, Kafka's names for numbers.
    """
    secrets = () if show_secrets else secret_columns(name, row)
    fields = BUILT_IN.messages[name].fields
    return {
        field.name: REDACTED if field.column in secrets else readable_value(name, field, row[field.column])
        for field in fields
    }


def readable_value(name: str, field: Field, value: Any) -> Any:
    """Return the value of a field as a value of JSON."""
    if value is None:
        return None
    if field.is_array:
        return [readable_item(name, field, item) for item in value]
    return readable_item(name, field, value)


def readable_text(name: str, column: str, value: Any) -> str | None:
    """Return the value of a record's column as text; None for null."""
    shown = readable_value(name, field_of(name, column), value)
    if shown is None or isinstance(shown, str):
        return shown
    if isinstance(shown, list) and all(isinstance(item, int | str) for item in shown):
        return f"[{', '.join(map(str, shown))}]"
    return json.dumps(shown, ensure_ascii=False)


def field_of(name: str, column: str) -> Field:
    """Return the field of a type that a column has."""
    return _fields(name)[column]


@cache
def _fields(name: str) -> dict[str, Field]:
    return {field.column: field for field in BUILT_IN.messages[name].fields}


def readable_item(name: str, field: Field, value: Any) -> Any:
    """Return the value of a field, or an item of an array, as a value of JSON."""
    if field.fields:
        return {one.name: readable_value(name, one, value[one.column]) for one in field.fields}
    if isinstance(value, bytes):
        return uuid_text(value) if field.kind == "uuid" else b64encode(value).decode()
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return named(name, field.column, value)
    return value
