"""What a server reads: topics and partitions, of files or of a store, as clients of the protocol see them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from kraftlog.disk.file_bytes import FileBytes
from kraftlog.read.lineage import Lineage
from kraftlog.tables.found_offset import Found, Time
from kraftlog.topics import INTERNAL_TOPICS, TopicPartition
from kraftlog.types import IsolationLevel

NO_TOPIC_ID = bytes(16)
"""Clients then name topics in all requests."""


Records: TypeAlias = bytes | memoryview | FileBytes


class AbortedTransaction(NamedTuple):
    """A transaction whose records readers with ``read_committed`` drop, from its first offset to its marker."""

    producer_id: int
    first_offset: int
    marker_offset: int


class Fetched(NamedTuple):
    """Record batches as they are in the log, and the aborted transactions that overlap them.

    ``check_next`` checks what a reader in order fetches next, in any thread; None if there is no need.
    """

    records: Records
    aborted: list[AbortedTransaction] | None
    check_next: Callable[[], None] | None = None


class ReadablePartition(Protocol):
    """A partition that is read by offset; its methods may run in several threads at once."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""

    @property
    def high_watermark(self) -> int:
        """The end of what can be read at ``read_uncommitted``."""

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the earliest open transaction, or the end."""

    @property
    def leader_epoch(self) -> int:
        """The current leader epoch; -1 if the log does not know it."""

    @property
    def lineage(self) -> Lineage:
        """The leader epochs of the log, and its end."""

    def offset_at(self, time: Time, isolation_level: IsolationLevel) -> Found:
        """Return the offset for a time, as ``PartitionEnds.at``."""

    def fetch(self, offset: int, max_bytes: int, isolation_level: IsolationLevel) -> Fetched:
        """Return batches from the one with an offset on; at least one, whatever its size.

        Raises
        ------
        OffsetOutOfRangeError
            When the offset is not in the log.
        RecordError, OSError
            When the log is damaged there, or cannot be read.
        """


@dataclass(frozen=True)
class ReadableTopic:
    """A topic.

    Attributes
    ----------
    name : str
    topic_id : bytes
        16 bytes; zeros if it is unknown.
    partitions : mapping of int to ReadablePartition
    """

    name: str
    topic_id: bytes
    partitions: Mapping[int, ReadablePartition]

    @property
    def is_internal(self) -> bool:
        """Whether it is one of the coordinators' topics."""
        return self.name in INTERNAL_TOPICS


class ReadableLog(Protocol):
    """The topics that a server has."""

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster, if it is known."""

    @property
    def topics(self) -> Mapping[str, ReadableTopic]:
        """The topics by name."""

    def topic(self, name: str, topic_id: bytes) -> ReadableTopic | None:
        """Return the topic of a request, by its id, or by its name if the id is zero; None if it is unknown."""

    def created_on_use(self, name: str) -> ReadableTopic:
        """Return a topic that a client names first; may wait for a disk.

        Raises
        ------
        StoreError
            When it cannot be created.
        """

    def growth(self, partitions: Iterable[TopicPartition]) -> asyncio.Future[None]:
        """Return a future that is done after the next append to one of some partitions."""
