"""Committed offsets of groups: the state of ``__consumer_offsets``, and the records that change it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.log_store.transaction_state import NONE, TopicPartition
from kraftlog.messages.frames import int16_prefix
from kraftlog.messages.one_message import encode_message

_KEY_TYPE = 1
_VERSION = 3  # version of values: the last that releases before 4.1 can read (KIP-915)


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset.

    Attributes
    ----------
    offset : int
        Offset of the next record to read.
    metadata : str
    leader_epoch : int
        Leader epoch of the last record that was read; -1 if unknown.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def offset_records(group: str, offsets: Offsets, timestamp_ms: int) -> list[KeyAndValue]:
    """Return the records of a commit.

    Parameters
    ----------
    group : str
    offsets : mapping of (str, int) to OffsetAndMetadata
    timestamp_ms : int
        Time of the commit.
    """
    return [
        KeyAndValue(
            _key(group, key),
            int16_prefix(_VERSION)
            + encode_message(
                "OffsetCommitValue",
                _VERSION,
                {
                    "offset": each.offset,
                    "leader_epoch": each.leader_epoch,
                    "metadata": each.metadata,
                    "commit_timestamp": timestamp_ms,
                },
            ),
        )
        for key, each in offsets.items()
    ]


def tombstones(group: str, partitions: Sequence[TopicPartition]) -> list[KeyAndValue]:
    """Return records that remove the offsets of partitions."""
    return [KeyAndValue(_key(group, key), None) for key in partitions]


def _key(group: str, key: TopicPartition) -> bytes:
    topic, partition = key
    return int16_prefix(_KEY_TYPE) + encode_message(
        "OffsetCommitKey", 0, {"group": group, "topic": topic, "partition": partition}
    )


@dataclass(eq=False, slots=True)
class Commit:
    """Offsets that a group is about to commit.

    Attributes
    ----------
    producer_id, producer_epoch : int
        Producer of the transaction that they depend on; -1 for offsets that only wait for the disk.
    record_offset : int
        Offset of their first record; -1 until it is in the log.
    """

    group: str
    offsets: dict[TopicPartition, OffsetAndMetadata]
    producer_id: int = NONE
    producer_epoch: int = NONE
    record_offset: int = NONE


class GroupOffsets:
    """The committed offsets of all groups of a store, and those that wait for the disk or the end of a transaction.

    Of two commits of an offset the one with the later record in the log wins, regardless of which took effect later: a
    store or broker that reads the log again gets the same result.
    """

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, tuple[OffsetAndMetadata, int]]] = {}
        self._waiting: list[Commit] = []

    def begin(self, commit: Commit) -> None:
        """Add a pending commit; its record may be in the log from now on."""
        self._waiting.append(commit)

    def drop(self, commit: Commit) -> None:
        """Drop a pending commit."""
        self._waiting = [each for each in self._waiting if each is not commit]

    def finish(self, commit: Commit) -> None:
        """Apply a commit."""
        of_group = self._committed.setdefault(commit.group, {})
        for key, offset in commit.offsets.items():
            if key not in of_group or of_group[key][1] <= commit.record_offset:
                of_group[key] = offset, commit.record_offset
        self.drop(commit)  # last: an exception before it leaves the commit pending, to be applied again

    def end(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        ends: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Apply or drop the pending offsets of a producer's transactions up to an epoch, of the groups that end."""
        for commit in self._waiting:
            is_old = NONE < commit.producer_epoch <= producer_epoch
            if commit.producer_id == producer_id and is_old and ends(commit.group):
                (self.finish if is_commit else self.drop)(commit)

    def committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets of a group."""
        return {key: offset for key, (offset, _) in self._committed.get(group, {}).items()}

    def unstable(self, group: str) -> set[TopicPartition]:
        """Return the partitions whose offsets an open transaction may change."""
        return {key for each in self._waiting if each.group == group and each.producer_id >= 0 for key in each.offsets}

    @property
    def has_pending(self) -> bool:
        """Whether commits wait."""
        return bool(self._waiting)

    @property
    def groups(self) -> list[str]:
        """Return the groups that have committed offsets."""
        return sorted(group for group, offsets in self._committed.items() if offsets)

    def of_topic(self, topic: str) -> dict[str, list[TopicPartition]]:
        """Return the partitions of a topic of which groups have offsets, or some that wait, by group."""
        by_group: dict[str, set[TopicPartition]] = {}
        held: list[tuple[str, Collection[TopicPartition]]] = [*self._committed.items()]
        held += [(each.group, each.offsets) for each in self._waiting]
        for group, keys in held:
            of_topic = {key for key in keys if key[0] == topic}
            if of_topic:
                by_group.setdefault(group, set()).update(of_topic)
        return {group: sorted(keys) for group, keys in by_group.items()}

    def forget(self, group: str, partitions: Collection[TopicPartition], record_offset: int) -> None:
        """Drop the offsets of a group for some partitions, also those that wait, with records before a tombstone."""
        committed = self._committed.get(group, {})
        for key in partitions:
            if key in committed and committed[key][1] < record_offset:
                del committed[key]
        for each in self._waiting:
            if each.group == group and each.record_offset < record_offset:
                for key in partitions:
                    each.offsets.pop(key, None)
