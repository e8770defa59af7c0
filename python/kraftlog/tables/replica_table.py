"""The table ``replicas``: the offsets of a partition in each directory, and how far replicas agree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from kraftlog.disk.in_order import in_order
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery, discover
from kraftlog.layout.names import printable, transition_of
from kraftlog.layout.replica_directory import folder_of
from kraftlog.layout.segment import Segment
from kraftlog.read.held_offsets import HeldOffsets, OffsetSet, held_offsets
from kraftlog.read.lineage import NO_EPOCH
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import Replica, ReplicaKind, replicas_of
from kraftlog.read.replica_checkpoints import ReplicaCheckpoints
from kraftlog.stream import rows_of
from kraftlog.tables.lines import Lines
from kraftlog.tables.read import Read
from kraftlog.topics import TopicPartition

ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class ListedReplica:
    """The segments of a replica, and data of checkpoint files in its log directory.

    Attributes
    ----------
    segments : tuple of Segment
    high_watermark : int or None
    cleaned_until : int
        Offset before which records may be missing because of compaction; headers may show more of them.
    """

    segments: tuple[Segment, ...]
    high_watermark: int | None
    cleaned_until: int


@dataclass(frozen=True)
class PartitionReplicas:
    """The replicas of one partition.

    Attributes
    ----------
    of : TopicPartition
    replicas : tuple of ListedReplica
    line : int or None
        The index of the chosen replica; None if all folders are being moved or deleted by Kafka.
    isr : frozenset of int or None
        Node ids of the in-sync replicas; None if unknown or not requested.
    """

    of: TopicPartition
    replicas: tuple[ListedReplica, ...]
    line: int | None
    isr: frozenset[int] | None

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of all replicas."""
        return tuple(segment for one in self.replicas for segment in one.segments)


