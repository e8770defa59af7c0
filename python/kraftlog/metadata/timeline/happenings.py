"""What happened in a cluster, in sentences: equal changes of one second are one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog.last_by_key import NOWHERE
from kraftlog.metadata.changed import ChangedByType
from kraftlog.metadata.column_texts import column_texts
from kraftlog.metadata.diff.change_filter import ChangeFilter
from kraftlog.metadata.diff.rows import ADDED, REMOVED, change_rows, main_fields
from kraftlog.metadata.record_types import (
    ACLS,
    BROKERS,
    CONFIGS,
    FEATURES,
    PARTITIONS,
    PRODUCER_IDS,
    QUOTAS,
    TOPICS,
)
from kraftlog.metadata.timeline.partition_events import (
    LISTS,
    NAMES_SHOWN,
    NO_LEADER,
    Counted,
    Counts,
    by_topic,
    of_brokers,
    partition_counts,
)
from kraftlog.schema import TIMESTAMP, TableSchema

TIMELINE = TableSchema(
    "timeline",
    "something that happened in a cluster",
    {
        "timestamp": TIMESTAMP,
        "offset": pa.int64(),
        "last_offset": pa.int64(),
        "event": pa.string(),
        "topic": pa.string(),
        "broker_id": pa.int32(),
        "partitions": pa.int64(),
        "message": pa.string(),
    },
)
SHOWN = 3
_NOT_SHOWN = (PRODUCER_IDS.name, PARTITIONS.name)
_WORDS = {
    "client_quota": "quota of",
    "scram_credential": "SCRAM credential",
    "delegation_token": "delegation token",
    "controller": "controller",
}
_VERBS = {ADDED: "added", REMOVED: "removed"}


@dataclass(frozen=True)
class Happening:
    """One line of a timeline; ``partitions`` says how many it concerns, None where that means nothing."""

    offset: int
    last_offset: int
    event: str
    message: str
    topic: str | None = None
    broker_id: int | None = None
    partitions: int | None = None


@dataclass
class Burst:
    """What steps within a second change, as far as it is wanted."""

    where: ChangeFilter = ChangeFilter()  # noqa: RUF009  (frozen)
    counts: Counts = field(default_factory=dict)
    created: dict[str, Counted] = field(default_factory=dict)
    deleted: dict[str, Counted] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def take(self, changed: ChangedByType) -> None:
        """Add what some of the steps changed, in order."""
        changed = self.where.records(changed)
        partitions = changed.get(PARTITIONS.name)
        if partitions is not None:
            _add(self.counts, of_brokers(partition_counts(partitions), self.where.brokers))
            _add(self.created, by_topic(partitions, np.flatnonzero(partitions.was == NOWHERE)))
            _add(self.deleted, by_topic(partitions, np.flatnonzero(partitions.now == NOWHERE)))
        others = {name: one for name, one in changed.items() if name not in _NOT_SHOWN}
        self.rows += change_rows(others, _whole).to_pylist()

    def happenings(self) -> list[Happening]:
        """Return a line for each thing that happened, in the order in which they began."""
        happenings = [
            *self._of_topics(),
            *self._of_brokers(),
            *self._of_lists(),
            *self._of_configs(),
            *self._of_others(),
        ]
        happenings += self._of_leaders()
        return sorted(happenings, key=lambda one: one.offset)

    def _rows(self, kind: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["kind"] == kind]

    def _of_topics(self) -> Iterator[Happening]:
        rows = self._rows(TOPICS.kind)
        for change, verb, partitions in ((ADDED, "created", self.created), (REMOVED, "deleted", self.deleted)):
            topics = {row["key"]: row["group"] for row in rows if row["change"] == change}
            counts = {topic: partitions.get(topic, Counted(at, at)).count for topic, at in topics.items()}
            if len(topics) > SHOWN:
                shown = f"{', '.join(list(topics)[:SHOWN])} and {len(topics) - SHOWN} more"
                total = sum(counts.values())
                message = f"{len(topics)} topics {verb}{_with_partitions(total)}: {shown}"
                yield Happening(min(topics.values()), max(topics.values()), "topic", message, partitions=total or None)
                continue
            for topic, offset in topics.items():
                configs = [
                    f"{row['field']}={row['after']}"
                    for row in self._rows(CONFIGS.kind)
                    if row["topic"] == topic and row["change"] == change == ADDED
                ]
                message = f"topic {topic} {verb}{_with_partitions(counts[topic])}" + _listed(configs)
                yield Happening(offset, offset, "topic", message, topic, partitions=counts[topic] or None)
        topic_keys = {row["key"] for row in rows}
        for verb, partitions in (("added", self.created), ("removed", self.deleted)):
            others = {topic: counted for topic, counted in partitions.items() if topic not in topic_keys}
            if len(others) > SHOWN:
                shown = f"{', '.join(list(others)[:SHOWN])} and {len(others) - SHOWN} more"
                total = sum(counted.count for counted in others.values())
                first = min(counted.first_offset for counted in others.values())
                last = max(counted.last_offset for counted in others.values())
                message = f"{len(others)} topics: {_partitions(total)} {verb}: {shown}"
                yield Happening(first, last, "topic", message, partitions=total)
                continue
            for topic, counted in others.items():
                message = f"topic {topic}: {_partitions(counted.count)} {verb}"
                yield Happening(counted.first_offset, counted.last_offset, "topic", message, topic, None, counted.count)

    def _of_brokers(self) -> Iterator[Happening]:
        of_broker: dict[int, list[dict[str, Any]]] = {}
        for row in self._rows(BROKERS.kind):
            of_broker.setdefault(int(row["key"]), []).append(row)
        for broker, rows in of_broker.items():
            said = ", ".join(dict.fromkeys(filter(None, map(_of_broker, rows))))
            first, last = rows[0]["group"], rows[-1]["group"]
            lost = self._take_leaders(broker) if any(_loses_leaders(row) for row in rows) else None
            if not said and lost is None:
                continue
            message, count = f"broker {broker} {said}", None
            if lost is not None:
                moved, became = lost
                message += f": {moved} lost leader {broker}, now {became}"
                first, last, count = min(first, moved.first_offset), max(last, moved.last_offset), moved.count
            yield Happening(first, last, "broker", message, broker_id=broker, partitions=count)

    def _of_leaders(self) -> Iterator[Happening]:
        for broker in sorted({old for what, old, _ in self.counts if what == "leader"}):
            taken = self._take_leaders(broker)
            if taken is None:
                continue
            moved, became = taken
            message = (
                f"{moved} without a leader: now {became}"
                if broker == NO_LEADER
                else f"{moved} lost leader {broker}: now {became}"
            )
            at = moved.first_offset, moved.last_offset
            yield Happening(*at, "leader", message, None, None if broker < 0 else broker, moved.count)

    def _take_leaders(self, broker: int) -> tuple[Counted, str] | None:
        """Take the moves of leaders away from a broker; return how many partitions, and where the leaders are now."""
        keys = [key for key in self.counts if key[0] == "leader" and key[1] == broker]
        if not keys:
            return None
        moves = {new: self.counts.pop((what, old, new)) for what, old, new in keys}
        every = Counted(min(one.first_offset for one in moves.values()), 0)
        for one in moves.values():
            every.count += one.count
            every.names = [*every.names, *one.names][:NAMES_SHOWN]
        every.last_offset = max(one.last_offset for one in moves.values())
        shown = sorted(moves.items(), key=lambda move: (-move[1].count, move[0]))
        texts = {new: "none" if new == NO_LEADER else str(new) for new in moves}
        if len(moves) == 1:
            return every, texts[shown[0][0]]
        return every, ", ".join(f"{texts[new]} ({one.count:,})" for new, one in shown)

    def _of_lists(self) -> Iterator[Happening]:
        for (what, broker, _), counted in self.counts.items():
            at = counted.first_offset, counted.last_offset
            if what == "unclean":
                message = f"{counted}: unclean election of leader {broker}"
                yield Happening(*at, "unclean_election", message, None, broker, counted.count)
            elif what != "leader":
                column = next(name for name, words in LISTS.items() if what in words)
                yield Happening(*at, column, f"broker {broker} {what} of {counted}", None, broker, counted.count)

    def _of_configs(self) -> Iterator[Happening]:
        topics = {row["key"] for row in self._rows(TOPICS.kind)}
        same: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for row in self._rows(CONFIGS.kind):
            if row["topic"] not in topics:
                same.setdefault((row["change"], row["field"], str(row["before"]), str(row["after"])), []).append(row)
        for (change, name, before, after), rows in same.items():
            keys = list(dict.fromkeys(row["key"] for row in rows))
            shown = ", ".join(keys[:SHOWN])
            more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
            yield Happening(
                rows[0]["group"],
                rows[-1]["group"],
                "config",
                f"config of {shown}{more}: {name} {_set(change, before, after)}",
                rows[0]["topic"] if len(keys) == 1 else None,
            )

    def _of_others(self) -> Iterator[Happening]:
        done = {TOPICS.kind, BROKERS.kind, CONFIGS.kind}
        keys: set[tuple[str, str, int]] = set()
        for row in self.rows:
            kind, key, at = row["kind"], row["key"], row["group"]
            if kind in done:
                continue
            if kind == QUOTAS.kind:
                text = f"quota of {key}: {row['field']} {_set(row['change'], row['before'], row['after'])}"
            elif kind == FEATURES.kind:
                text = f"feature {key} {_of_feature(row)}"
            elif kind == ACLS.kind:
                text = f"ACL {_VERBS.get(row['change'], 'changed')}: {row['after'] or row['before'] or key}"
            elif (kind, key, at) in keys:
                continue
            else:
                keys.add((kind, key, at))
                verb = "registered" if kind == "controller" and row["change"] != REMOVED else row["change"]
                text = f"{_WORDS.get(kind, kind)} {key} {verb}"
            yield Happening(at, at, kind, text)


def _add(counts: dict[Any, Counted], more: Mapping[Any, Counted]) -> None:
    for key, counted in more.items():
        if key in counts:
            counts[key].add(counted)
        else:
            counts[key] = counted


def _with_partitions(count: int) -> str:
    """Return nothing for no partitions: only their topics were asked for."""
    return f", {_partitions(count)}" if count else ""


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count:,} partitions"


def _listed(configs: list[str]) -> str:
    if not configs:
        return ""
    more = len(configs) - SHOWN
    return f", {', '.join(configs[:SHOWN])}" + (f" and {more} more config{'s' * (more > 1)}" if more > 0 else "")


def _whole(name: str, rows: pa.Table) -> pa.Array:
    """Return the main fields of records that came or went; an ACL as a sentence."""
    if name != ACLS.name:
        return main_fields(name, rows)
    texts = {column: column_texts(name, column, rows).to_pylist() for column in ACLS.shown}
    each = [dict(zip(texts, values, strict=True)) for values in zip(*texts.values(), strict=True)]
    return pa.array(
        [
            f"{acl['permission_type']} {acl['operation']} on {acl['resource_type']} {acl['resource_name']}"
            f" ({acl['pattern_type']}) for {acl['principal']} from {acl['host']}"
            for acl in each
        ],
        pa.string(),
    )


def _set(change: str, before: str, after: str) -> str:
    return {ADDED: f"= {after}", REMOVED: f"= {before} removed"}.get(change, f"{before} -> {after}")


def _of_feature(row: Mapping[str, Any]) -> str:
    if row["change"] in (ADDED, REMOVED):
        return f"{_VERBS[row['change']]}: {row['after'] or row['before']}"
    return f"level {row['before']} -> {row['after']}"


def _of_broker(row: Mapping[str, Any]) -> str | None:
    """Return what a row says that a broker did; None for what goes with a registration."""
    if row["change"] == ADDED:
        return f"registered ({row['after']})"
    if row["change"] == REMOVED:
        return "unregistered"
    is_so = row["after"] == "true"
    before, after = (row[side] or "[]" for side in ("before", "after"))
    if before == after:
        return None
    return {
        "fenced": "fenced" if is_so else "unfenced",
        "in_controlled_shutdown": "in controlled shutdown" if is_so else None,
        "broker_epoch": f"registered again (broker_epoch {row['before']} -> {row['after']})",
        "log_dirs": f"log directories {before} -> {after}",
        "cordoned_log_dirs": f"cordoned log directories {before} -> {after}",
    }.get(row["field"])


def _loses_leaders(row: Mapping[str, Any]) -> bool:
    return row["change"] == REMOVED or (row["after"] == "true" and row["field"] in ("fenced", "in_controlled_shutdown"))
