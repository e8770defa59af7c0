"""The lag of groups: committed offsets compared with the ends of the logs, from the files of a broker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from kraftlog import schema
from kraftlog.coordinator.assigned_partitions import AssignedPartition, assigned_partitions
from kraftlog.coordinator.groups import Groups
from kraftlog.coordinator.members import Names
from kraftlog.coordinator.offset_columns import COMMITTED, offset_columns, up_to
from kraftlog.errors import error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.tables.causes import GroupState
from kraftlog.tables.coordinator_tables import commits_and_groups
from kraftlog.tables.lines import Lines
from kraftlog.tables.log_states import LogStates
from kraftlog.tables.partition_ends import PartitionEnds, live_logs
from kraftlog.tables.read import Read
from kraftlog.topics import CONSUMER_OFFSETS, TopicPartition

_OFFSETS = schema.OFFSETS.select(
    ["group", "topic", "partition", "offset", "state", "commit_timestamp_ms", "producer_id"]
)
_OF_MEMBER = ("member_id", "client_id", "client_host")
Takes = Callable[[str, str | None], bool]
_OF_CAUSES = {"cause", "sentence"}


class GroupPlace(NamedTuple):
    """A partition of a topic, by the id of the topic where its name is not known."""

    group: str
    topic: str | None
    topic_id: str | None
    partition: int

    @property
    def name(self) -> str:
        """The name of the partition."""
        return f"{self.topic or self.topic_id}-{self.partition}"


def lag_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table lag; of replicas the lines count, and ``__consumer_offsets`` is healed."""
    whole = read.of_whole_log()
    lines = Lines(read.files)
    segments = lines.found.segments
    if read.options.heal:
        committed = lines.found.only(lambda topic, _: topic == CONSUMER_OFFSETS)
        segments = [one for one in segments if one.topic != CONSUMER_OFFSETS]
        segments += lines.healed(committed, read.notes).segments

    @cache
    def takes(group: str, topic: str | None) -> bool:
        return read.bounds is None or read.bounds.allows_values(group=group, topic=topic)

    says_why = not _OF_CAUSES.isdisjoint(read.schema.names)
    states = LogStates(lines, read.files, whole) if says_why else None
    at_cut = read.files.ends_at_cut
    yield from lags_of_segments(segments, read.schema, whole, takes=takes, states=states, ends_at_cut=at_cut)


def lags_of_segments(
    segments: list[Segment],
    arrow_schema: pa.Schema,
    read: Pass,
    ends: dict[TopicPartition, PartitionEnds] | None = None,
    takes: Takes | None = None,
    states: LogStates | None = None,
    ends_at_cut: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> Iterator[pa.RecordBatch]:
    """Return the table lag, a record batch for each partition of ``__consumer_offsets``.

    A partition that several members have is a row of each, as ``kafka-consumer-groups`` shows it. Offsets that wait for
    the end of a transaction are not committed.

    Parameters
    ----------
    segments : list of Segment
        Of one replica of each partition.
    arrow_schema : pyarrow.Schema
    read : Pass
    ends : dict, optional
        Partitions whose ends are known; receives those of others.
    takes : callable, optional
        Whether a group is wanted in a topic; by default all are.
    states : LogStates, optional
        Says why a group waits; the columns ``cause`` and ``sentence`` are null without it.
    ends_at_cut : mapping of TopicPartition to int
        As in a ``Discovery``.
    """
    logs = {group[0].topic_partition: group for group in live_logs(segments)}
    ends = {} if ends is None else ends
    faults, known = read.faults, len(read.faults)
    for places in group_places(segments, takes, read, ends_at_cut):
        rows = []
        for place, group in places:
            of = TopicPartition(place.topic or "", place.partition)
            if of in logs and of not in ends:
                ends[of] = PartitionEnds(logs[of], faults)
            row = {"current_offset": group.current} | {name: group.member.get(name) for name in _OF_MEMBER}
            row |= place._asdict() | _compared(group.current, place, ends.get(of))
            if states is not None:
                cause, _ = states.cause(ends.get(of), group)
                row |= {"cause": cause.code, "sentence": f"{place.name}: {cause.text}"}
            rows.append(row)
            if read.options.strict and len(faults) > known:
                raise error_from_fault(faults[known])
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema)


def group_places(
    segments: list[Segment], takes: Takes | None, read: Pass, ends_at_cut: Mapping[TopicPartition, int]
) -> Iterator[list[tuple[GroupPlace, GroupState]]]:
    """Return the partitions that groups have committed or that members have, by partition of ``__consumer_offsets``."""
    found, names = commits_and_groups(segments, read)
    columns = [offset_columns(up_to(commits, ends_at_cut), _OFFSETS) for commits, _ in found]
    rows = [[] if one is None else one.to_pylist() for one in columns]
    newest = max((row["commit_timestamp_ms"] for some in rows for row in some), default=None)
    for commits_of_one, (_, groups) in zip(rows, found, strict=True):
        yield list(_places(commits_of_one, groups, names, takes, newest))


def _places(
    commits: list[dict[str, Any]], groups: Groups, names: Names, takes: Takes | None, newest: int | None
) -> Iterator[tuple[GroupPlace, GroupState]]:
    committed: dict[GroupPlace, dict[str, Any]] = {}
    pending: dict[GroupPlace, int] = {}
    for row in commits:
        place = GroupPlace(row["group"], row["topic"], None, row["partition"])
        if row["state"] == COMMITTED:
            committed[place] = row
        else:
            pending[place] = row["producer_id"]
    members, with_members = defaultdict(list), set[str]()
    for one in assigned_partitions(groups, names):
        members[_place(one)].append(one.member)
        with_members.add(one.group)
    for place in sorted({*committed, *members}, key=_order):
        if takes is None or takes(place.group, place.topic):
            row = committed.get(place, {})
            for member in members.get(place, [{}]):
                yield (
                    place,
                    GroupState(
                        place.group,
                        row.get("offset"),
                        row.get("commit_timestamp_ms"),
                        newest,
                        pending.get(place),
                        member,
                        has_members=place.group in with_members,
                    ),
                )


def _place(one: AssignedPartition) -> GroupPlace:
    return GroupPlace(one.group, one.topic, one.topic_id if one.topic is None else None, one.partition)


def _order(place: GroupPlace) -> tuple[str, str, str, int]:
    return place.group, place.topic or "", place.topic_id or "", place.partition


def _compared(current: int | None, place: GroupPlace, ends: PartitionEnds | None) -> dict[str, Any]:
    nothing = ["no offset is committed"] if current is None else []
    if ends is None:
        topic = f"the topic with id {place.topic_id}" if place.topic is None else f"{place.topic}-{place.partition}"
        return {"reason": "; ".join([*nothing, f"no log of {topic} among the files"])}
    end, stable = ends.log_end_offset, ends.last_stable_offset
    is_read = end is not None and stable is not None
    unread = [] if is_read else [f"the log of {place.topic}-{place.partition} cannot be read to its end"]
    return {
        "log_start_offset": ends.log_start_offset,
        "log_end_offset": end,
        "lag": None if end is None or current is None else end - current,
        "last_stable_offset": stable,
        "read_committed_lag": None if stable is None or current is None else stable - current,
        "reason": "; ".join([*nothing, *unread]) or None,
    }
