"""Why segments are neither deleted nor cleaned: timestamps, open transactions, settings, and a cleaner that stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from kraftlog.audit.cluster_image import ClusterImage
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.codec.options import READ_COMMITTED, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.layout.index_files import read_index
from kraftlog.layout.segment import Segment
from kraftlog.read.log_ends import GrowingLogEnd
from kraftlog.read.partitions import Replica
from kraftlog.read.segment_reader import segment_headers
from kraftlog.topics import CLUSTER_METADATA, COORDINATOR_TOPICS, SHARE_GROUP_STATE
from kraftlog.write.log_cleaner import largest_timestamp
from kraftlog.write.retention import doomed_segments

HOUR_MS = 3_600_000  # far longer than a broker waits between two looks at its segments (5 minutes, 15 seconds)
ALMOST_ALL = 0.95  # the dirty part of a log that no usual min.cleanable.dirty.ratio lets a cleaner wait for
_COMPACTED = frozenset(COORDINATOR_TOPICS) - {SHARE_GROUP_STATE}

FUTURE_TIMESTAMP = FindingCode(
    "future_timestamp",
    Severity.WARNING,
    "Retention by time keeps this segment and all later ones until the timestamp has passed; a compacted topic with"
    " min.compaction.lag.ms is not cleaned from there on. A producer had a wrong clock, or wrong units.",
    "The timestamp is more than an hour after the audit. The metadata log, if present, does not say that the topic is"
    " only compacted, without min.compaction.lag.ms, or has no retention.ms.",
)
SEGMENT_NOT_DELETED = FindingCode(
    "segment_not_deleted",
    Severity.WARNING,
    "Retention should have deleted these segments. The broker's retention thread may have stopped.",
    "The metadata log is that of the same broker, which had run for an hour, and has retention.ms or retention.bytes"
    " of the topic. The topic is not compacted or tiered, and was never cleaned. The segments were last written an hour"
    " before the end of the metadata log, and lie below the high watermark.",
)
CLEANER_STOPPED = FindingCode(
    "cleaner_stopped",
    Severity.WARNING,
    "The log cleaner does not clean this log, although it is due. Its thread may have died, or the log is one that it"
    " cannot clean: the broker's log says 'uncleanable' or 'Stopped cleaning'.",
    "The metadata log is that of the same broker, which had run for an hour, and says that the topic is compacted. The"
    " directory has a cleaner-offset-checkpoint. The segments were last written an hour before the end of the metadata"
    " log. Their share exceeds min.cleanable.dirty.ratio in the metadata log; without that setting it is 95 %.",
)
CLEANING_BLOCKED = FindingCode(
    "cleaning_blocked",
    Severity.WARNING,
    "An open transaction keeps the log cleaner from all later records, so that the log grows.",
    "As for cleaner_stopped, for the segments after the first record of the transaction.",
)
NOT_CLEANED = FindingCode(
    "not_cleaned",
    Severity.NOTE,
    "Closed segments of a compacted topic wait for the log cleaner, for the reason given.",
    "The metadata log says that the topic is compacted. The directory has a cleaner-offset-checkpoint.",
)


def future_timestamps(evidence: Evidence) -> Iterator[Finding]:
    """Return the first segment of each partition that has a timestamp of the future."""
    for partition in evidence.lines.partitions:
        first = partition.segments[0]
        if first.topic_partition is None or first.topic == CLUSTER_METADATA or first.base_offset is None:
            continue
        if not _heeds_timestamps(evidence.cluster, first.topic_partition.topic):
            continue
        latest = evidence.now + HOUR_MS
        for number, segment in enumerate(partition.segments):
            later = _first_later(segment, latest)
            if later is not None:
                timestamp, offset = later
                pinned = partition.segments[number:]
                size = sum(one.size for one in pinned)
                yield Finding(
                    FUTURE_TIMESTAMP,
                    f"{segment.file_name} has the timestamp {_time(timestamp)}; it pins {_segments(len(pinned))} of"
                    f" {size} bytes",
                    *first.topic_partition,
                    offset,
                    partition.line.node_id,
                    str(segment.path),
                    evidence.command("segments", first.topic_partition),
                )
                break


def _heeds_timestamps(cluster: ClusterImage | None, topic: str) -> bool:
    """Whether timestamps may decide how long segments of a topic are kept."""
    if topic in _COMPACTED:
        return False
    if cluster is None:
        return True
    lag = cluster.number(topic, "min.compaction.lag.ms")
    policy = cluster.config(topic, "cleanup.policy") or "delete"
    if "delete" not in policy:
        return bool(lag)
    return cluster.number(topic, "retention.ms") != -1 or ("compact" in policy and bool(lag))


def _first_later(segment: Segment, latest: int) -> tuple[int, int] | None:
    """Return the first timestamp after a time, and an offset of its batch; None without one.

    Of a segment whose index files are on disk, it is the timestamp that the broker uses.
    """
    is_settled = segment.end_offset is not None and segment.end_offset <= segment.settled_offset
    if is_settled and "timeindex" in segment.beside and not segment.stored:
        with suppress(FileNotFoundError):  # a running broker deletes segments
            columns = read_index(segment.beside["timeindex"], "timeindex", segment.base_offset or 0, [])
            if len(columns["timestamp"]) and columns["timestamp"].max() <= latest:
                return None
    for check_crc in (False, True):  # only a sound batch proves it, and most segments have none
        later = None
        for headers in segment_headers(segment, [], check_crc=check_crc):
            at = np.flatnonzero((headers["max_timestamp"] > latest) & (headers["crc_ok"] != 0))
            if len(at):
                later = int(headers["max_timestamp"][at[0]]), int(headers["base_offset"][at[0]])
                break
        if later is None:
            return None
    return later


def segments_not_deleted(evidence: Evidence) -> Iterator[Finding]:
    """Return the segments that retention should have deleted."""
    cluster = evidence.cluster
    if cluster is None:
        return
    for replica in _replicas_of_running(evidence, cluster):
        of = replica.segments[0].topic_partition
        assert of is not None
        retention_ms, retention_bytes = (cluster.number(of.topic, f"retention.{unit}") for unit in ("ms", "bytes"))
        policy = cluster.config(of.topic, "cleanup.policy") or "delete"
        high_watermark = evidence.checkpoints.high_watermark(replica)
        is_tiered = cluster.config(of.topic, "remote.storage.enable") not in (None, "false")
        was_cleaned = of.topic in COORDINATOR_TOPICS or evidence.checkpoints.cleaner_offset(replica)
        if policy != "delete" or is_tiered or was_cleaned or high_watermark is None:
            continue
        since = cluster.timestamp - HOUR_MS
        closed = [
            (one, one.end_offset)
            for one in _unchanged(replica.segments, since)
            if one.end_offset is not None and one.end_offset <= high_watermark
        ]
        doomed = doomed_segments(
            closed,
            sum(one.size for one in _unchanged(replica.segments, since)),
            since,
            log_start_offset=0,
            retention_ms=_limit(retention_ms),
            retention_bytes=_limit(retention_bytes),
        )
        if doomed:
            newest = max(map(largest_timestamp, doomed))
            yield Finding(
                SEGMENT_NOT_DELETED,
                f"{_segments(len(doomed))} of {sum(one.size for one in doomed)} bytes exceed"
                f" {_settings(retention_ms, retention_bytes)}; the last timestamp is {_time(newest)}, and the metadata"
                f" log ends at {_time(cluster.timestamp)}",
                *of,
                doomed[0].base_offset,
                replica.node_id,
                str(doomed[0].path),
                evidence.command("segments", of),
            )


def _limit(setting: float | None) -> int | None:
    return None if setting is None or setting < 0 else int(setting)


def _settings(retention_ms: float | None, retention_bytes: float | None) -> str:
    given = {"retention.ms": _limit(retention_ms), "retention.bytes": _limit(retention_bytes)}
    return " and ".join(f"{name} {value}" for name, value in given.items() if value is not None)


class _Dirty(NamedTuple):
    """Closed segments that a cleaner has not read, of one replica."""

    checkpoint: int
    segments: list[Segment]
    clean_bytes: int

    def ratio(self, segments: Sequence[Segment]) -> float:
        """Return the dirty ratio as the broker computes it, if it could clean some of the segments."""
        size = _size(segments)
        return size / (self.clean_bytes + size) if size else 0.0


def logs_not_cleaned(evidence: Evidence) -> Iterator[Finding]:
    """Return the compacted logs with closed segments that are not cleaned, and the reason."""
    cluster = evidence.cluster
    running = [] if cluster is None else list(_replicas_of_running(evidence, cluster))
    for replica in evidence.live_replicas if cluster is not None else ():
        of = replica.segments[0].topic_partition
        assert of is not None
        assert cluster is not None
        dirty = _dirty(evidence, replica)
        is_compacted = of.topic in _COMPACTED or "compact" in (cluster.config(of.topic, "cleanup.policy") or "")
        if not is_compacted or dirty is None or not dirty.segments:
            continue
        bounds = GrowingLogEnd(ReadOptions(isolation_level=READ_COMMITTED)).bounds(list(replica.segments))
        stable_offset = bounds.last_stable_offset
        stable = [one for one in dirty.segments if (one.end_offset or 0) <= stable_offset]
        lag = cluster.number(of.topic, "min.compaction.lag.ms") or 0
        old = _before_lag(stable, cluster.timestamp - lag) if lag > 0 else stable
        setting = cluster.number(of.topic, "min.cleanable.dirty.ratio")
        least = ALMOST_ALL if setting is None else setting
        since = cluster.timestamp - HOUR_MS
        is_running = replica in running
        due, blocked = _unchanged(old, since), _unchanged(dirty.segments, since)
        size = f"{_size(dirty.segments)} bytes in {_segments(len(dirty.segments))}"
        behind = f"the cleaner's checkpoint is {dirty.checkpoint}, and {size} after it are closed"
        code, why = NOT_CLEANED, f"the dirty ratio is {dirty.ratio(old):.2f}"
        if is_running and dirty.ratio(due) > least:
            code = CLEANER_STOPPED
        elif len(stable) < len(dirty.segments):
            code = CLEANING_BLOCKED if is_running and not lag and dirty.ratio(blocked) > least else NOT_CLEANED
            why = f"a transaction is open from offset {stable_offset} on"
        elif len(old) < len(stable):
            why = f"min.compaction.lag.ms {lag:.0f} has not passed for {_segments(len(stable) - len(old))}"
        if setting is not None:
            why += f"; min.cleanable.dirty.ratio is {setting}"
        is_blocked = code is CLEANING_BLOCKED
        yield Finding(
            code,
            f"{behind}; {why}",
            *of,
            stable_offset if is_blocked else dirty.checkpoint,
            replica.node_id,
            str(replica.folder),
            evidence.command("hanging" if is_blocked else "segments", of),
        )


def _dirty(evidence: Evidence, replica: Replica) -> _Dirty | None:
    """Return what a cleaner has not read of a replica; None without its checkpoint."""
    checkpoint = evidence.checkpoints.cleaner_offset(replica)
    if checkpoint is None:
        return None
    first = max(checkpoint, replica.start_offset)
    closed = [one for one in replica.segments if one.end_offset is not None]
    dirty = [one for one in closed if (one.end_offset or 0) > first]
    return _Dirty(checkpoint, dirty, _size(closed) - _size(dirty))


def _before_lag(segments: Sequence[Segment], latest: float) -> list[Segment]:
    """Return the segments before the first one with a later timestamp."""
    for number, segment in enumerate(segments):
        if largest_timestamp(segment) > latest:
            return list(segments[:number])
    return list(segments)


def _replicas_of_running(evidence: Evidence, cluster: ClusterImage) -> Iterator[Replica]:
    """Return the live replicas of brokers that had run for an hour when the metadata log ended."""
    registered = {node_id: cluster.registered_at(node_id) for node_id in cluster.node_ids}
    for replica in evidence.live_replicas:
        since = None if replica.node_id is None else registered.get(replica.node_id)
        if (
            since is not None
            and 0 <= since <= cluster.timestamp - HOUR_MS
            and replica.segments[0].topic != CLUSTER_METADATA
        ):
            yield replica


def _unchanged(segments: Sequence[Segment], since: int) -> list[Segment]:
    """Return the segments up to the first one that was written after a time."""
    for number, segment in enumerate(segments):
        modified = disk().modified_ms(segment.path)
        if modified is None or modified > since:
            return list(segments[:number])
    return list(segments)


def _size(segments: Sequence[Segment]) -> int:
    return sum(one.size for one in segments)


def _segments(count: int) -> str:
    return "1 segment" if count == 1 else f"{count} segments"


def _time(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return f"{timestamp_ms} ms"


CHECKS = (future_timestamps, segments_not_deleted, logs_not_cleaned)
