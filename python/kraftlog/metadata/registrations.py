"""Listeners and features of registered brokers and controllers: lists that Kafka keeps as maps."""

from __future__ import annotations

from typing import Any

from kraftlog.messages.arrow_types import UNKNOWN_TAGGED_FIELDS

BY_NAME = ("end_points", "features")


def by_name(record: dict[str, Any]) -> dict[str, Any]:
    """Return a registration with its listeners and its features by name, each once, the last one that is given.

    Examples
    --------
    >>> record = {"end_points": [], "features": [{"name": "b", "max_supported_version": 1}, {"name": "a"}]}
    >>> [feature["name"] for feature in by_name(record)["features"]]
    ['a', 'b']
    """
    return record | {column: _sorted(record[column] or []) for column in BY_NAME}


def _sorted(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    last = {item["name"]: item | {UNKNOWN_TAGGED_FIELDS: None} for item in items}
    return [last[name] for name in sorted(last)]