def replica_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``replicas``.

    Batches are read for ``damaged``, and for ``missing`` if there are several replicas.
    """
    rows: list[dict[str, Any]] = []
    for each in partition_replicas(read.files, read.schema.names, read):
        rows += _rows_of(each, read.schema.names, read)
        if len(rows) >= ROWS_AT_ONCE:
            yield _batch(rows, read.schema)
            rows = []
    if rows:
        yield _batch(rows, read.schema)


def rows_of_partition(each: PartitionReplicas, arrow_schema: pa.Schema, read: Pass) -> pa.RecordBatch:
    """Return the rows of one partition."""
    return _batch(list(_rows_of(each, arrow_schema.names, read)), arrow_schema)


def _batch(rows: list[dict[str, Any]], arrow_schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in arrow_schema]
    return rows_of(columns, arrow_schema, len(rows))


def partition_replicas(found: Discovery, columns: Collection[str], read: Pass) -> Iterator[PartitionReplicas]:
    """Return the replicas of each partition, by topic and number, including folders that Kafka marked.

    Raises
    ------
    ValueError
        When the directories belong to several clusters, or several topics have the same name.
    """
    lines, checkpoints = Lines(found), ReplicaCheckpoints(read.faults)
    known: dict[TopicPartition, tuple[list[Replica], int | None, frozenset[int] | None]] = {}
    for partition in lines.partitions:
        first = partition.segments[0]
        if first.topic_partition is None or first.state or first.base_offset is None:
            continue
        isr = lines.isr_of(partition) if "in_isr" in columns else None
        known[first.topic_partition] = list(partition.replicas), partition.replicas.index(partition.line), isr
    for replica in _marked(found, read.faults):
        of = replica.segments[0].topic_partition
        assert of is not None
        known.setdefault(of, ([], None, None))[0].append(replica)
    read.notes.extend(lines.metadata_notes)
    for of, (replicas, line, isr) in sorted(known.items(), key=lambda item: item[0]):
        listed = [
            ListedReplica(one.segments, checkpoints.high_watermark(one), checkpoints.cleaned_until(one))
            for one in replicas
        ]
        yield PartitionReplicas(of, tuple(listed), line, isr)


def _marked(found: Discovery, faults: list[Fault]) -> Iterator[Replica]:
    """Return the replicas in folders that Kafka marked; other readers list such a folder only as a path of its own."""
    given = {segment.folder.absolute() for segment in found.segments}
    for item in found.unread:
        folder = item.path.absolute()
        if transition_of(folder.name) is None or folder in given:
            continue
        try:
            segments = discover(folder).segments
        except FileNotFoundError:
            continue  # Kafka has removed it since
        except OSError as error:
            why = f"{printable(str(folder))}: {error.strerror or error}"
            faults.append(Fault("unreadable_file", why, topic=item.topic, partition=item.partition))
            continue
        for replicas in replicas_of(segments):
            if replicas[0].segments[0].base_offset is not None:
                yield from replicas


class _Content(NamedTuple):
    """The contents of a segment by its batches."""

    path: LogPath
    held: HeldOffsets
    faults: list[Fault]


def _content_of(replica: Replica, read: Pass) -> list[_Content]:
    def content_of(segment: Segment) -> _Content:
        faults: list[Fault] = []
        return _Content(segment.path, held_offsets(segment, faults, check_crc=read.options.check_crc), faults)

    found = []
    for segment, content in zip(replica.segments, in_order(content_of, replica.segments, read.workers), strict=True):
        found.append(content)
        read.advance(segment.size)
    return found


def _agrees_until(replica: Replica, line: Replica | None) -> int | None:
    """Return the offset up to which a replica has the records of the line; None if unknown."""
    if replica is line:
        return replica.end.end_offset
    if line is None or (replica.topic_id or line.topic_id) != (line.topic_id or replica.topic_id):
        return None
    return replica.agrees_until(line)


def _rows_of(each: PartitionReplicas, columns: Collection[str], read: Pass) -> Iterator[dict[str, Any]]:
    replicas = [Replica(one.segments) for one in each.replicas]
    line = None if each.line is None else replicas[each.line]
    compares = "missing" in columns and line is not None and len(replicas) > 1
    is_asked = "missing" in columns or "agrees_until" in columns
    agreed = [_agrees_until(one, line) if is_asked else None for one in replicas]
    contents: list[list[_Content]] = [[] for _ in replicas]
    if compares or "damaged" in columns:
        contents = [_content_of(one, read) for one in replicas]
    held = [OffsetSet.union(one.held.offsets for one in content) for content in contents]
    known = OffsetSet.union(
        offsets.until(until)
        for one, offsets, until in zip(replicas, held, agreed, strict=True)
        if one.is_read and until is not None
    )
    for replica, listed, content, offsets, until in zip(replicas, each.replicas, contents, held, agreed, strict=True):
        lacking = known - offsets
        cleaned_until = max([listed.cleaned_until, *(one.held.cleaned_until for one in content)])
        places = replica.places
        for place in places:
            values = _values(place, listed, each.isr)
            row = {name: value() for name, value in values.items() if name in columns}
            row |= {"topic": each.of.topic, "partition": each.of.partition, "is_chosen": replica is line}
            if is_asked and until is not None:
                limit = min(until, place.end.end_offset)
                row["agrees_until"] = limit
                start = max(place.start_offset, cleaned_until)
                not_cleaned = OffsetSet.union([OffsetSet([start], [limit]), *(one.held.missing for one in content)])
                within = not_cleaned.within(place.start_offset, limit)
                row["missing"] = [one._asdict() for each in within for one in lacking.within(*each)]
            paths = {segment.path for segment in place.segments}
            row["damaged"] = [_damage(fault) for one in content if one.path in paths for fault in one.faults]
            yield row
        of_files = [fault for one in (replica, *places) for fault in one.faults]
        read.faults.extend(dict.fromkeys([*of_files, *(fault for one in content for fault in one.faults)]))


def _values(place: Replica, listed: ListedReplica, isr: frozenset[int] | None) -> dict[str, Callable[[], Any]]:
    """Return the columns that depend on a single replica."""
    is_live = place.kind is ReplicaKind.LIVE
    return {
        "topic_id": lambda: place.topic_id,
        "node_id": lambda: place.node_id,
        "directory": lambda: printable(str(place.directory)),
        "kind": lambda: str(place.kind),
        "log_start_offset": lambda: place.start_offset,
        "end_offset": lambda: place.end.end_offset,
        "last_epoch": lambda: None if place.end.last_epoch == NO_EPOCH else place.end.last_epoch,
        "high_watermark": lambda: listed.high_watermark if is_live else None,
        "in_isr": lambda: None if isr is None or not is_live or place.node_id is None else place.node_id in isr,
        "folder": lambda: printable(str(folder_of(place.segments[0]))),
    }


def _damage(fault: Fault) -> dict[str, Any]:
    return {name: getattr(fault, name) for name in ("segment_base_offset", "position", "size_in_bytes", "error")}
