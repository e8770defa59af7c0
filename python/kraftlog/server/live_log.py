"""The topics and partitions of a store, as clients of the protocol see them while it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from kraftlog.codec.options import EARLIEST, LATEST, READ_COMMITTED, ReadOptions
from kraftlog.disk.waiting import Lock, about_to_wait
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.segment import Segment
from kraftlog.log_store.errors import OffsetOutOfRangeError, TopicExistsError, UnknownTopicOrPartitionError
from kraftlog.log_store.partition import LastSegment, Partition
from kraftlog.log_store.store import LogStore
from kraftlog.log_store.topics import Topic
from kraftlog.read.lineage import Lineage
from kraftlog.read.log_pass import Pass
from kraftlog.server.aborted_transactions import aborted_transactions, overlapping
from kraftlog.server.places import Places
from kraftlog.server.readable_log import (
    NO_TOPIC_ID,
    AbortedTransaction,
    Fetched,
    ReadableTopic,
)
from kraftlog.server.segment_batches import SegmentBatches
from kraftlog.tables.found_offset import Found, Time
from kraftlog.topics import TopicPartition
from kraftlog.types import IsolationLevel


class _ClosedSegments:
    """The segments before the last one, until the next one is closed, or one of them is removed or replaced."""

    def __init__(self, segments: list[Segment], end_offset: int) -> None:
        self.batches = SegmentBatches(segments)
        self.aborted = aborted_transactions(segments, end_offset) if segments else []


class LivePartition:
    """A partition of a store that is read by offset.

    Parameters
    ----------
    store : LogStore
    key : TopicPartition
    """

    def __init__(self, store: LogStore, key: TopicPartition) -> None:
        self._store = store
        self._key = key
        self._lock = Lock()
        self._closed: dict[tuple[int, int], _ClosedSegments] = {}  # the last one
        self._places: dict[tuple[Partition, int], Places] = {}  # those of the last segment

    @property
    def _partition(self) -> Partition:
        return self._store.parts.partition_of(self._key)

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._partition.log_start_offset

    @property
    def high_watermark(self) -> int:
        """The end of the log: a store has no other replicas."""
        return self._partition.next_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the earliest open transaction, or the end."""
        return self._partition.last_stable_offset

    @property
    def leader_epoch(self) -> int:
        """The current leader epoch."""
        return self._store.parts.topic_of(self._key.topic).leader_epochs[self._key.partition]

    @property
    def lineage(self) -> Lineage:
        """The leader epochs of the log, and its end."""
        return self._partition.lineage

    def _end_offset(self, isolation_level: IsolationLevel) -> int:
        return self.last_stable_offset if isolation_level == READ_COMMITTED else self.high_watermark

    def offset_at(self, time: Time, isolation_level: IsolationLevel) -> Found:
        """Return the offset for a time, as ``PartitionEnds.at``."""
        if time == EARLIEST:
            return Found(self.log_start_offset)
        end_offset = self._end_offset(isolation_level)
        if time == LATEST:
            return Found(end_offset)
        if end_offset <= self.log_start_offset:
            return Found()  # without a record there may be no segment either
        partition = self._partition
        found = partition.while_unchanged(lambda: _offset_at(partition, time, isolation_level))
        return found if found.offset is not None and found.offset < end_offset else Found()

    def fetch(self, offset: int, max_bytes: int, isolation_level: IsolationLevel) -> Fetched:
        """Return batches from the one with an offset on; at least one, whatever its size.

        Raises
        ------
        OffsetOutOfRangeError
            When the offset is not in the log.
        RecordError, OSError
            When the log is damaged there, or cannot be read.
        """
        partition = self._partition
        return partition.while_unchanged(lambda: self._fetched(partition, offset, max_bytes, isolation_level))

    def _fetched(self, partition: Partition, offset: int, max_bytes: int, isolation_level: IsolationLevel) -> Fetched:
        end_offset = self._end_offset(isolation_level)
        if not partition.log_start_offset <= offset <= partition.next_offset:
            raise OffsetOutOfRangeError(f"{self._key}: the log does not have offset {offset}")
        last = partition.last_segment(offset)
        if last.place is not None:
            segment, position = last.place
            places = self._places_in(partition, last)
            batches = SegmentBatches([segment], first_position=position, places=places)
        else:
            batches = self._closed_segments(partition, last).batches
        found = batches.read(offset, max_bytes, end_offset)
        if isolation_level != READ_COMMITTED:
            return Fetched(found.records, None, found.check_next)
        aborted = [AbortedTransaction(*row) for row in last.aborted]
        if offset < last.base_offset:
            aborted += self._closed_segments(partition, last).aborted
        aborted = sorted(overlapping(aborted, offset, found.last_offset), key=lambda one: one.first_offset)
        return Fetched(found.records, aborted, found.check_next)

    def _places_in(self, partition: Partition, last: LastSegment) -> Places:
        key = partition, last.base_offset  # a partition that is opened again may have lost batches
        with self._lock:
            places = self._places.get(key)
            if places is None:
                places = Places()
                self._places = {key: places}
            return places

    def _closed_segments(self, partition: Partition, last: LastSegment) -> _ClosedSegments:
        key = partition.settled_changes(), last.base_offset
        with self._lock:
            closed = self._closed.get(key)
            if closed is None:
                about_to_wait()
                segments = PartitionFolder.of(partition.folder).segments
                earlier = [one for one in segments if (one.base_offset or 0) < last.base_offset]
                closed = _ClosedSegments(earlier, last.base_offset)
                self._closed = {key: closed}
            return closed


