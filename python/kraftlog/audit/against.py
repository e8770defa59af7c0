"""Checks of a cluster against another one: a backup, a restored cluster, or a mirror.

A copy has the same topic ids, and with them the same offsets. A mirror has the same records at other offsets: that of
MirrorMaker 2, under the same name or with the alias of the source in front, or the target of ``kraftlog replay``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from kraftlog.audit.compared_records import CopyComparison, MirrorComparison, SomeRecords
from kraftlog.audit.contents import contents_of
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.audit.settled import Of, settled
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.spilled_rows import Rows
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.messages.format_of import CHECKPOINTS, OFFSET_SYNCS, format_of_topic
from kraftlog.read.held_offsets import lacks_records
from kraftlog.read.log_pass import Pass
from kraftlog.read.messages import typed_chunks
from kraftlog.read.partitions import Partition
from kraftlog.read.segment_reader import segment_headers
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.read import Read
from kraftlog.topics import CONSUMER_OFFSETS, INTERNAL_TOPICS, REMOTE_LOG_METADATA, TopicPartition

_CHECKPOINTS = re.compile(r"(.+)\.checkpoints\.internal")
# Settings that MirrorMaker 2 does not copy (config.properties.exclude)
_NOT_MIRRORED = re.compile(
    r"follower\.replication\.throttled\.replicas|leader\.replication\.throttled\.replicas|min\.insync\.replicas"
    r"|message\.timestamp\..*|unclean\.leader\.election\.enable|remote\..*|local\.retention\..*"
)
# Topics that MirrorMaker 2 does not copy, its own and those of Kafka Connect among them (ReplicationPolicy)
_INTERNAL = re.compile(r"(__|\.).*|.*[.-]internal")
_READABLE = "Both partitions can be read without faults."
_NOT_COMPACTED = (
    " Neither is compacted: not by the settings in a metadata log, and no batch lacks records. In a mirror, only"
    " records count whose content no other record of the partition has, between the first and the last one that both"
    " have."
)

TOPIC_NOT_COPIED = FindingCode(
    "topic_not_copied",
    Severity.WARNING,
    "The other cluster has no partition of the topic: it was left out, or lost.",
    "The topic has records, and a name that MirrorMaker 2 copies: none that begins with __ or a dot, or ends in"
    " .internal or -internal. The other cluster has another topic of this one, and its files are complete: its metadata"
    " log has no such topic, or none of its directories belongs to a broker.",
)
TOPIC_CREATED_AGAIN = FindingCode(
    "topic_created_again",
    Severity.WARNING,
    "The topic was deleted and created again between the two: their records and offsets have nothing in common, and are"
    " not compared.",
    "Both have the same cluster id, and the topic has another id in each.",
)
PARTITION_NOT_COPIED = FindingCode(
    "partition_not_copied",
    Severity.WARNING,
    "The other cluster lacks a partition of a topic that it has.",
    "As for topic_not_copied.",
)
CONFIG_DIFFERS = FindingCode(
    "config_differs",
    Severity.WARNING,
    "The topic behaves differently in the other cluster: retention, compaction or limits.",
    "Both clusters have a metadata log. For a mirror, both set it, and MirrorMaker copies settings of that name.",
)
RECORD_DIFFERS = FindingCode(
    "record_differs",
    Severity.ERROR,
    "The copy has other keys, values or headers at these offsets. A copy that was redacted differs on purpose.",
    "Both have the same topic id, so that offsets are the same. " + _READABLE,
)
RECORD_MISSING = FindingCode(
    "record_missing",
    Severity.ERROR,
    "The other cluster lacks committed records between others that it has.",
    _READABLE + _NOT_COMPACTED,
)
RECORD_ADDED = FindingCode(
    "record_added",
    Severity.WARNING,
    "The other cluster has records between those of this one: somebody else writes to the copy.",
    _READABLE + " Neither is compacted. In a copy, records of aborted transactions do not count.",
)
ORDER_DIFFERS = FindingCode(
    "order_differs",
    Severity.ERROR,
    "A consumer of the mirror sees the records of a key in another order, and may end with another value.",
    _READABLE
    + " Only records count whose content no other record of the partition has. The topics have the same number"
    " of partitions.",
)
COPY_BEHIND = FindingCode(
    "copy_behind",
    Severity.NOTE,
    "The copy ends earlier: it was made earlier, or lags.",
    _READABLE,
)
OFFSET_SYNC_MISMATCH = FindingCode(
    "offset_sync_mismatch",
    Severity.ERROR,
    "MirrorMaker translates committed offsets by this pair: groups that fail over start at the wrong record.",
    "The last pair of the partition, if both clusters have a record at its offset. " + _READABLE,
)
CHECKPOINT_SKIPS_RECORDS = FindingCode(
    "checkpoint_skips_records",
    Severity.ERROR,
    "A group that fails over to the mirror starts after records that it has not read.",
    "The last checkpoint of the group and partition. Only records count whose content no other record of the source"
    " has, and that the mirror has. " + _READABLE,
)
GROUP_OFFSET_DIFFERS = FindingCode(
    "group_offset_differs",
    Severity.NOTE,
    "The group continues at another offset in the copy, or is not there.",
    "Both clusters have __consumer_offsets, and the topic has the same id in both.",
)


@dataclass(frozen=True)
class Pair:
    """A partition, and that of the other cluster with the same records.

    Attributes
    ----------
    own, other : Partition
    is_copy : bool
        Whether the topic has the same id in both, so that offsets are the same.
    is_compacted : bool
        Whether a cleaner may have removed records of one of them.
    """

    own: Partition
    other: Partition
    is_copy: bool
    is_compacted: bool

    @property
    def of(self) -> TopicPartition:
        """Topic and number in this cluster."""
        return TopicPartition(self.own.topic or "", self.own.partition or 0)

    @property
    def other_of(self) -> TopicPartition:
        """Topic and number in the other cluster."""
        return TopicPartition(self.other.topic or "", self.other.partition or 0)

    @property
    def start_offset(self) -> int:
        """The offset before which one of them may have been deleted."""
        return max(self.own.start_offset or 0, self.other.start_offset or 0)

    @property
    def offsets_count(self) -> int:
        """The number of offsets of the larger one."""
        return max(one.end_offset - (one.start_offset or 0) for one in (self.own, self.other))


class Comparison:
    """Two clusters, and which of their partitions belong together.

    Parameters
    ----------
    own, other : Evidence
        With the same pass.
    partitions : collection of (str, int), optional
        Those to compare, as either cluster names them; by default all.
    """

    def __init__(self, own: Evidence, other: Evidence, partitions: Collection[Of] | None = None) -> None:
        self.own = own
        self.other = other
        self._chosen = partitions
        self._partitions = _partitions(own)
        self._others = _partitions(other)

    @property
    def read(self) -> Pass:
        """The pass over both."""
        return self.own.read

    @property
    def notes(self) -> list[str]:
        """What cannot be known; where a metadata log cannot be read, settings are not compared."""
        return []

    def listed_again(self) -> tuple[Discovery, Discovery] | None:
        """Return the files of both that are there now; None if they cannot be listed."""
        own, other = self.own.listed_again(), self.other.listed_again()
        return None if own is None or other is None else (own, other)

    def stale(self, again: tuple[Discovery, Discovery]) -> set[Of]:
        """Return the partitions of either of which files were deleted or replaced while they were read."""
        stale = self.own.stale(again[0]) | self.other.stale(again[1])
        return stale | {
            of for pair in self.pairs if stale & {pair.of, pair.other_of} for of in (pair.of, pair.other_of)
        }

    def only(self, files: tuple[Discovery, Discovery], partitions: Collection[Of]) -> Self:
        """Return some partitions of both as they are now, with faults of their own."""
        read = self.read.faults_only().apart()
        own, other = (
            replace(one, files=now, read=read) for one, now in zip((self.own, self.other), files, strict=True)
        )
        return type(self)(own, other, partitions)

    @cached_property
    def topics(self) -> dict[str, str]:
        """The topics of users, and their names in the other cluster where it has them.

        That is the name with the alias of a source of MirrorMaker in front, or the same name.
        """
        there = {of.topic for of in self._others}
        aliases = [match[1] for topic in _topics(self.other) if (match := _CHECKPOINTS.fullmatch(topic))]
        found = {}
        for topic in {of.topic: None for of in self._partitions if of.topic not in self.created_again}:
            names = [*(f"{alias}.{topic}" for alias in aliases), topic]
            name = next((name for name in names if name in there), None)
            if name is not None:
                found[topic] = name
        return found

    @cached_property
    def created_again(self) -> dict[str, tuple[str, str]]:
        """Both ids of the topics that have the same name and others in one cluster: a mirror is in another cluster."""
        ids, others = _topic_ids(self._partitions), _topic_ids(self._others)
        clusters = _cluster_ids(self._partitions), _cluster_ids(self._others)
        if len(clusters[0] | clusters[1]) != 1 or not all(clusters):
            return {}
        return {of: (ids[of], others[of]) for of in sorted(ids.keys() & others.keys()) if ids[of] != others[of]}

    @property
    def user_topics(self) -> list[str]:
        """The topics of users in this cluster, in order."""
        return sorted({of.topic for of in self._partitions})

    @property
    def other_user_topics(self) -> list[str]:
        """The topics of users in the other cluster, in order."""
        return sorted({of.topic for of in self._others})

    @cached_property
    def pairs(self) -> list[Pair]:
        """The partitions that both clusters have."""
        pairs = []
        for of, partition in self._partitions.items():
            other = self._others.get(TopicPartition(self.topics.get(of.topic, ""), of.partition))
            if other is not None:
                topic_ids = partition.line.topic_id, other.line.topic_id
                is_compacted = _is_compacted(self.own, partition) or _is_compacted(self.other, other)
                pairs.append(Pair(partition, other, topic_ids[0] == topic_ids[1] is not None, is_compacted))
        chosen = self._chosen
        return [one for one in pairs if chosen is None or not {one.of, one.other_of}.isdisjoint(chosen)]

    def has_same_partitions(self, pair: Pair) -> bool:
        """Whether the topics of a pair have the same number of partitions among the files."""
        counts = [
            max((of.partition for of in partitions if of.topic == topic), default=-1)
            for partitions, topic in ((self._partitions, pair.own.topic), (self._others, pair.other.topic))
        ]
        return counts[0] == counts[1]

    @cached_property
    def offset_syncs(self) -> list[dict[str, Any]]:
        """The last pair of offsets of each partition, by MirrorMaker; its topic may be in either cluster."""
        key = ("key_topic", "key_partition")
        return [row for one in (self.own, self.other) for row in _last_messages(one, OFFSET_SYNCS, "OffsetSync", key)]

    @cached_property
    def checkpoints(self) -> list[dict[str, Any]]:
        """The last checkpoint of each group and partition, by MirrorMaker."""
        return _last_messages(self.other, CHECKPOINTS, "Checkpoint", ("group", "key_topic", "key_partition"))

    def not_copied(self) -> Iterator[tuple[Partition, bool]]:
        """Return the partitions with records that the other cluster lacks, and whether it has others of the topic."""
        cluster = self.other.cluster
        is_complete = cluster is not None or all(
            one.node_id is None for partition in self._others.values() for one in partition.replicas
        )
        for of, partition in self._partitions.items():
            name = self.topics.get(of.topic)
            other = TopicPartition(name or of.topic, of.partition)
            is_other_topic = of.topic in self.created_again
            if not self.topics or not is_complete or other in self._others or is_other_topic:
                continue
            is_known = cluster is not None and other in cluster.partitions  # other brokers have it
            if not is_known and partition.end_offset > (partition.start_offset or 0):
                yield partition, name is not None


def _topic_ids(partitions: Mapping[TopicPartition, Partition]) -> dict[str, str]:
    each = ((of.topic, partition.line.topic_id) for of, partition in partitions.items())
    return {topic: topic_id for topic, topic_id in each if topic_id is not None}


def _cluster_ids(partitions: Mapping[TopicPartition, Partition]) -> set[str]:
    each = (one.cluster_id for partition in partitions.values() for one in partition.replicas)
    return {one for one in each if one is not None}


def _topics(evidence: Evidence) -> set[str]:
    return {one.topic for one in evidence.lines.partitions if one.topic is not None}


def _partitions(evidence: Evidence) -> dict[TopicPartition, Partition]:
    """Return the partitions of users' topics."""
    found = {}
    for partition in evidence.lines.partitions:
        of = partition.segments[0].topic_partition
        is_own = of is not None and of.topic not in {*INTERNAL_TOPICS, REMOTE_LOG_METADATA}
        if (
            of is not None
            and is_own
            and format_of_topic(of.topic) is None
            and partition.segments[0].base_offset is not None
        ):
            found[of] = partition
    return found


