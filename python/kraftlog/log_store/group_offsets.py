"""Committed offsets of groups: what ``__consumer_offsets`` holds, and the records that change it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kraftlog.log_store.transaction_state import TopicPartition
from kraftlog.messages.api import encode_messages

_VERSION = 3  # of values: the last that releases before 4.1 can read (KIP-915)


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset.

    Attributes
    ----------
    offset : int
        Of the record that is read next.
    metadata : str
    leader_epoch : int
        Of the last record that was read; -1 where it is not known.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def offset_records(group: str, offsets: Offsets, timestamp_ms: int) -> pa.RecordBatch:
    """Return the records of a commit: columns key and value.

    Parameters
    ----------
    group : str
    offsets : mapping of (str, int) to OffsetAndMetadata
    timestamp_ms : int
        When it was committed.
    """
    count = len(offsets)
    values = pa.record_batch(
        {
            "offset": pa.array([each.offset for each in offsets.values()], pa.int64()),
            "leader_epoch": pa.array([each.leader_epoch for each in offsets.values()], pa.int32()),
            "metadata": pa.array([each.metadata for each in offsets.values()], pa.string()),
            "commit_timestamp": pa.array([timestamp_ms] * count, pa.int64()),
        }
    )
    return pa.record_batch(
        {
            "key": encode_messages("OffsetCommitKey", _keys(group, offsets), 0),
            "value": encode_messages("OffsetCommitValue", values, _VERSION),
        }
    )


def tombstones(group: str, partitions: Sequence[TopicPartition]) -> pa.RecordBatch:
    """Return records that remove the offsets of partitions: columns key and value."""
    keys = encode_messages("OffsetCommitKey", _keys(group, partitions), 0)
    return pa.record_batch({"key": keys, "value": pa.nulls(len(partitions), pa.binary())})


def _keys(group: str, partitions: Collection[TopicPartition]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "group": pa.array([group] * len(partitions), pa.string()),
            "topic": pa.array([topic for topic, _ in partitions], pa.string()),
            "partition": pa.array([partition for _, partition in partitions], pa.int32()),
        }
    )


class GroupOffsets:
    """The committed offsets of all groups of a store, and those that wait for the end of a transaction."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        self._pending: dict[int, list[tuple[str, dict[TopicPartition, OffsetAndMetadata]]]] = {}

    def commit(self, group: str, offsets: Offsets) -> None:
        """Take offsets that were committed."""
        self._committed.setdefault(group, {}).update(offsets)

    def add_pending(self, producer_id: int, group: str, offsets: Offsets) -> None:
        """Take offsets that count when the transaction of a producer is committed."""
        self._pending.setdefault(producer_id, []).append((group, dict(offsets)))

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """Commit or drop what waits for a producer."""
        for group, offsets in self._pending.pop(producer_id, ()):
            if is_commit:
                self.commit(group, offsets)

    def committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets of a group."""
        return dict(self._committed.get(group, {}))

    @property
    def groups(self) -> list[str]:
        """Return the groups that have committed offsets."""
        return sorted(self._committed)

    def forget_topic(self, topic: str) -> dict[str, list[TopicPartition]]:
        """Drop the offsets of a topic that is deleted; return the partitions by group."""
        found: dict[str, list[TopicPartition]] = {}
        for group, offsets in self._committed.items():
            for key in [each for each in offsets if each[0] == topic]:
                del offsets[key]
                found.setdefault(group, []).append(key)
        self._committed = {group: offsets for group, offsets in self._committed.items() if offsets}
        for waiting in self._pending.values():
            for _, offsets in waiting:
                for key in [each for each in offsets if each[0] == topic]:
                    del offsets[key]
        return found
