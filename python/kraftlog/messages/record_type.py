"""A type of record in an internal topic or in the metadata log: the definitions of its key and value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kraftlog.messages.definition import Definition, Field

KEY, VALUE = "key", "value"
COLUMNS_BEFORE_FIELDS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key_version",
    "value_version",
    "is_tombstone",
    "transaction_state",
    "error",
)


@dataclass(frozen=True)
class RecordType:
    """A type of record.

    Attributes
    ----------
    name : str
        Kafka's, without Key and Value: ``OffsetCommit``, ``PartitionRecord``.
    api_key : int
        The number that says in a record that it is of this type.
    key, value : Definition or None
        None for a key of the metadata logs, that have none, and for a side that is not defined.
    key_version : int
        The version of ``key`` in which keys are written; records do not say it.
    """

    name: str
    api_key: int
    key: Definition | None
    value: Definition | None
    key_version: int = 0

    @cached_property
    def columns(self) -> list[tuple[str, Field, str]]:
        """A column for each field, those of the key first: its name, its field, and ``"key"`` or ``"value"``.

        A field's name gets that word in front when both sides have it, or when it is that of a column that tables of
        all types begin with.
        """
        sides = [(KEY, self.key), (VALUE, self.value)]
        fields = [(field, side) for side, definition in sides if definition for field in definition.fields]
        shared = Counter(field.column for field, _ in fields)
        taken = {name for name, count in shared.items() if count > 1}.union(COLUMNS_BEFORE_FIELDS)
        names = [f"{side}_{field.column}" if field.column in taken else field.column for field, side in fields]
        return [(name, field, side) for name, (field, side) in zip(names, fields, strict=True)]


@dataclass(frozen=True)
class RecordFormat:
    """The types of records of one log, by api key."""

    name: str
    types: Mapping[int, RecordType]

    @cached_property
    def by_name(self) -> Mapping[str, list[RecordType]]:
        """The types that have values, by name; two of them may share one."""
        found: dict[str, list[RecordType]] = {}
        for one in self.types.values():
            if one.value is not None:
                found.setdefault(one.name, []).append(one)
        return found