def _offset_at(partition: Partition, time: Time, isolation_level: IsolationLevel) -> Found:
    from kraftlog.tables.partition_ends import PartitionEnds

    partition.settled_changes()
    ends = PartitionEnds(list(PartitionFolder.of(partition.folder).segments), [])
    return ends.at(time, Pass(ReadOptions(isolation_level=isolation_level, strict=True)))


class LiveLog:
    """The topics of a store; its methods except ``created_on_use`` wait for nothing.

    Parameters
    ----------
    store : LogStore
    loop : asyncio.AbstractEventLoop
        Of the futures that ``growth`` returns.
    auto_create_partitions : int
        Partitions of a topic that a client creates by its first use; 0: such topics are unknown.
    """

    def __init__(self, store: LogStore, loop: asyncio.AbstractEventLoop, *, auto_create_partitions: int) -> None:
        self._store = store
        self._loop = loop
        self._auto_create_partitions = auto_create_partitions
        self._live: dict[bytes, ReadableTopic] = {}
        self._growing: dict[tuple[str, int], set[asyncio.Future[None]]] = {}
        self._appends = store.parts.appends
        self._appends.listen(self._appended)

    def close(self) -> None:
        """Listen to the store no more."""
        self._appends.forget(self._appended)

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster."""
        return self._store.parts.cluster.cluster_id

    @property
    def topics(self) -> dict[str, ReadableTopic]:
        """The topics by name, with those of the coordinators."""
        topics = self._store.parts.cluster.topics
        live = {topic.topic_id: self._topic(topic) for _, topic in sorted(topics.items())}
        self._live = live
        return {topic.name: topic for topic in live.values()}

    def _topic(self, topic: Topic) -> ReadableTopic:
        known = self._live.get(topic.topic_id)
        if known is not None and len(known.partitions) == topic.partitions:
            return known
        keys = (TopicPartition(topic.name, number) for number in range(topic.partitions))
        partitions = {key.partition: LivePartition(self._store, key) for key in keys}
        return ReadableTopic(topic.name, topic.topic_id, partitions)

    def topic(self, name: str, topic_id: bytes) -> ReadableTopic | None:
        """Return the topic of a request, by its id, or by its name if the id is zero; None if it is unknown."""
        topics = self._store.parts.cluster.topics
        known = self._live.get(topic_id)
        found = topics.get(name if known is None else known.name)
        if topic_id != NO_TOPIC_ID and (found is None or found.topic_id != topic_id):
            found = next((one for one in list(topics.values()) if one.topic_id == topic_id), None)
        if found is None:
            return None
        topic = self._live[found.topic_id] = self._topic(found)
        return topic

    def created_on_use(self, name: str) -> ReadableTopic:
        """Create a topic that a client names first.

        Raises
        ------
        StoreError
            When its name is invalid, or clients may not create topics by using them.
        """
        if not self._auto_create_partitions:
            raise UnknownTopicOrPartitionError(f"topic {name!r}: the store has no such topic")
        with suppress(TopicExistsError):  # by another client
            self._store.create_topic(name, self._auto_create_partitions)
        topic = self.topic(name, NO_TOPIC_ID)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"topic {name!r} was deleted")
        return topic

    def growth(self, partitions: Iterable[TopicPartition]) -> asyncio.Future[None]:
        """Return a future that is done after the next append to one of some partitions."""
        grown: asyncio.Future[None] = self._loop.create_future()
        keys = list(partitions)
        for key in keys:
            self._growing.setdefault(key, set()).add(grown)
        grown.add_done_callback(lambda _: self._forget(keys, grown))
        return grown

    def _forget(self, keys: Iterable[TopicPartition], grown: asyncio.Future[None]) -> None:
        for key in keys:
            waiting = self._growing.get(key)
            if waiting is not None:
                waiting.discard(grown)
                if not waiting:
                    del self._growing[key]

    def _appended(self, key: tuple[str, int]) -> None:
        """Note an append; any thread may call it."""
        if key in self._growing:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits
                self._loop.call_soon_threadsafe(self._wake, key)

    def _wake(self, key: tuple[str, int]) -> None:
        for grown in list(self._growing.get(key, ())):
            if not grown.done():
                grown.set_result(None)
