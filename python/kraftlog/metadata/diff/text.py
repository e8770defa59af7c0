"""How a change of a metadata image is told: kinds, keys, and fields as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata.kafka_names import named
from kraftlog.metadata.readable import Row, readable_value
from kraftlog.metadata.secrets import REDACTED, secret_columns
from kraftlog.metadata.uuids import uuid_text


@dataclass(frozen=True)
class Kind:
    """How records of a type are told apart and told of.

    Attributes
    ----------
    name : str
    keys : tuple of str
        Columns that make two records of two images the same thing.
    told : tuple of str
        Columns that are told of one that was added or removed; where there is ``field``, its value.
    field : str or None
        The column that says what of a thing the record is: a config's name.
    """

    name: str
    keys: tuple[str, ...]
    told: tuple[str, ...] = ()
    field: str | None = None


_PARTITION = ("replicas", "isr", "leader", "leader_epoch", "partition_epoch")
_ACL = ("resource_type", "pattern_type", "resource_name", "principal", "host", "operation", "permission_type")
KINDS = {
    "FeatureLevelRecord": Kind("feature", ("name",), ("feature_level",)),
    "RegisterBrokerRecord": Kind("broker", ("broker_id",), ("broker_epoch", "rack", "fenced")),
    "RegisterControllerRecord": Kind("controller", ("controller_id",), ("incarnation_id",)),
    "TopicRecord": Kind("topic", ("topic_id",), ("topic_id",)),
    "PartitionRecord": Kind("partition", ("topic_id", "partition_id"), _PARTITION),
    "ConfigRecord": Kind("config", ("resource_type", "resource_name", "name"), ("value",), "name"),
    "ClientQuotaRecord": Kind("client_quota", ("entity", "key"), ("value",), "key"),
    "ProducerIdsRecord": Kind("producer_ids", (), ("next_producer_id",)),
    "AccessControlEntryRecord": Kind("acl", ("id",), _ACL),
    "UserScramCredentialRecord": Kind("scram_credential", ("name", "mechanism"), ("iterations",)),
    "DelegationTokenRecord": Kind("delegation_token", ("token_id",), ("owner", "requester", "renewers")),
}
_LABELS = {"topic_id": "id", "feature_level": "level"}


class Texts:
    """Keys and fields of the records of a type as text.

    Parameters
    ----------
    name : str
        Of the type.
    tables : Mapping of str to pyarrow.Table
        The image that the records are of.
    """

    def __init__(self, name: str, tables: Mapping[str, pa.Table]) -> None:
        self._name = name
        self._kind = KINDS[name]
        self._tables = tables
        self._fields = {field.column: field for field in BUILT_IN.messages[name].fields}

    @property
    def columns(self) -> list[str]:
        """The columns of the type's fields."""
        return list(self._fields)

    @cached_property
    def _topics(self) -> dict[bytes, str]:
        topics = self._tables["TopicRecord"]
        return dict(zip(topics.column("topic_id").to_pylist(), topics.column("name").to_pylist(), strict=True))

    def key(self, row: Row) -> str:
        """Return what a record is about."""
        if self._name == "PartitionRecord":
            return f"{self._topics.get(row['topic_id']) or uuid_text(row['topic_id'])}-{row['partition_id']}"
        if self._name == "TopicRecord":
            return str(row["name"])
        if self._name == "ClientQuotaRecord":
            return ", ".join(f"{one['entity_type']}={_or_default(one['entity_name'])}" for one in row["entity"])
        if self._name == "ConfigRecord":
            resource = named(self._name, "resource_type", row["resource_type"])
            return f"{resource} {row['resource_name'] or '<default>'}"
        return " ".join(self.text(key, row) or "" for key in self._kind.keys)

    def rank(self, row: Row) -> tuple[Any, ...]:
        """Return what records of the type are sorted by."""
        if self._name == "PartitionRecord":
            return (self._topics.get(row["topic_id"], ""), row["topic_id"], row["partition_id"])
        numbers = [row[key] for key in self._kind.keys if isinstance(row[key], int)]
        return (*numbers, self.key(row), self.field(row) or "")

    def field(self, row: Row) -> str | None:
        """Return what of a thing a record is, such as a config's name; None if it is all of it."""
        return row[self._kind.field] if self._kind.field else None

    def value(self, row: Row) -> str | None:
        """Return what is told of a record that was added or removed."""
        if self._kind.field:
            return self.text(self._kind.told[0], row)
        told = [(_LABELS.get(column, column), self.text(column, row)) for column in self._kind.told]
        return ", ".join(f"{label} {text}" for label, text in told if text is not None)

    def text(self, column: str, row: Row) -> str | None:
        """Return a field of a record as text."""
        if column in secret_columns(self._name, row):
            return REDACTED
        value = readable_value(self._name, self._fields[column], row[column])
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(item, int | str) for item in value):
            return f"[{', '.join(map(str, value))}]"
        return json.dumps(value, ensure_ascii=False)


def _or_default(name: str | None) -> str:
    return "<default>" if name is None else name