def _is_compacted(evidence: Evidence, partition: Partition) -> bool:
    policy = None if evidence.cluster is None else evidence.cluster.config(partition.topic or "", "cleanup.policy")
    if policy is not None and "compact" in policy:
        return True
    headers = (one for segment in partition.segments for one in segment_headers(segment, []))
    return any(bool(lacks_records(one).any()) for one in headers)


def topics_created_again(comparison: Comparison) -> Iterator[Finding]:
    """Return topics that are others in the other cluster."""
    for topic, (own, other) in comparison.created_again.items():
        yield Finding(TOPIC_CREATED_AGAIN, f"the topic has the id {own}, in the other cluster {other}", topic)


def topics_not_copied(comparison: Comparison) -> Iterator[Finding]:
    """Return topics and partitions that the other cluster lacks."""
    lacking = set[str]()
    for partition, has_topic in comparison.not_copied():
        topic = partition.topic or ""
        if has_topic:
            known = f"the other cluster has no partition {partition.partition} of {comparison.topics[topic]}"
            yield Finding(PARTITION_NOT_COPIED, known, topic, partition.partition)
        elif topic not in lacking and not _INTERNAL.fullmatch(topic):
            lacking.add(topic)
            yield Finding(TOPIC_NOT_COPIED, f"the other cluster has no topic {topic}", topic)


