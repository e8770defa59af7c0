"""The group coordinator: offsets that groups commit, by themselves or inside a transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from kraftlog.codec.options import ReadOptions
from kraftlog.coordinator.coordinator_partition import coordinator_partition
from kraftlog.errors import error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.log_store.coordinator_runtime import CoordinatorRuntime
from kraftlog.log_store.group_members import GroupMembers, GroupMetadata
from kraftlog.log_store.group_offsets import (
    Commit,
    GroupOffsets,
    OffsetAndMetadata,
    Offsets,
    offset_records,
    tombstones,
)
from kraftlog.log_store.key_and_value import KeyAndValue, rows_of_records
from kraftlog.log_store.partition import BatchOptions, Partition
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.transaction_state import NONE, TopicPartition
from kraftlog.read.log_pass import Pass
from kraftlog.topics import CONSUMER_OFFSETS

_BATCHES = BatchOptions()


class GroupCoordinator:
    """The committed offsets of groups; its methods are for any thread.

    Parameters
    ----------
    runtime : CoordinatorRuntime
    members : GroupMembers
        Who may commit.
    """

    def __init__(self, runtime: CoordinatorRuntime, members: GroupMembers) -> None:
        self._runtime = runtime
        self._members = members
        self._offsets = GroupOffsets()
        self._records: dict[bytes, bytes] = {}
        self._lock = threading.Lock()

    def partition_for(self, group: str) -> TopicPartition:
        """Return the partition of ``__consumer_offsets`` that has the records of a group."""
        return CONSUMER_OFFSETS, coordinator_partition(group, self._runtime.partition_count(CONSUMER_OFFSETS))

    def load(self, segments: Sequence[Segment], producer_epochs: Mapping[int, int]) -> None:
        """Take what a partition of ``__consumer_offsets`` holds.

        Parameters
        ----------
        segments : sequence of Segment
        producer_epochs : mapping of int to int
            The epochs of the producers whose transactions are open, by producer id.
        """
        from kraftlog.coordinator.groups import Groups
        from kraftlog.tables.coordinator_tables import OFFSET_COMMIT, last_group_records

        read = Pass(ReadOptions(strict=True), [])
        last = last_group_records(segments, read)
        for fault in read.faults:
            raise error_from_fault(fault)
        for row in last.typed(OFFSET_COMMIT).to_pylist():
            position = OffsetAndMetadata(row["value_offset"], row["metadata"] or "", row["leader_epoch"])
            commit = Commit(row["group"], {(row["key_topic"], row["key_partition"]): position})
            commit.record_offset = row["offset"]
            if row["producer_id"] == NONE:
                self._offsets.finish(commit)
            elif row["producer_id"] in producer_epochs:
                commit.producer_id, commit.producer_epoch = row["producer_id"], producer_epochs[row["producer_id"]]
                self._offsets.begin(commit)
        for name in Groups.types:
            self._records.update(last.key_values(name))

    def take(self, groups: Mapping[str, Offsets], records: Mapping[bytes, bytes]) -> None:
        """Take committed offsets, and records of groups, that ``__consumer_offsets`` is known to hold."""
        for group, offsets in groups.items():
            self._offsets.finish(Commit(group, dict(offsets)))
        self._records.update(records)

    @property
    def records(self) -> dict[bytes, bytes]:
        """The last records of groups and their members, by key; offsets are not among them."""
        with self._lock:
            return self._records.copy()

    @property
    def has_pending(self) -> bool:
        """Whether offsets wait for the end of a transaction."""
        with self._lock:
            return self._offsets.has_pending

    def write_records(self, group: str, records: Sequence[KeyAndValue]) -> None:
        """Write records of a group and its members, which are on disk then."""
        self._runtime.partition(self.partition_for(group))
        with self._lock:
            partition, _ = self._write(group, records, Stamp())
            for record in records:
                if record.value is None:
                    self._records.pop(record.key, None)
                else:
                    self._records[record.key] = record.value
        partition.sync()
        self._runtime.note_write(partition)

    def commit(self, member: GroupMetadata, offsets: Offsets) -> None:
        """Commit offsets, which are on disk then.

        Raises
        ------
        UnknownMemberIdError, IllegalGenerationError
            When their partitions may be another member's.
        """
        if not offsets:
            return
        commit = Commit(member.group, dict(offsets))
        self._runtime.partition(self.partition_for(member.group))  # opened outside of the lock, which it may wait for
        with self._lock:  # so that what counts in memory is what stands behind in the log
            self._members.check(member, is_transactional=False)
            self._offsets.begin(commit)
            partition = self._append(commit, Stamp())
        try:
            partition.sync()
        except BaseException:
            with self._lock:
                self._offsets.drop(commit)
            raise
        with self._lock:
            self._offsets.finish(commit)
        self._runtime.note_write(partition)

    def commit_in_transaction(
        self, member: GroupMetadata, offsets: Offsets, stamp: Stamp, verify: Callable[[], None] | None = None
    ) -> None:
        """Write offsets that count when a transaction is committed, to a partition that is in it.

        Parameters
        ----------
        member : GroupMetadata
        offsets : mapping of (str, int) to OffsetAndMetadata
        stamp : Stamp
        verify : callable, optional
            As in ``Partition.append_batch``.

        Raises
        ------
        UnknownMemberIdError, IllegalGenerationError
        """
        commit = Commit(member.group, dict(offsets), stamp.producer_id, stamp.producer_epoch)
        self._runtime.partition(self.partition_for(member.group))
        with self._lock:
            self._members.check(member, is_transactional=True)
            self._offsets.begin(commit)
            partition = self._append(commit, stamp, verify)
        self._runtime.note_write(partition)

    def end(
        self, producer_id: int, producer_epoch: int, *, is_commit: bool, partition: TopicPartition | None = None
    ) -> None:
        """Commit or drop what waits for a producer's transactions up to an epoch; the marker stands in the log.

        Parameters
        ----------
        producer_id, producer_epoch : int
        is_commit : bool
        partition : (str, int), optional
            The partition of ``__consumer_offsets`` with the marker, if not all have one.
        """
        with self._lock:
            self._offsets.end(
                producer_id,
                producer_epoch,
                is_commit=is_commit,
                ends=lambda group: partition is None or self.partition_for(group) == partition,
            )

    def committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group."""
        with self._lock:
            return self._offsets.committed(group)

    def fetch(self, group: str) -> tuple[dict[TopicPartition, OffsetAndMetadata], set[TopicPartition]]:
        """Return the committed offsets of a group, and the partitions of which an open transaction has other ones."""
        with self._lock:
            return self._offsets.committed(group), self._offsets.unstable(group)

    def groups(self) -> list[str]:
        """Return the groups that have committed offsets."""
        with self._lock:
            return self._offsets.groups

    def forget(self, group: str, partitions: Sequence[TopicPartition]) -> None:
        """Remove offsets of a group, which are removed on disk then."""
        if not partitions:
            return
        self._runtime.partition(self.partition_for(group))
        with self._lock:
            partition, record_offset = self._write(group, tombstones(group, partitions), Stamp())
        partition.sync()
        with self._lock:
            self._offsets.forget(group, partitions, record_offset)
        self._runtime.note_write(partition)

    def forget_topic(self, topic: str) -> None:
        """Remove the offsets of a topic that is deleted, which are removed on disk then."""
        written = []
        for group in self.groups():
            self._runtime.partition(self.partition_for(group))
        with self._lock:
            for group, partitions in self._offsets.of_topic(topic).items():
                partition, record_offset = self._write(group, tombstones(group, partitions), Stamp())
                written.append((partition, group, partitions, record_offset))
        for partition, *_ in written:
            partition.sync()
        with self._lock:
            for _, group, partitions, record_offset in written:
                self._offsets.forget(group, partitions, record_offset)

    def _append(self, commit: Commit, stamp: Stamp, verify: Callable[[], None] | None = None) -> Partition:
        try:
            records = offset_records(commit.group, commit.offsets, self._runtime.now())
            partition, commit.record_offset = self._write(commit.group, records, stamp, verify)
        except BaseException:
            self._offsets.drop(commit)
            raise
        return partition

    def _write(
        self, group: str, records: Sequence[KeyAndValue], stamp: Stamp, verify: Callable[[], None] | None = None
    ) -> tuple[Partition, int]:
        partition = self._runtime.partition(self.partition_for(group))
        rows, now = rows_of_records(records), self._runtime.now()
        return partition, partition.append_rows(rows, stamp, _BATCHES, now, verify)
