"""The parts of a store that producers and consumers use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kraftlog.log_store.appends import Appends
from kraftlog.log_store.cluster import Cluster
from kraftlog.log_store.group_coordinator import GroupCoordinator
from kraftlog.log_store.group_members import GroupMembers
from kraftlog.log_store.owner import Owner
from kraftlog.log_store.partition import Partition
from kraftlog.log_store.topics import Topic
from kraftlog.log_store.transaction_coordinator import TransactionCoordinator
from kraftlog.log_store.transaction_state import TopicPartition


class HasUnwritten(Protocol):
    """A producer with unwritten records."""

    def write_unwritten(self) -> None:
        """Write them; in a transaction abort it instead."""


@dataclass(frozen=True)
class StoreParts:
    """The parts of a store that producers and consumers use.

    Attributes
    ----------
    partition_of, topic_of : callable
        Return a partition that is open for writing, and a topic; raise UnknownTopicOrPartitionError without one.
    folder_of : callable
        Returns the folder of a partition.
    new_producer_id, clock : callable
    owner : Owner
        The process that may use the store.
    cluster : Cluster
        Topics, features and ids of the node.
    appends : Appends
    unwritten : set
        Producers whose single records wait to be written together.
    """

    transactions: TransactionCoordinator
    groups: GroupCoordinator
    members: GroupMembers
    partition_of: Callable[[TopicPartition], Partition]
    topic_of: Callable[[str], Topic]
    folder_of: Callable[[TopicPartition], Path]
    new_producer_id: Callable[[], int]
    clock: Callable[[], int]
    owner: Owner
    cluster: Cluster
    appends: Appends
    unwritten: set[HasUnwritten] = field(default_factory=set)