def configs_that_differ(comparison: Comparison) -> Iterator[Finding]:
    """Return settings of topics that differ."""
    own, other = comparison.own.cluster, comparison.other.cluster
    if own is None or other is None:
        return
    copies = {pair.own.topic: pair.is_copy for pair in comparison.pairs}
    for topic, is_copy in sorted(copies.items(), key=lambda item: item[0] or ""):
        configs, others = own.topic_configs(topic or ""), other.topic_configs(comparison.topics[topic or ""])
        names = configs.keys() | others.keys() if is_copy else configs.keys() & others.keys()
        differences = [
            f"{name} is {configs.get(name, 'not set')}, in the other cluster {others.get(name, 'not set')}"
            for name in sorted(names)
            if configs.get(name) != others.get(name) and (is_copy or not _NOT_MIRRORED.fullmatch(name))
        ]
        if differences:
            yield Finding(CONFIG_DIFFERS, "; ".join(differences), topic)


def records_that_differ(comparison: Comparison) -> Iterator[Finding]:
    """Return differences between the records of both clusters, and offsets of MirrorMaker that contradict them."""
    for pair in comparison.pairs:
        faults: list[Fault] = []
        contents = contents_of(pair.own, faults), contents_of(pair.other, faults)
        differences = _differences_of_copy if pair.is_copy else _differences_of_mirror
        findings = differences(comparison, pair, *contents)
        comparison.own.read.add(*faults)
        comparison.own.read.advance(pair.own.size_in_bytes)
        if not faults:  # else it cannot be known what is lacking
            yield from findings


