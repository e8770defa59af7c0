"""Fields of records that changed, as text."""

from __future__ import annotations

from functools import cache

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata.readable import Row, readable_text
from kraftlog.metadata.record_types import IMAGE_TYPES
from kraftlog.metadata.secrets import REDACTED, secret_columns

_LABELS = {"topic_id": "id", "feature_level": "level"}


@cache
def _columns(name: str) -> list[str]:
    return [field.column for field in BUILT_IN.messages[name].fields]


class Texts:
    """Fields of the records of a type as text, secrets hidden.

    Parameters
    ----------
    name : str
        Of the type.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._type = IMAGE_TYPES[name]

    @property
    def columns(self) -> list[str]:
        """The columns of the type's fields."""
        return _columns(self._name)

    def part(self, row: Row) -> str | None:
        """Return the name of the part that a record describes, such as a config's name; None if there are no parts."""
        return row[self._type.part] if self._type.part else None

    def value(self, row: Row) -> str | None:
        """Return the main fields of a record that was added or removed."""
        if self._type.part:
            return self.text(self._type.shown[0], row)
        shown = [(_LABELS.get(column, column), self.text(column, row)) for column in self._type.shown]
        return ", ".join(f"{label} {text}" for label, text in shown if text is not None)

    def text(self, column: str, row: Row) -> str | None:
        """Return a field of a record."""
        if column in secret_columns(self._name, row):
            return REDACTED
        return readable_text(self._name, column, row[column])
