"""``Consumer``: the records of a store's partitions, from positions on, and the offsets that a group commits."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import wraps
from threading import get_ident
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar
from weakref import finalize

import pyarrow as pa

from kraftlog.codec.options import ISOLATION_LEVELS, READ_COMMITTED, ReadOptions
from kraftlog.errors import RecordError
from kraftlog.log_store.errors import ConcurrentModificationError, UnknownMemberIdError, UnknownTopicOrPartitionError
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.parts import StoreParts
from kraftlog.log_store.producer import OffsetsToCommit, with_metadata
from kraftlog.log_store.transaction_state import TopicPartition
from kraftlog.read.log_pass import Pass
from kraftlog.read.records import read_range
from kraftlog.schema import RECORDS
from kraftlog.tables.open_log import open as open_log
from kraftlog.topics import names
from kraftlog.types import IsolationLevel

EARLIEST, LATEST = "earliest", "latest"
MOST_RECORDS = 500_000

_THREAD = "thread"

_PAUSE = 0.005  # seconds between two checks for new records


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _alone(
    method: Callable[Concatenate[Consumer, _Arguments], _Result],
) -> Callable[Concatenate[Consumer, _Arguments], _Result]:
    """Raise while another thread is in a method of the consumer, as Kafka's does, and in a child process."""

    @wraps(method)
    def checked(self: Consumer, /, *args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        self._enter()
        try:
            return method(self, *args, **options)
        finally:
            del self._user[_THREAD]

    return checked


class Consumer:
    """Reads partitions of a store. ``LogStore.consumer`` makes it. Concurrent use by two threads raises.

    Positions move when ``poll`` returns. If it raises an exception such as KeyboardInterrupt, the next ``poll`` returns
    the same records.

    Attributes
    ----------
    group : str or None
    """

    def __init__(
        self,
        store: StoreParts,
        group: str | None,
        isolation_level: IsolationLevel,
        reset: str,
        max_poll_interval_ms: int,
    ) -> None:
        if isolation_level not in ISOLATION_LEVELS:
            raise ValueError(f"isolation_level {isolation_level!r} is neither read_uncommitted nor read_committed")
        if reset not in (EARLIEST, LATEST):
            raise ValueError(f"auto_offset_reset {reset!r} is neither earliest nor latest")
        if max_poll_interval_ms <= 0:
            raise ValueError(f"max_poll_interval_ms {max_poll_interval_ms} is not positive")
        self.group = group
        self._store = store
        self._isolation_level: IsolationLevel = isolation_level
        self._reset = reset
        self._user: dict[str, int] = {}  # the thread in a method
        self._moved: dict[TopicPartition, int] = {}  # positions after the records that are being read
        self._is_halfway = False  # while iterators may be ahead of the positions
        self._positions: dict[TopicPartition, int] = {}
        self._reading: dict[TopicPartition, tuple[Iterator[pa.RecordBatch], int]] = {}
        self._changes: dict[TopicPartition, int] = {}  # topic ids when reading of partitions began
        self._topic_ids: dict[TopicPartition, bytes] = {}
        self._unstable: list[TopicPartition] = []  # partitions whose committed offsets depend on an open transaction
        self._member: GroupMetadata | None = None
        self._max_poll_interval_ms = max_poll_interval_ms
        self._leaves_at_end: finalize[..., Consumer] | None = None
        self._subscription: tuple[str, ...] | re.Pattern[str] = ()

    @_alone
    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions; partitions that were assigned before keep their positions.

        Raises
        ------
        UnknownTopicOrPartitionError
            When the store has no such partition.
        """
        partitions = list(partitions)
        for key in partitions:
            self._store.partition_of(key)
        self._leave()
        self._take(partitions)

    @_alone
    def subscribe(self, topics: Iterable[str] | re.Pattern[str]) -> None:
        """Read all partitions of topics. Consumers of one group share them, as Kafka's range assignor does.

        When members join or leave the group, or a topic is created or deleted, the next ``poll`` takes the consumer's
        new partitions; with a group it continues at the group's committed offsets.

        Parameters
        ----------
        topics : str or iterable of str, or Pattern
            Names of topics; or a pattern for whole names, including topics that are created later.

        Raises
        ------
        UnknownTopicOrPartitionError
            When the store has no topic with one of the names.
        """
        subscription = topics if isinstance(topics, re.Pattern) else tuple(names(topics))
        for name in subscription if isinstance(subscription, tuple) else ():
            self._store.topic_of(name)
        self._leave()
        self._subscription = subscription
        self._join()
        self._rebalance()

    def _join(self) -> None:
        """Join the group. A garbage-collected consumer leaves it; otherwise nobody would read its partitions."""
        members = self._store.members
        self._member = members.join(self.group, self._subscription, self._max_poll_interval_ms)
        if self._leaves_at_end is not None:
            self._leaves_at_end.detach()
        self._leaves_at_end = finalize(self, members.dropped, self._member)
        self._leaves_at_end.atexit = False  # a store that is still open at exit is not closed cleanly either

    @_alone
    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read."""
        self._rebalance()
        return sorted([*self._positions, *self._unstable])

    @property
    def subscription(self) -> tuple[str, ...] | re.Pattern[str]:
        """The argument of ``subscribe``."""
        return self._subscription

    def group_metadata(self) -> GroupMetadata:
        """Return this consumer's membership in its group, for ``send_offsets_to_transaction``.

        Raises
        ------
        ValueError
            When the consumer has no group.
        """
        return self._member if self._member is not None and self.group is not None else GroupMetadata(self._own_group())

    def poll(self, max_records: int = MOST_RECORDS, *, timeout: float = 0.0) -> pa.Table:
        """Return the next records.

        Parameters
        ----------
        max_records : int
            Approximate maximum: an Arrow record batch is returned whole.
        timeout : float
            Seconds to wait for records when there are none.

        Returns
        -------
        pyarrow.Table
            With the columns of the table ``records``; no rows when there is nothing new. It owns its memory.

        Raises
        ------
        RecordError
            When a log is damaged.
        UnknownTopicOrPartitionError
            Once, after a topic of the subscription was deleted; the next call reads the others.
        """
        self._enter()
        try:
            table = self._polled(max_records, time.monotonic() + timeout)
            # after it no signal handler can run, and nothing is allocated, which may fail
            self._positions, self._is_halfway = self._moved, False
            return table
        finally:
            del self._user[_THREAD]

    def _enter(self) -> None:
        self._store.owner.check()
        own = get_ident()
        user = self._user.setdefault(_THREAD, own)
        if user != own:
            raise ConcurrentModificationError(
                f"a consumer is for one thread at a time: thread {own} called it while thread {user} uses it"
            )

    def _polled(self, max_records: int, deadline: float) -> pa.Table:
        while True:
            self._store.transactions.abort_timed_out()
            self._rebalance()
            self._tell_deleted()
            if self._unstable:
                self._take([*self._positions, *self._unstable])
            self._begin_moving()
            batches: list[pa.RecordBatch] = []
            count = 0
            for key in sorted(self._positions):
                try:
                    while count < max_records and (batch := self._next(key)) is not None:
                        batches.append(batch)
                        count += batch.num_rows
                except Exception:
                    if not batches:
                        raise
                    break  # records before the error count as consumed; the next call raises it again
            if batches or time.monotonic() >= deadline:
                return pa.Table.from_batches(batches, RECORDS.select())
            self._positions, self._is_halfway = self._moved, False
            time.sleep(_PAUSE)

    def _begin_moving(self) -> None:
        """Move positions tentatively: they take effect when the records before them are returned."""
        if self._is_halfway:
            self._reading = {}  # after an exception, iterators are ahead of the positions
        self._is_halfway = True
        self._moved = dict(self._positions)

    @_alone
    def position(self) -> dict[TopicPartition, int]:
        """Return the offset of the next record of each partition, for ``send_offsets_to_transaction``."""
        return dict(self._positions)

    @_alone
    def seek(self, key: TopicPartition, offset: int) -> None:
        """Continue at an offset.

        Raises
        ------
        ValueError
            When the partition is not assigned, or the offset is negative.
        """
        if key not in self._positions or offset < 0:
            raise ValueError(f"{key} is not assigned" if key not in self._positions else f"offset {offset} is negative")
        self._reading.pop(key, None)
        self._positions[key] = offset

    @_alone
    def commit(self, offsets: OffsetsToCommit | None = None) -> None:
        """Commit offsets of the group, by default the positions, and wait until they are on disk.

        Raises
        ------
        ValueError
            When the consumer has no group.
        IllegalGenerationError, UnknownMemberIdError
            When another member may have the partitions now. The next ``poll`` takes this consumer's partitions.
        UnknownTopicOrPartitionError
            When a topic was deleted since its position was taken.
        """
        member = self.group_metadata()
        for key in self._positions if offsets is None else ():
            if self._store.topic_of(key[0]).topic_id != self._topic_ids[key]:
                raise UnknownTopicOrPartitionError(f"topic {key[0]!r} was recreated since its position was taken")
        self._store.groups.commit(member, with_metadata(self._positions if offsets is None else offsets))

    @_alone
    def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that the group has committed."""
        return self._store.groups.committed(self._own_group())

    @_alone
    def lag(self) -> dict[TopicPartition, int]:
        """Return, for each partition, the offsets between its position and the end that the consumer can see."""
        starts = {key: self._store.partition_of(key).log_start_offset for key in self._positions}
        return {key: max(0, self._end_of(key) - max(at, starts[key])) for key, at in self._positions.items()}

    def close(self) -> None:
        """Leave the group without a commit. In a child process that has inherited the consumer it does nothing."""
        if self._store.owner.is_here:
            self._close()

    @_alone
    def _close(self) -> None:
        self._leave()
        self._forget_positions()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _own_group(self) -> str:
        if self.group is None:
            raise ValueError("a consumer without a group has no committed offsets")
        return self.group

    def _leave(self) -> None:
        if self._member is not None:
            self._store.members.leave(self._member)
            self._member, self._subscription = None, ()
            if self._leaves_at_end is not None:
                self._leaves_at_end.detach()

    def _rebalance(self) -> None:
        """Take this consumer's new partitions after members of its group, or topics, have changed.

        With a group it continues at the group's offsets: another member may have had the partitions since.
        """
        if self._member is None:
            return
        try:
            generation, partitions = self._store.members.assignment(self._member)
        except UnknownMemberIdError:  # it exceeded max.poll.interval.ms, and joins again, as Kafka's does
            self._join()
            generation, partitions = self._store.members.assignment(self._member)
        if partitions is not None:
            self._take(partitions, {} if self.group is not None else self._positions)
            self._member = replace(self._member, generation=generation)  # last, so that an exception repeats the step

    def _tell_deleted(self) -> None:
        deleted = self._store.members.deleted(self._member) if self._member is not None else []
        if deleted:
            raise UnknownTopicOrPartitionError(f"{', '.join(deleted)}: deleted; the next poll reads the other topics")

    def _forget_positions(self) -> None:
        self._positions.clear()
        self._reading.clear()
        self._unstable.clear()

    def _take(self, partitions: list[TopicPartition], known: dict[TopicPartition, int] | None = None) -> None:
        """Read these partitions: from their position, the committed offset, or as ``auto_offset_reset`` says.

        At read_committed a partition waits while a transaction is open that would commit another offset for it, as
        Kafka's consumer does (``requireStable``).
        """
        committed: dict[TopicPartition, OffsetAndMetadata] = {}
        unstable: set[TopicPartition] = set()
        if self.group is not None:
            committed, unstable = self._store.groups.fetch(self.group)
        known = self._positions if known is None else known
        positions: dict[TopicPartition, int] = {}
        waiting: list[TopicPartition] = []
        for key in partitions:
            if key in known:
                positions[key] = known[key]
            elif key in unstable and self._isolation_level == READ_COMMITTED:
                waiting.append(key)
            else:
                self._topic_ids[key] = self._store.topic_of(key[0]).topic_id
                positions[key] = committed[key].offset if key in committed else self._reset_offset(key)
        reading = {key: reading for key, reading in self._reading.items() if key in positions and key in known}
        self._positions, self._reading, self._unstable = positions, reading, waiting

    def _reset_offset(self, key: TopicPartition) -> int:
        return self._store.partition_of(key).log_start_offset if self._reset == EARLIEST else self._end_of(key)

    def _has_changed(self, key: TopicPartition) -> bool:
        return self._store.partition_of(key).changes != self._changes[key]

    def _check_position(self, key: TopicPartition) -> None:
        """Reset the position in a partition whose topic was created again, or that ends before the position."""
        partition, topic_id = self._store.partition_of(key), self._store.topic_of(key[0]).topic_id
        is_in_range = partition.log_start_offset <= self._moved[key] <= partition.next_offset
        if not is_in_range or topic_id != self._topic_ids[key]:
            self._topic_ids[key] = topic_id
            self._reading.pop(key, None)
            self._moved[key] = self._reset_offset(key)

    def _end_of(self, key: TopicPartition) -> int:
        partition = self._store.partition_of(key)
        return partition.last_stable_offset if self._isolation_level == READ_COMMITTED else partition.next_offset

    def _next(self, key: TopicPartition) -> pa.RecordBatch | None:
        """Return the next rows of a partition, and move its position after them."""
        self._check_position(key)
        end = self._end_of(key)
        while key in self._reading or self._moved[key] < end:
            if key not in self._reading:
                self._reading[key] = self._read(key, end)
            batches, reached = self._reading[key]
            try:
                batch = next(batches, None)
            except BaseException as error:
                del self._reading[key]  # a failed iterator would seem to be exhausted
                if isinstance(error, OSError | RecordError) and self._has_changed(key):
                    self._check_position(key)
                    continue  # the segments were cleaned or removed since
                raise
            if self._has_changed(key):  # the batch may be of files that were replaced since the position was found
                del self._reading[key]
                self._check_position(key)
                continue
            if batch is None:
                del self._reading[key]
                self._moved[key] = reached  # before it are only markers and invisible records
            elif batch.num_rows:
                self._moved[key] = batch.column("offset")[-1].as_py() + 1
                return batch
        return None

    def _read(self, key: TopicPartition, end: int) -> tuple[Iterator[pa.RecordBatch], int]:
        """Return rows of a partition from its position on, and their end offset.

        The last segment is read from a batch whose place is in memory; earlier ones through their index files.
        """
        start, partition = self._moved[key], self._store.partition_of(key)
        self._changes[key] = partition.changes
        part = partition.tail(start, end)
        if part is None:
            self._changes[key] = partition.settled_changes()
            end = min(end, partition.last_base_offset)
            rows = open_log(partition.folder).records(
                isolation_level=self._isolation_level, start_offset=start, end_offset=end, strict=True
            )
            return rows.batches(), end
        if self._isolation_level == "read_uncommitted":
            part = replace(part, transactions=None)
        options = ReadOptions(start_offset=start, end_offset=end, isolation_level=self._isolation_level, strict=True)
        return read_range(part, RECORDS.select(), Pass(options)), end