def _differences_of_copy(_: Comparison, pair: Pair, own: Iterator[Rows], other: Iterator[Rows]) -> list[Finding]:
    compared, found = CopyComparison.of(own, other, pair.start_offset), list[Finding]()
    if (some := compared.differing).count:
        verb = "has" if some.count == 1 else "have"
        known = f"{some.with_offsets} {verb} other contents in the copy"
        found.append(Finding(RECORD_DIFFERS, known, *pair.of, some.first))
    if not pair.is_compacted:
        found += _of_offsets(RECORD_MISSING, pair, compared.own.between, "missing")
        found += _of_offsets(RECORD_ADDED, pair, compared.other.between, "added")
    if (behind := compared.own.after).count:
        known = f"the records of the copy end before offset {behind.first}, the first of {behind}"
        found.append(Finding(COPY_BEHIND, known, *pair.of, behind.first))
    return found


def _differences_of_mirror(
    comparison: Comparison, pair: Pair, own: Iterator[Rows], other: Iterator[Rows]
) -> list[Finding]:
    syncs = [row for row in comparison.offset_syncs if (row["key_topic"], row["key_partition"]) == pair.of]
    of_other = pair.other.topic, pair.other.partition
    checkpoints = [row for row in comparison.checkpoints if (row["key_topic"], row["key_partition"]) == of_other]
    translations = [(row["upstream_offset"], row["value_offset"]) for row in (*syncs, *checkpoints)]
    with closing(MirrorComparison(own, other, pair.offsets_count, translations)) as compared:
        return [
            *_records_of_mirror(pair, compared, is_ordered=comparison.has_same_partitions(pair)),
            *_offset_syncs_that_mislead(pair, compared, syncs),
            *_checkpoints_that_skip(pair, compared.skipped[len(syncs) :], checkpoints),
        ]


