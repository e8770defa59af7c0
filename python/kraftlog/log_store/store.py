"""``LogStore``: a log directory of Kafka, written and read by one process with Kafka's transactions."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Unpack

import pyarrow as pa

from kraftlog.coordinator.partition_for import group_partition
from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.disk.remote_path import PathLike
from kraftlog.layout.checkpoints import CLEAN_SHUTDOWN, CLEANER_OFFSETS, LOG_START_OFFSETS
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.log_store.cluster import Cluster
from kraftlog.log_store.consumer import MAX_POLL_INTERVAL_MS, Consumer
from kraftlog.log_store.coordinator_file import Known, read_known, write_known
from kraftlog.log_store.directory import partition_folders, with_found_epochs
from kraftlog.log_store.errors import TopicExistsError, UnknownTopicOrPartitionError, storage_errors
from kraftlog.log_store.group_coordinator import GroupCoordinator
from kraftlog.log_store.group_members import GroupMembers
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.housekeeping import Freed, apply_retention, clean
from kraftlog.log_store.internal_compaction import InternalCompaction
from kraftlog.log_store.open_files import OpenFiles
from kraftlog.log_store.options import StoreArguments, StoreOptions
from kraftlog.log_store.overwrites import decided_overwrites
from kraftlog.log_store.owner import Owner
from kraftlog.log_store.partition import PRODUCER_EXPIRATION_MS, BatchOptions, Partition
from kraftlog.log_store.partition_folders import make_partition_folder, remove_partition_folder, topic_id_of
from kraftlog.log_store.parts import StoreParts
from kraftlog.log_store.producer import Producer
from kraftlog.log_store.threads import Threads
from kraftlog.log_store.topics import INTERNAL, Topic, check_name, check_not_internal, check_partitions, checked_configs
from kraftlog.log_store.transaction_coordinator import TransactionCoordinator
from kraftlog.log_store.transaction_records import transaction_states
from kraftlog.log_store.transaction_state import TopicPartition, TransactionState
from kraftlog.metadata.uuids import uuid_text
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE, names
from kraftlog.types import IsolationLevel
from kraftlog.write.locked_directory import LockedLogDirectory
from kraftlog.write.log_directory_state import LogDirectoryState, remove_clean_shutdown
from kraftlog.write.log_options import LogOptions
from kraftlog.write.offset_checkpoint import set_offsets

DEFAULT_TIMEOUT_MS = 60_000  # transaction.timeout.ms
_TRANSACTION_STATE_CONFIGS = {"cleanup.policy": "compact", "segment.bytes": "104857600"}
_OFFSETS_CONFIGS = {"cleanup.policy": "compact", "segment.bytes": "104857600"}


class LogStore:
    """A log directory of Kafka with topics, producers, transactions and consumers, without a broker.

    It holds Kafka's lock for as long as it is open. What is in it is what a KRaft node of one broker would have
    written: such a node can open the directory afterwards, and a store the directory of such a node. Opening finishes
    transactions that are prepared and aborts those under way, as a coordinator does.

    Threads may share a store and its producers, and a consumer when one uses it at a time. Processes may not: a child
    that inherits a store by ``fork`` is refused, and what it closes stays open for its parent.

    An exception such as that of Ctrl-C may come out of any method. What the method does is done or not done then; a
    step that was left halfway is finished or taken back by the next use of the store.

    Parameters
    ----------
    path : path
        The log directory; a new one is made.
    **options
        As ``StoreOptions`` has them.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another store has the directory.
    ValueError
        When it is not a log directory of one KRaft node.
    RecordError
        When its logs are damaged before their recovery points.
    StorageError
        When the disk fails or is full: a store writes when it is opened. ``kraftlog.open`` then reads the directory.

    Examples
    --------
    >>> import tempfile, kraftlog, pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as path, kraftlog.LogStore(path) as store:
    ...     store.create_topic("orders", partitions=2)
    ...     producer = store.producer(transactional_id="etl")
    ...     with producer.transaction():
    ...         producer.send("orders", pa.table({"key": ["a", "b"], "value": ["one", "two"]}))
    ...     with store.consumer(isolation_level="read_committed") as consumer:
    ...         consumer.subscribe(["orders"])
    ...         sorted(consumer.poll()["value"].to_pylist())
    [b'one', b'two']
    """

    def __init__(self, path: PathLike, **options: Unpack[StoreArguments]) -> None:
        self.path = Path(path)
        self.options = StoreOptions(**options)
        self._owner = Owner(self.path)
        self._open_files = OpenFiles(self.options.open_files)
        self._partitions: dict[TopicPartition, Partition] = {}
        self._guard = threading.RLock()
        self._is_open = self._is_abandoned = False
        disk().make_folder(self.path)
        self._log_directory = LockedLogDirectory(self.path)
        try:
            with storage_errors():
                self._begin()
        except BaseException:
            self._abandon()
            raise
        self._is_open = True

    def _begin(self) -> None:
        was_clean = disk().entry(self.path / CLEAN_SHUTDOWN) is not None
        self._log_starts = LogDirectoryState.of(self.path).log_starts
        remove_clean_shutdown(self.path)
        self._cluster = Cluster(
            self._log_directory,
            self.options.clock,
            self.options.new_uuid,
            self.options.node_id,
            was_clean=was_clean,
            adopts_partitions=self.options.adopts_partitions,
        )
        self._was_clean = was_clean
        threads = self.options.sync_threads
        self._threads = Threads(threads) if threads else None
        self._compaction = InternalCompaction(self.path, self.options.clock, self._threads)
        self._recover(was_clean=was_clean)

    def _recover(self, *, was_clean: bool) -> None:
        if not was_clean:
            for topic in self._cluster.topics.values():
                for key in self._present(topic.name):
                    self._partition(key)
        transactions = TransactionCoordinator(
            self._partition,
            self._partitions_of(TRANSACTION_STATE) or self.options.transaction_log_partitions,
            self._cluster.features.get("transaction.version", 0),
            self._next_producer_id,
            self.options.clock,
            self._on_end,
            self._threads,
            self._compaction.written,
        )
        members = GroupMembers(
            lambda: {name: topic.partitions for name, topic in self.topics.items()}, self.options.clock
        )
        groups = GroupCoordinator(
            self._partition, self._offsets_partition, members, self.options.clock, self._compaction.written
        )
        self._parts = StoreParts(
            transactions,
            groups,
            members,
            self._open_partition,
            self._topic,
            self._folder,
            self._next_producer_id,
            self.options.clock,
            self._owner,
        )
        known = read_known(self.path, self._ends_of_coordinators()) if was_clean else None
        if known is not None:
            transactions.load(known.transactions)
            groups.take(known.groups)
        else:
            for key in self._present(TRANSACTION_STATE):
                transactions.load(transaction_states(list(PartitionFolder.of(self._folder(key)).segments)))
        for overwrite in decided_overwrites(self.path, transactions.states()):
            overwrite.finish(self._partition)
        transactions.recover()
        for partition in list(self._partitions.values()):
            transactions.end_left_open(partition)
        transactions.expire()
        for key in self._present(CONSUMER_OFFSETS) if known is None else ():
            groups.load(PartitionFolder.of(self._folder(key)).segments)

    def _write_known(self) -> None:
        ends = self._ends_of_coordinators()
        if ends:
            groups = {group: self._parts.groups.committed(group) for group in self._parts.groups.groups()}
            write_known(self.path, ends, Known(self._parts.transactions.states(), groups))

    def _ends_of_coordinators(self) -> dict[TopicPartition, tuple[str, int]]:
        """Return where the topics of the coordinators end, by their recovery points."""
        return {
            key: (uuid_text(self._topic(name).topic_id), self._log_directory.recovery_points.get(key) or 0)
            for name in INTERNAL
            for key in self._present(name)
        }

    def _present(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic that have a folder."""
        keys = [(topic, number) for number in range(self._partitions_of(topic))]
        return [key for key in keys if disk().entry(self._folder(key)) is not None]

    # topics

    @property
    def topics(self) -> dict[str, Topic]:
        """The topics by name, but for those that Kafka keeps its own state in."""
        self._owner.check()
        return {name: topic for name, topic in sorted(self._cluster.topics.items()) if name not in INTERNAL}

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, object] | None = None) -> None:
        """Create a topic.

        Parameters
        ----------
        name : str
        partitions : int
        configs : mapping, optional
            ``cleanup.policy``, ``segment.bytes``, ``retention.ms``, ``retention.bytes``, ``delete.retention.ms``,
            ``max.message.bytes``.

        Raises
        ------
        TopicExistsError, InvalidTopicError, InvalidPartitionsError, InvalidConfigError
            Nothing is created then.
        """
        check_not_internal(name)
        self._create(name, partitions, checked_configs(name, configs or {}))
        self._parts.members.topic_created(name)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all its records, and the offsets that groups have committed for it."""
        check_not_internal(name)
        with self._guard, storage_errors():
            self._check_open()
            topic = self._topic(name)
            self._parts.groups.forget_topic(name)  # first: a group would skip records of a new topic of that name
            for number in range(topic.partitions):
                partition = self._partitions.pop((name, number), None)
                if partition is not None:
                    partition.delete()
            self._cluster.delete(topic)
            self._parts.members.topic_deleted(name)
            self._remove(name, range(topic.partitions))

    def _remove(self, name: str, numbers: Iterable[int]) -> None:
        """Remove partitions of a topic that is no more: their folders last, so that one shows what is left to do."""
        keys = [(name, number) for number in numbers]
        for key in keys:
            self._log_starts.pop(key, None)
        self._log_directory.recovery_points.remove(keys)
        for checkpoint in (LOG_START_OFFSETS, CLEANER_OFFSETS):
            set_offsets(self.path / checkpoint, dict.fromkeys(keys))
        for key in keys:
            if disk().entry(self._folder(key)) is not None:
                remove_partition_folder(self._folder(key), self.options.new_uuid())

    def _remove_left(self, name: str) -> None:
        """Remove what a topic of this name has left: an exception or a crash came while it was deleted.

        A folder that says no topic id becomes one of the new topic.
        """
        found = partition_folders(self.path).get(name, [])
        left = [number for number in found if topic_id_of(self._folder((name, number))) is not None]
        if left:
            self._remove(name, left)

    def _create(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        with self._guard, storage_errors():
            self._check_open()
            if name in self._cluster.topics:
                raise TopicExistsError(f"topic {name!r} exists")
            check_name(name, self._cluster.topics)
            check_partitions(name, partitions)
            self._remove_left(name)
            topic = self._cluster.new_topic(name, partitions, configs)
            self._cluster.create([with_found_epochs(topic, self.path)])
            return topic

    # clients

    def producer(
        self,
        transactional_id: str | None = None,
        *,
        transaction_timeout_ms: int = DEFAULT_TIMEOUT_MS,
        compression: str = "none",
        compression_level: int | None = None,
        max_batch_bytes: int = BatchOptions.max_batch_bytes,
    ) -> Producer:
        """Return a producer.

        Parameters
        ----------
        transactional_id : str, optional
            With it records are written in transactions. A producer that has the id already is fenced, and its
            transaction is aborted. Without it the producer is idempotent.
        transaction_timeout_ms : int
            After which a transaction is aborted.
        compression, compression_level, max_batch_bytes
            As ``encode`` has them.
        """
        self._check_open()
        if transactional_id is not None and not (isinstance(transactional_id, str) and transactional_id):
            raise ValueError(f"transactional_id {transactional_id!r} is not a text of one character at least")
        options = BatchOptions(compression, compression_level, max_batch_bytes)
        return Producer(self._parts, transactional_id, transaction_timeout_ms, options)

    def consumer(
        self,
        group: str | None = None,
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        auto_offset_reset: str = "earliest",
        max_poll_interval_ms: int = MAX_POLL_INTERVAL_MS,
    ) -> Consumer:
        """Return a consumer.

        Parameters
        ----------
        group : str, optional
            Under which it commits offsets, and from whose offsets it starts.
        isolation_level : {"read_uncommitted", "read_committed"}
        auto_offset_reset : {"earliest", "latest"}
            Where it starts in a partition that the group has no offset of.
        max_poll_interval_ms : int
            When it has not polled for so long, other members of its group take its partitions; its next ``poll`` joins
            the group again.
        """
        self._check_open()
        return Consumer(self._parts, group, isolation_level, auto_offset_reset, max_poll_interval_ms)

    # state

    def transactional_ids(self) -> list[TransactionState]:
        """Return the state of each transactional id."""
        self._owner.check()
        return self._parts.transactions.states()

    def abort_transaction(self, transactional_id: str) -> None:
        """Abort the transaction that a producer has under way, and fence it, as an administrator does."""
        self._check_open()
        self._parts.transactions.abort(transactional_id)

    def groups(self) -> list[str]:
        """Return the groups that have committed offsets."""
        self._owner.check()
        return self._parts.groups.groups()

    def committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group."""
        self._owner.check()
        return self._parts.groups.committed(group)

    # retention and compaction

    def clean(self, topics: Iterable[str] | None = None, *, roll: bool = False) -> list[Freed]:
        """Compact topics whose ``cleanup.policy`` says so, as Kafka's log cleaner does: the last of each key stays.

        Closed segments up to the last stable offset are cleaned. ``delete.retention.ms`` and ``min.compaction.lag.ms``
        of the topics count.

        Parameters
        ----------
        topics : str or iterable of str, optional
            By default all, also those of Kafka itself.
        roll : bool
            Whether to begin new segments first, so that all that is stable is cleaned.

        Returns
        -------
        list of Freed
            Sizes before and after, of each partition.
        """
        found = [
            clean(partition, self.path, self.options.clock(), roll=roll)
            for partition in self._partitions_to_keep(topics)
        ]
        return [each for each in found if each is not None]

    def apply_retention(self, topics: Iterable[str] | None = None) -> list[Freed]:
        """Remove segments that are older or more than ``retention.ms`` and ``retention.bytes`` of their topics allow.

        The last segment of a partition stays, and what is not stable. The parameter and the result are as of ``clean``.
        """
        found = [apply_retention(partition, self.options.clock()) for partition in self._partitions_to_keep(topics)]
        return [each for each in found if each is not None]

    def _partitions_to_keep(self, topics: Iterable[str] | None) -> list[Partition]:
        self._check_open()
        wanted = names(topics)
        every = sorted(self._cluster.topics) if wanted is None else [self._topic(name).name for name in wanted]
        return [self._open_partition(key) for name in every for key in self._present(name)]

    # the end

    def flush(self) -> None:
        """Wait until all that was written is on disk."""
        self._check_open()
        self._parts.transactions.settle()
        for partition in list(self._partitions.values()):
            partition.sync()

    def close(self) -> None:
        """Abort transactions under way, bring everything to disk, and give up the lock; a second time does nothing.

        A broker that opens the directory afterwards recovers nothing.

        In a child process that has inherited the store by ``fork`` it does nothing. When an exception such as that of
        Ctrl-C comes out of it, what opens the directory next recovers it; it can be called again to give up the lock.

        Raises
        ------
        StoreError
            When single records that producers were given could not be written; the store is closed nevertheless.
        """
        if not self._owner.is_here or self._is_abandoned:
            return
        with ExitStack() as waiting:
            waiting.callback(self._close)
            for producer in list(self._parts.unwritten) if self._is_open else ():
                waiting.callback(producer.write_unwritten)  # before the store is closed, each of them

    def _close(self) -> None:
        with self._guard:
            if self._is_abandoned:
                return
            was_open, self._is_open = self._is_open, False
        try:
            if was_open:  # else an exception, such as that of Ctrl-C, came out of it; what opens it next recovers it
                with storage_errors():
                    self._finish()
        finally:
            self._abandon()

    def _finish(self) -> None:
        """Bring all to disk, and say that the directory is closed in order."""
        self._parts.transactions.recover()
        self._parts.transactions.settle()
        self._compaction.close()
        for partition in self._partitions.values():
            partition.close()
        self._cluster.close()
        self._log_directory.recovery_points.close()
        if any(partition.has_failed for partition in self._partitions.values()):
            return  # what opens the directory next is to recover it
        self._write_known()
        write_file(self.path / CLEAN_SHUTDOWN, json.dumps({"version": 0, "brokerEpoch": -1}).encode())

    def __enter__(self) -> LogStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _abandon(self) -> None:
        """Give everything up as it is, and the lock last; an exception in it lets it be done again."""
        self._is_open = False
        parts = getattr(self, "_parts", None)
        if parts is not None:
            parts.transactions.close()
        for partition in self._partitions.values():
            partition.abandon()
        threads = getattr(self, "_threads", None)
        if threads is not None:
            threads.shutdown()
        self._log_directory.close()
        self._is_abandoned = True

    def _check_open(self) -> None:
        self._owner.check()
        if not self._is_open:
            raise ValueError(f"{self.path}: the store is closed")

    def _topic(self, name: str) -> Topic:
        found = self._cluster.topics.get(name)
        if found is None:
            raise UnknownTopicOrPartitionError(f"topic {name!r}: the store has no such topic")
        return found

    def _partitions_of(self, name: str) -> int:
        found = self._cluster.topics.get(name)
        return 0 if found is None else found.partitions

    def _folder(self, key: TopicPartition) -> Path:
        return self.path / f"{key[0]}-{key[1]}"

    def _open_partition(self, key: TopicPartition) -> Partition:
        self._check_open()
        return self._partition(key)

    def _partition(self, key: TopicPartition) -> Partition:
        found = self._partitions.get(key)
        if found is not None:
            return found  # when the store is closed, the partition is, too
        with self._guard:
            if self._is_abandoned:
                self._check_open()
            if key not in self._partitions:
                self._partitions[key] = self._opened(key)
            return self._partitions[key]

    def _opened(self, key: TopicPartition) -> Partition:
        name, number = key
        if name in INTERNAL and name not in self._cluster.topics and self._is_open:
            self._create_internal(name)
        topic = self._topic(name)
        if not 0 <= number < topic.partitions:
            raise UnknownTopicOrPartitionError(f"topic {name!r} has {topic.partitions} partitions, and no {number}")
        folder = self._folder(key)
        options = LogOptions(
            segment_bytes=topic.segment_bytes,
            fsync=self.options.fsync,
            least_timestamp=self.options.clock() - PRODUCER_EXPIRATION_MS,
        )
        points, log_start = self._log_directory.recovery_points, self._log_starts.get(key, 0)
        with storage_errors():
            make_partition_folder(folder, topic.topic_id, was_clean=self._was_clean)
            opened = Partition(
                key, folder, topic, options, points, self._open_files, log_start, was_clean=self._was_clean
            )
        self._open_files.use(opened)
        return opened

    def _create_internal(self, name: str) -> None:
        if name == TRANSACTION_STATE:
            self._create(name, self.options.transaction_log_partitions, _TRANSACTION_STATE_CONFIGS)
        else:
            self._create(name, self.options.offsets_partitions, _OFFSETS_CONFIGS)

    def _next_producer_id(self) -> int:
        with self._guard:
            return self._cluster.next_producer_id()

    def _offsets_partition(self, group: str) -> TopicPartition:
        count = self._partitions_of(CONSUMER_OFFSETS) or self.options.offsets_partitions
        return CONSUMER_OFFSETS, group_partition(pa.array([group]), count)[0].as_py()

    def _on_end(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        self._parts.groups.end(producer_id, producer_epoch, is_commit=is_commit)
