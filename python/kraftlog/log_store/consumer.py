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
from kraftlog.read.records import read_range
from kraftlog.schema import RECORDS
from kraftlog.tables.open_log import open as open_log
from kraftlog.topics import names
from kraftlog.types import IsolationLevel

EARLIEST, LATEST = "earliest", "latest"
MOST_RECORDS = 500_000
MAX_POLL_INTERVAL_MS = 300_000  # max.poll.interval.ms

_THREAD = "thread"

_PAUSE = 0.005  # seconds between two looks for new records


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _alone(
    method: Callable[Concatenate[Consumer, _Arguments], _Result],
) -> Callable[Concatenate[Consumer, _Arguments], _Result]:
    """Refuse a call while another thread is inside of the consumer, as Kafka's does, and in a child process."""

    @wraps(method)
    def checked(self: Consumer, /, *args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        self._enter()
        try:
            return method(self, *args, **options)
        finally:
            self._user = {}

    return checked


class Consumer:
    """Reads partitions of a store. ``LogStore.consumer`` makes it; it refuses a thread while another one uses it.

    Positions move when ``poll`` returns. When an exception such as that of Ctrl-C has come out of it, the next ``poll``
    returns the same records.

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
            raise ValueError(f"max_poll_interval_ms {max_poll_interval_ms} is less than 1")
        self.group = group
        self._store = store
        self._isolation_level: IsolationLevel = isolation_level
        self._reset = reset
        self._user: dict[str, int] = {}  # the thread that is inside of a method
        self._moved: dict[TopicPartition, int] = {}  # the positions when what is being read will be returned
        self._is_halfway = False  # while iterators may be behind the positions
        self._positions: dict[TopicPartition, int] = {}
        self._reading: dict[TopicPartition, tuple[Iterator[pa.RecordBatch], int]] = {}
        self._changes: dict[TopicPartition, int] = {}  # of partitions when their reading began
        self._topic_ids: dict[TopicPartition, bytes] = {}
        self._unstable: list[TopicPartition] = []  # whose committed offsets wait for the end of a transaction
        self._member: GroupMetadata | None = None
        self._max_poll_interval_ms = max_poll_interval_ms
        self._leaves_at_end: finalize[..., Consumer] | None = None
        self._subscription: tuple[str, ...] | re.Pattern[str] = ()

    @_alone
    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions; those that were read before keep their positions.

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

        When members of the group come or go, or a topic is created or deleted, the next ``poll`` takes what is this
        consumer's then; with a group it goes on at the offsets that the group has committed.

        Parameters
        ----------
        topics : str or iterable of str, or Pattern
            Names of topics; or a pattern, which matches whole names, also of topics that are created later.

        Raises
        ------
        UnknownTopicOrPartitionError
            When the store has no topic of a name.
        """
        wanted = topics if isinstance(topics, re.Pattern) else tuple(names(topics))
        for name in wanted if isinstance(wanted, tuple) else ():
            self._store.topic_of(name)
        self._leave()
        self._subscription = wanted
        self._join()
        self._rebalance()

    def _join(self) -> None:
        """Join the group; a consumer that nobody has any more leaves it, else its partitions would be read no more."""
        members = self._store.members
        self._member = members.join(self.group, self._subscription, self._max_poll_interval_ms)
        if self._leaves_at_end is not None:
            self._leaves_at_end.detach()
        self._leaves_at_end = finalize(self, members.dropped, self._member)
        self._leaves_at_end.atexit = False  # a store that is still open then is not closed in order either

    @_alone
    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read."""
        self._rebalance()
        return sorted([*self._positions, *self._unstable])

    @property
    def subscription(self) -> tuple[str, ...] | re.Pattern[str]:
        """What ``subscribe`` was given."""
        return self._subscription

    def group_metadata(self) -> GroupMetadata:
        """Return who this consumer is in its group, for ``send_offsets_to_transaction``.

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
            About how many at most: a record batch of Arrow is returned whole.
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
            Once, when a topic of the subscription was deleted; the next call reads the others.
        """
        self._enter()
        try:
            table = self._polled(max_records, time.monotonic() + timeout)
            self._positions, self._is_halfway = self._moved, False  # nothing behind it lets a signal's handler run
            return table
        finally:
            self._user = {}

    def _enter(self) -> None:
        self._store.owner.check()
        own = get_ident()
        user = self._user.setdefault(_THREAD, own)
        if user != own:
            raise ConcurrentModificationError(
                f"a consumer is for one thread at a time: thread {user} uses it, and thread {own} wants to"
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
                    break  # what was read counts as consumed; the next call meets the error again
            if batches or time.monotonic() >= deadline:
                return pa.Table.from_batches(batches, RECORDS.select())
            self._positions, self._is_halfway = self._moved, False
            time.sleep(_PAUSE)

    def _begin_moving(self) -> None:
        """Let positions move without effect: they count when what lies before them is returned."""
        if self._is_halfway:
            self._reading = {}  # an exception has left iterators that are ahead of the positions
        self._is_halfway = True
        self._moved = dict(self._positions)

    @_alone
    def position(self) -> dict[TopicPartition, int]:
        """Return the offset of the next record of each partition, for ``send_offsets_to_transaction``."""
        return dict(self._positions)

    @_alone
    def seek(self, key: TopicPartition, offset: int) -> None:
        """Go on at an offset.

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
        """Commit offsets of the group, by default the positions; they are on disk then.

        Raises
        ------
        ValueError
            When the consumer has no group.
        IllegalGenerationError, UnknownMemberIdError
            When the partitions may be another member's by now. The next ``poll`` takes what is this consumer's.
        UnknownTopicOrPartitionError
            When a topic was deleted since its position was taken.
        """
        member = self.group_metadata()
        for key in self._positions if offsets is None else ():
            if self._store.topic_of(key[0]).topic_id != self._topic_ids[key]:
                raise UnknownTopicOrPartitionError(f"topic {key[0]!r} is another one than that which was read")
        self._store.groups.commit(member, with_metadata(self._positions if offsets is None else offsets))

    @_alone
    def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that the group has committed."""
        return self._store.groups.committed(self._own_group())

    @_alone
    def lag(self) -> dict[TopicPartition, int]:
        """Return how many offsets lie between each position and the end that the consumer can see."""
        starts = {key: self._store.partition_of(key).log_start_offset for key in self._positions}
        return {key: max(0, self._end_of(key) - max(at, starts[key])) for key, at in self._positions.items()}

    def close(self) -> None:
        """Leave the group; nothing is committed. In a child process that has inherited the consumer it does nothing."""
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
        """Take the partitions that are this consumer's when members of its group, or topics, have come or gone.

        With a group it goes on where the group is: another member may have had them meanwhile.
        """
        if self._member is None:
            return
        try:
            generation, partitions = self._store.members.assignment(self._member)
        except UnknownMemberIdError:  # it has not polled for too long, and joins again, as Kafka's does
            self._join()
            generation, partitions = self._store.members.assignment(self._member)
        if partitions is not None:
            self._take(partitions, {} if self.group is not None else self._positions)
            self._member = replace(self._member, generation=generation)  # last: an exception lets it be taken again

    def _tell_deleted(self) -> None:
        deleted = self._store.members.deleted(self._member) if self._member is not None else []
        if deleted:
            raise UnknownTopicOrPartitionError(f"{', '.join(deleted)}: deleted; other topics are read on")

    def _forget_positions(self) -> None:
        self._positions.clear()
        self._reading.clear()
        self._unstable.clear()

    def _take(self, partitions: list[TopicPartition], known: dict[TopicPartition, int] | None = None) -> None:
        """Read these partitions: where they were read, at the committed offset, or where ``auto_offset_reset`` says.

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
        """Begin anew in a partition of a topic that was created again, or that does not reach to the position."""
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
        """Return the next rows of a partition, and move its position behind them."""
        self._check_position(key)
        end = self._end_of(key)
        while key in self._reading or self._moved[key] < end:
            if key not in self._reading:
                self._reading[key] = self._read(key, end)
            batches, reached = self._reading[key]
            try:
                batch = next(batches, None)
            except BaseException as error:
                del self._reading[key]  # an iterator that has failed would seem to be at its end
                if isinstance(error, OSError | RecordError) and self._has_changed(key):
                    self._check_position(key)
                    continue  # the segments were cleaned or removed meanwhile
                raise
            if batch is None:
                del self._reading[key]
                self._moved[key] = reached  # what lies before it are markers, and what is not shown
            elif batch.num_rows:
                self._moved[key] = batch.column("offset")[-1].as_py() + 1
                return batch
        return None

    def _read(self, key: TopicPartition, end: int) -> tuple[Iterator[pa.RecordBatch], int]:
        """Return rows of a partition from its position on, and the offset before which they end.

        The last segment is read from where the partition knows a batch to be; earlier ones by their index files.
        """
        start, partition = self._moved[key], self._store.partition_of(key)
        self._changes[key] = partition.changes
        part = partition.tail(start, end)
        if part is None:
            end = min(end, partition.last_base_offset)
            rows = open_log(partition.folder).records(
                isolation_level=self._isolation_level, start_offset=start, end_offset=end, strict=True
            )
            return rows.batches(), end
        if self._isolation_level == "read_uncommitted":
            part = replace(part, transactions=None)
        options = ReadOptions(start_offset=start, end_offset=end, isolation_level=self._isolation_level, strict=True)
        return read_range(part, RECORDS.select(), options, []), end