def _records_of_mirror(pair: Pair, compared: MirrorComparison, *, is_ordered: bool) -> Iterator[Finding]:
    missing, added, behind = compared.differences()
    if not pair.is_compacted:
        yield from _of_offsets(RECORD_MISSING, pair, missing, "not in the mirror")
        if added.count:
            verb = "is" if added.count == 1 else "are"
            known = f"{added} of the mirror, the first at its offset {added.first}, {verb} not in this cluster"
            yield Finding(RECORD_ADDED, known, *pair.of)
    odd = compared.out_of_order() if is_ordered else None
    if odd is not None:
        known = (
            f"offset {odd.offset} is at offset {odd.mirror_offset} of the mirror, before offset {odd.following} of the"
            f" same key at {odd.following_mirror_offset}"
        )
        yield Finding(ORDER_DIFFERS, known, *pair.of, odd.following)
    if behind.count:
        known = f"the mirror has records up to offset {compared.offsets.last}, before {behind}"
        yield Finding(COPY_BEHIND, known, *pair.of, behind.first)


def _of_offsets(code: FindingCode, pair: Pair, some: SomeRecords, what: str) -> Iterator[Finding]:
    if some.count:
        verb = "is" if some.count == 1 else "are"
        yield Finding(code, f"{some.with_offsets} {verb} {what}", *pair.of, some.first)


