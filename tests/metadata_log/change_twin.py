"""Changes of a metadata log by plain Python: the whole image before and after each step, compared field by field."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from image_rows import Fields, Record
from image_twin import ImageTwin

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata.readable import readable_text
from kraftlog.metadata.record_types import IMAGE_TYPES, named
from kraftlog.metadata.uuids import uuid_text

Texts = dict[str, str | None]
State = dict[tuple[str, str], Texts]  # kind and key; of configs and quotas the values by name, else the fields
Row = dict[str, Any]

PARTS = {"config": ("name", "value"), "client_quota": ("key", "value")}


@dataclass
class Block:
    """Records that are written one after the other: plain, or in a transaction that ends so."""

    kind: str  # plain, committed, aborted, open
    records: list[tuple[str, Fields]]
    first: int = 0

    @property
    def whole(self) -> list[tuple[str, Fields | None]]:
        """With the markers around them."""
        if self.kind == "plain":
            return list(self.records)
        last = {"committed": "EndTransactionRecord", "aborted": "AbortTransactionRecord"}.get(self.kind)
        return [("BeginTransactionRecord", None), *self.records, *([(last, None)] if last else [])]


@dataclass
class ChangeTwin:
    """The rows of metadata_changes, and the image behind each step."""

    image: ImageTwin = field(default_factory=ImageTwin)
    rows: list[Row] = field(default_factory=list)
    states: dict[int, State] = field(default_factory=dict)
    state: State = field(default_factory=dict)

    def step(self, offset: int, records: Iterable[Record]) -> None:
        """Apply what becomes visible at an offset."""
        for one in records:
            self.image.apply(*one)
        before, self.state = self.state, state_of(self.image.contents())
        self.states[offset] = self.state
        for kind, key in sorted(before.keys() | self.state.keys()):
            old, new = before.get((kind, key)), self.state.get((kind, key))
            self.rows += [{"offset": offset, "kind": kind, "key": key, **row} for row in _changes(kind, old, new)]


def _changes(kind: str, old: Texts | None, new: Texts | None) -> Iterable[Row]:
    if kind not in PARTS and (old is None or new is None):
        change = "added" if old is None else "removed"
        yield {"change": change, "field": None, "before": old, "after": new}
        return
    old, new = old or {}, new or {}
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            change = "added" if name not in old else "removed" if name not in new else "changed"
            yield {"change": change, "field": name, "before": old.get(name), "after": new.get(name)}


def state_of(contents: dict[str, list[Fields]]) -> State:
    """Return an image as texts."""
    names = {topic["topic_id"]: topic["name"] for topic in contents["TopicRecord"]}
    state: State = {}
    for name, rows in contents.items():
        kind = IMAGE_TYPES[name].kind
        for row in rows:
            key = _key(name, row, names)
            texts = {
                one.column: readable_text(name, one.column, row[one.column]) for one in BUILT_IN.messages[name].fields
            }
            if kind in PARTS:
                part, value = PARTS[kind]
                state.setdefault((kind, key), {})[row[part]] = texts[value]
            else:
                state[kind, key] = texts
    return state


def _key(name: str, row: Fields, names: dict[bytes, str]) -> str:
    return {
        "FeatureLevelRecord": lambda: row["name"],
        "RegisterBrokerRecord": lambda: str(row["broker_id"]),
        "RegisterControllerRecord": lambda: str(row["controller_id"]),
        "TopicRecord": lambda: row["name"],
        "PartitionRecord": lambda: f"{names[row['topic_id']]}-{row['partition_id']}",
        "ConfigRecord": lambda: (
            f"{named(name, 'resource_type', row['resource_type'])} {row['resource_name'] or '<default>'}"
        ),
        "ClientQuotaRecord": lambda: ", ".join(
            f"{one['entity_type']}={'<default>' if one['entity_name'] is None else one['entity_name']}"
            for one in row["entity"]
        ),
        "ProducerIdsRecord": lambda: "",
        "AccessControlEntryRecord": lambda: uuid_text(row["id"]),
        "UserScramCredentialRecord": lambda: f"{row['name']} {named(name, 'mechanism', row['mechanism'])}",
        "DelegationTokenRecord": lambda: row["token_id"],
    }[name]()


def fold(state: State, rows: Iterable[Row]) -> None:
    """Apply rows of metadata_changes to an image."""
    for row in rows:
        key = row["kind"], row["key"]
        if row["field"] is None:
            if row["change"] == "removed":
                assert state.pop(key) == from_json(row["kind"], row["before"])
            else:
                assert key not in state
                state[key] = from_json(row["kind"], row["after"])
            continue
        texts = state.setdefault(key, {}) if row["kind"] in PARTS else state[key]
        assert texts.get(row["field"]) == row["before"]
        assert (row["field"] in texts) == (row["change"] != "added")
        texts[row["field"]] = row["after"]
        if row["change"] == "removed":
            del texts[row["field"]]
            if not texts:
                del state[key]


def from_json(kind: str, text: str) -> Texts:
    """Return the fields of a record's JSON, by column."""
    (name,) = [one.name for one in IMAGE_TYPES.values() if one.kind == kind]
    given = json.loads(text)
    fields = BUILT_IN.messages[name].fields
    assert list(given) == [one.name for one in fields]
    return {one.column: _text(given[one.name]) for one in fields}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, int | str) for item in value):
        return f"[{', '.join(map(str, value))}]"
    return json.dumps(value, ensure_ascii=False)
