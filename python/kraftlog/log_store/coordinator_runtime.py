"""The interface through which coordinators use the store that runs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kraftlog.log_store.partition import Partition
from kraftlog.log_store.transaction_state import TopicPartition


class CoordinatorRuntime(Protocol):
    """The partitions, topics, producer ids and time of a store, for its coordinators.

    Kafka's ``CoordinatorRuntime`` and ``ReplicaManager`` are to its coordinators what this is here.
    """

    def partition(self, key: TopicPartition) -> Partition:
        """Return a partition, opened if necessary.

        Raises
        ------
        UnknownTopicOrPartitionError
            When its topic was deleted.
        """

    def partition_counts(self) -> Mapping[str, int]:
        """Return the partition counts of topics that a consumer may read, by name."""

    def partition_count(self, internal_topic: str) -> int:
        """Return the partition count of an internal topic, which may not exist yet."""

    def next_producer_id(self) -> int:
        """Return a producer id that was never used."""

    def now(self) -> int:
        """Return the time in milliseconds."""

    def note_write(self, partition: Partition) -> None:
        """Note that a partition of an internal topic has grown; the caller holds no lock."""
