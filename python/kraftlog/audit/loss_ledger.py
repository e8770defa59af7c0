"""The loss ledger: records that only a lost line holds, a replica whose history the cluster has left.

An unclean election, or one while a leader was alone, leaves them on the disk of the broker that had them, until it
returns and truncates its log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, HEADER_DTYPE
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.audit.replicas import LAST_OFFSET, local_replicas, name_of, segments_within
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import ReadOptions
from kraftlog.layout.names import printable
from kraftlog.read.held_offsets import OffsetSet, Stretch
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import Partition, Replica
from kraftlog.read.replica_checkpoints import ReplicaCheckpoints
from kraftlog.read.segment_reader import segment_headers
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.lines import Lines
from kraftlog.tables.read import Read
from kraftlog.tables.record_rows import record_rows

_PRECONDITION = (
    "The log directories of that broker and, if a metadata log is among the files, of the leader are given; leader "
    "epochs (message format 2) show that the histories part at an offset where the leader has a batch, or ends; the "
    "leader has no batch with the same contents, neither at the same offset nor, as its producer has sent it again, at "
    "another one with the same sequence."
)

_PLACE = ("base_offset", "batch_length", "crc")
_SEQUENCE = ("producer_id", "producer_epoch", "base_sequence")

LOST_COMMITTED_RECORDS = FindingCode(
    "lost_committed_records",
    Severity.ERROR,
    "An election lost records that were committed: producers with acks=all were told that they are safe.",
    f"{_PRECONDITION} A metadata log names the leader, and the records are before the high watermark in the other "
    "broker's replication-offset-checkpoint.",
)
LOST_RECORDS = FindingCode(
    "lost_records",
    Severity.NOTE,
    "Only a broker that does not lead has these records; it truncates them when it returns. Producers with acks=1, or "
    "since the last checkpoint of the high watermark, may have been told that they were written.",
    _PRECONDITION,
)


class LostHistory(NamedTuple):
    """A replica whose history is not that of its partition's line.

    Attributes
    ----------
    replica, line : Replica
    parts_at : int
        The offset at which their histories part.
    """

    replica: Replica
    line: Replica
    parts_at: int


@dataclass(frozen=True)
class LostRecords:
    """What a replica holds, and the line of its partition does not.

    Attributes
    ----------
    replica : Replica
        Holds the records.
    line : Replica
        The chosen replica.
    parts_at : int
        The offset at which their histories part.
    stretches : tuple of Stretch
        Offsets of batches, in order.
    records_count : int
        Number of records, without markers.
    committed_until : int
        The high watermark of the replica: records before it were committed; 0 if it is unknown.
    committed_count : int
        Number of records before it.
    """

    replica: Replica
    line: Replica
    parts_at: int
    stretches: tuple[Stretch, ...]
    records_count: int
    committed_until: int
    committed_count: int

    @property
    def offsets(self) -> Stretch:
        """All offsets, from the first to the last one."""
        return Stretch(self.stretches[0].first_offset, self.stretches[-1].end_offset)


def lost_records(evidence: Evidence) -> Iterator[LostRecords]:
    """Return the records of lost lines, each once, by partition; the last part of each log is read."""
    for partition in evidence.lines.partitions:
        yield from _of_partition(partition, evidence.lines, evidence.checkpoints, evidence.read)


def has_leader(partition: Partition, lines: Lines) -> bool:
    """Whether a metadata log among the files names the leader of a partition."""
    leader = lines.leader_of(partition)
    return leader is not None and leader >= 0


def lost_histories(partition: Partition, lines: Lines) -> Iterator[LostHistory]:
    """Return the replicas of a partition whose history its leader does not have, the newest first.

    Nothing is returned if the files of the leader are not given: it may have the records.
    """
    replicas = local_replicas(partition)
    is_led, leader_epoch = has_leader(partition, lines), lines.leader_epoch_of(partition)
    if len(replicas) < 2 or (is_led and replicas[0].node_id != lines.leader_of(partition)):
        return
    line, *others = replicas
    for one in sorted(others, key=lambda one: one.end, reverse=True):
        parts_at = one.agrees_until(line)
        is_newer = is_led and leader_epoch is not None and one.end.last_epoch >= leader_epoch
        if parts_at is not None and parts_at < one.end.end_offset and not is_newer:
            yield LostHistory(one, line, parts_at)  # a newer one was read while the leader went on


def lost_lines(evidence: Evidence) -> Iterator[Finding]:
    """Return what lost lines hold."""
    for lost in lost_records(evidence):
        first = lost.replica.segments[0]
        first_offset, end_offset = lost.offsets
        until = min(max(first_offset, lost.committed_until), end_offset)
        parts = (
            (LOST_COMMITTED_RECORDS, lost.committed_count, Stretch(first_offset, until)),
            (LOST_RECORDS, lost.records_count - lost.committed_count, Stretch(until, end_offset)),
        )
        for code, count, offsets in parts:
            if count:
                yield Finding(
                    code,
                    _known(lost, count, offsets, is_committed=code is LOST_COMMITTED_RECORDS),
                    first.topic,
                    first.partition,
                    offsets.first_offset,
                    lost.replica.node_id,
                    printable(str(lost.replica.folder)),
                    evidence.command("audit", first.topic_partition, "--loss-ledger", "ledger"),
                )


def _known(lost: LostRecords, count: int, offsets: Stretch, *, is_committed: bool) -> str:
    first, end = offsets
    records = "1 record" if count == 1 else f"{count} records"
    where = f"before its high watermark {lost.committed_until}, " if is_committed else ""
    at = f"offset {first}" if end - first == 1 else f"offsets {first} to {end - 1}"
    return (
        f"{name_of(lost.replica)} alone has {records} {where}at {at}, up to leader epoch"
        f" {lost.replica.end.last_epoch}; it parts from {name_of(lost.line)} at offset {lost.parts_at}"
    )


def _of_partition(
    partition: Partition, lines: Lines, checkpoints: ReplicaCheckpoints, read: Pass
) -> Iterator[LostRecords]:
    listed: list[Headers] = []
    for one, line, parts_at in lost_histories(partition, lines):
        # read before the log, which may be truncated meanwhile
        committed_until = (checkpoints.high_watermark(one) or 0) if has_leader(partition, lines) else 0
        own = Stretch(max(parts_at, one.start_offset), one.end.end_offset)
        batches = _tail(one, own.first_offset, read)
        batches = _apart_from(one, line, parts_at, batches, read)
        for others_batches in listed:  # those of another lost line are listed once
            batches = batches[~_is_in(batches, others_batches, _PLACE)]
        listed.append(batches)
        is_record = batches["attributes"] & CONTROL_BIT == 0
        if not is_record.any():
            continue
        is_committed = is_record & (last_offsets(batches) < committed_until)
        stretches = OffsetSet(batches["base_offset"], last_offsets(batches) + 1).within(*own)
        records, committed = (int(batches["records_count"][some].sum()) for some in (is_record, is_committed))
        yield LostRecords(one, line, parts_at, tuple(stretches), records, committed_until, committed)


def _tail(replica: Replica, start_offset: int, read: Pass) -> Headers:
    """Return the intact batches of a replica that begin at or after an offset."""
    blocks = [np.empty(0, HEADER_DTYPE), *intact_from(replica, start_offset, read)]
    return np.concatenate(blocks)


def intact_from(replica: Replica, start_offset: int, read: Pass) -> Iterator[Headers]:
    """Return the headers of the intact batches of a replica that begin at or after an offset."""
    for segment in segments_within(replica, start_offset, LAST_OFFSET):
        for headers in segment_headers(segment, read.faults, check_crc=True):
            yield headers[(headers["crc_ok"] != 0) & (headers["magic"] >= 2) & (headers["base_offset"] >= start_offset)]


def _apart_from(replica: Replica, line: Replica, parts_at: int, batches: Headers, read: Pass) -> Headers:
    """Return batches without those that the line has as well, at the same place or as a producer has sent them again.

    Without a batch at the offset where histories part, its cleaner may have removed whole leader epochs that the other
    replica has: then it cannot be told what was lost, and nothing is returned.
    """
    is_lost = np.ones(len(batches), bool)
    is_sequenced = (batches["producer_id"] >= 0) & (batches["base_sequence"] >= 0)
    is_known = line.end.end_offset == parts_at
    likely: dict[tuple[int, ...], list[Stretch]] = {}
    for headers in intact_from(line, parts_at, read):
        is_known |= bool((headers["base_offset"] == parts_at).any())
        is_lost &= ~_is_in(batches, headers, _PLACE)
        for header in headers[_is_in(headers, batches[is_sequenced], _SEQUENCE)]:
            likely.setdefault(_sequence_of(header), []).append(_offsets_of(header))
    for row in np.flatnonzero(is_lost & is_sequenced):
        for offsets in likely.get(_sequence_of(batches[row]), ()):
            # a coordinator that lost its last records gives an epoch to a producer again
            is_lost[row] &= _contents(replica, _offsets_of(batches[row]), read) != _contents(line, offsets, read)
    return batches[is_lost & is_known]


def _sequence_of(header: np.void) -> tuple[int, ...]:
    return tuple(int(header[name]) for name in _SEQUENCE)


def _offsets_of(header: np.void) -> Stretch:
    return Stretch(int(header["base_offset"]), int(header["base_offset"]) + int(header["last_offset_delta"]) + 1)


def _contents(replica: Replica, offsets: Stretch, read: Pass) -> list[dict[str, Any]]:
    """Return the contents of some records; a broker may set other times, or compress them again."""
    options = ReadOptions(start_offset=offsets.first_offset, end_offset=offsets.end_offset, include_deleted=True)
    records = Read.of_segments(
        TABLES["records"], segments_within(replica, *offsets), ["key", "value", "headers"], options, read.faults
    )
    return [row for rows in record_rows(records) for row in rows.to_pylist()]


def _is_in(batches: Headers, others: Headers, fields: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which batches have the same values of some fields as one of the others."""
    first = fields[0]
    found = np.isin(batches[first], others[first])
    if not found.any():
        return found
    near = others[np.isin(others[first], batches[first][found])]
    known = set(zip(*(near[name].tolist() for name in fields), strict=True))
    rows = np.flatnonzero(found)
    found[rows] = [one in known for one in zip(*(batches[name][rows].tolist() for name in fields), strict=True)]
    return found