def _offset_syncs_that_mislead(
    pair: Pair, compared: MirrorComparison, syncs: Sequence[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Return pairs of offsets of MirrorMaker that are not those of one record."""
    for row in syncs:
        upstream, downstream = row["upstream_offset"], row["value_offset"]
        if compared.is_of_one_record(upstream, downstream) is False:
            known = f"the pair {upstream}, {downstream} of {row['topic']} is of two different records"
            yield Finding(OFFSET_SYNC_MISMATCH, known, *pair.of, upstream)


def _checkpoints_that_skip(
    pair: Pair, skipped: Sequence[SomeRecords], checkpoints: Sequence[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Return checkpoints of MirrorMaker that lie after records that the group has not read."""
    for row, some in zip(checkpoints, skipped, strict=True):
        if some.count:
            known = (
                f"group {row['group']} has committed offset {row['upstream_offset']}, and its checkpoint in the mirror"
                f" is {row['value_offset']}: {some} from offset {some.first} on come before it"
            )
            yield Finding(CHECKPOINT_SKIPS_RECORDS, known, *pair.of, some.first)


def _last_messages(evidence: Evidence, format_name: str, type_name: str, key: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the last message of each key in the topics of a format, with its topic."""
    last: dict[tuple[Any, ...], dict[str, Any]] = {}
    segments = [one for one in evidence.lines.found.segments if format_of_topic(one.topic or "") == format_name]
    for chunk in typed_chunks(segments, [], Pass(ReadOptions(), evidence.read.faults)) if segments else ():
        typed = chunk.messages.typed(type_name)
        for row, is_tombstone in zip(typed.fields.to_pylist(), typed.is_tombstone.tolist(), strict=True):
            of = chunk.segment.topic, *(row[name] for name in key)
            last.pop(of, None)
            if not is_tombstone:
                last[of] = row | {"topic": chunk.segment.topic}
    return list(last.values())


def group_offsets_that_differ(comparison: Comparison) -> Iterator[Finding]:
    """Return committed offsets of topics with the same id that the copy does not have."""
    copies = {pair.of for pair in comparison.pairs if pair.is_copy}
    own, others = (_committed(evidence) for evidence in (comparison.own, comparison.other))
    if own is None or others is None:
        return
    for (group, topic, partition), offset in sorted(own.items()):
        there = others.get((group, topic, partition))
        if TopicPartition(topic, partition) in copies and there != offset:
            which = "no offset" if there is None else f"offset {there}"
            known = f"group {group} has committed offset {offset}, in the copy {which}"
            yield Finding(GROUP_OFFSET_DIFFERS, known, topic, partition, offset)


def _committed(evidence: Evidence) -> dict[tuple[str, str, int], int] | None:
    """Return the committed offsets by group and partition; None without the topic."""
    segments = [one for one in evidence.lines.found.segments if one.topic == CONSUMER_OFFSETS]
    if not segments:
        return None
    columns = ["group", "topic", "partition", "offset", "state"]
    read = Read.of_segments(TABLES["offsets"], segments, columns, ReadOptions(), evidence.read.faults)
    rows = [row for batch in read.rows() for row in batch.to_pylist()]
    return {
        (row["group"], row["topic"], row["partition"]): row["offset"] for row in rows if row["state"] == "committed"
    }


AgainstCheck = Callable[[Comparison], Iterator[Finding]]

AGAINST_CHECKS: tuple[AgainstCheck, ...] = (
    topics_created_again,
    topics_not_copied,
    configs_that_differ,
    records_that_differ,
    group_offsets_that_differ,
)


def findings_against(own: Evidence, other: Evidence) -> list[Finding]:
    """Return the differences of another cluster from this one, the worst first; ``own.read`` receives the faults.

    Memory does not depend on the number of records: the contents of a large mirror, 25 bytes for each record of a pair
    of partitions, are in temporary files.

    Raises
    ------
    ValueError
        If no topic is in both.
    """
    read = replace(own.read, faults=[])
    comparison = Comparison(replace(own, read=read), replace(other, read=read))
    if not (comparison.topics or comparison.created_again):
        sides = (comparison.user_topics, comparison.other_user_topics)
        has = [", ".join(some[:5]) + (", ..." if len(some) > 5 else "") or "no topic of users" for some in sides]
        raise ValueError(f"nothing to compare: this cluster has {has[0]}, and the other one has {has[1]}")
    return settled(comparison, AGAINST_CHECKS, own.read)
