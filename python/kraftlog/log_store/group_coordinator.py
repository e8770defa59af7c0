"""The group coordinator: offsets that groups commit, by themselves or inside a transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.log_store.group_offsets import GroupOffsets, OffsetAndMetadata, Offsets, offset_records, tombstones
from kraftlog.log_store.partition import BatchOptions, Partition
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.transaction_state import TopicPartition
from kraftlog.schema import TABLES
from kraftlog.tables.coordinator_tables import offset_rows

_BATCHES = BatchOptions()


class GroupCoordinator:
    """The committed offsets of groups; its methods are for any thread.

    Parameters
    ----------
    partition_of : callable
        Opens a partition of the store.
    partition_for : callable
        Returns the partition of ``__consumer_offsets`` that has the records of a group.
    clock : callable
    """

    def __init__(
        self,
        partition_of: Callable[[TopicPartition], Partition],
        partition_for: Callable[[str], TopicPartition],
        clock: Callable[[], int],
    ) -> None:
        self._partition_of = partition_of
        self.partition_for = partition_for
        self._clock = clock
        self._offsets = GroupOffsets()
        self._lock = threading.Lock()

    def load(self, segments: Sequence[Segment]) -> None:
        """Take what a partition of ``__consumer_offsets`` holds."""
        faults: list[Fault] = []
        for batch in offset_rows(list(segments), TABLES["offsets"].select(), ReadOptions(strict=True), faults):
            for row in batch.to_pylist():
                if row["state"] == "committed":
                    epoch = -1 if row["leader_epoch"] is None else row["leader_epoch"]
                    found = OffsetAndMetadata(row["offset"], row["metadata"] or "", epoch)
                    self._offsets.commit(row["group"], {(row["topic"], row["partition"]): found})
        for fault in faults:
            raise error_from_fault(fault)

    def commit(self, group: str, offsets: Offsets) -> None:
        """Commit offsets, which are on disk then."""
        if not offsets:
            return
        partition = self._append(group, offsets, Stamp())
        partition.sync()
        with self._lock:
            self._offsets.commit(group, offsets)

    def commit_in_transaction(self, group: str, offsets: Offsets, stamp: Stamp) -> None:
        """Write offsets that count when a transaction is committed, to a partition that is in it."""
        self._append(group, offsets, stamp)
        with self._lock:
            self._offsets.add_pending(stamp.producer_id, group, offsets)

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """Commit or drop what waits for a producer; the marker stands in the log."""
        with self._lock:
            self._offsets.end(producer_id, is_commit=is_commit)

    def committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group."""
        with self._lock:
            return self._offsets.committed(group)

    def groups(self) -> list[str]:
        """Return the groups that have committed offsets."""
        with self._lock:
            return self._offsets.groups

    def forget_topic(self, topic: str) -> None:
        """Remove the offsets of a topic that is deleted."""
        with self._lock:
            removed = self._offsets.forget_topic(topic)
        for group, partitions in removed.items():
            self._write(group, tombstones(group, partitions), Stamp()).sync()

    def _append(self, group: str, offsets: Offsets, stamp: Stamp) -> Partition:
        return self._write(group, offset_records(group, offsets, self._clock()), stamp)

    def _write(self, group: str, rows: pa.RecordBatch, stamp: Stamp) -> Partition:
        partition = self._partition_of(self.partition_for(group))
        partition.append_rows(rows, stamp, _BATCHES, self._clock())
        return partition
