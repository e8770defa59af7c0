"""``LogStore``: a Kafka log directory that one process reads and writes with Kafka's transactions."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.disk.remote_path import PathLike, local_path
from kraftlog.disk.waiting import about_to_wait
from kraftlog.layout.checkpoints import CLEAN_SHUTDOWN, CLEANER_OFFSETS, LOG_START_OFFSETS
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.log_store.appends import Appends
from kraftlog.log_store.cluster import Cluster
from kraftlog.log_store.coordinator_file import Known, read_known, write_known
from kraftlog.log_store.coordinator_runtime import CoordinatorRuntime
from kraftlog.log_store.directory import partition_folders, with_found_epochs
from kraftlog.log_store.errors import (
    InvalidPartitionsError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
    storage_errors,
)
from kraftlog.log_store.group_coordinator import GroupCoordinator
from kraftlog.log_store.group_members import MAX_POLL_INTERVAL_MS, GroupMembers
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.internal_compaction import InternalCompaction
from kraftlog.log_store.open_files import OpenFiles
from kraftlog.log_store.options import StoreArguments, StoreOptions
from kraftlog.log_store.overwrites import decided_overwrites
from kraftlog.log_store.owner import Owner
from kraftlog.log_store.partition import PRODUCER_EXPIRATION_MS, BatchOptions, Partition
from kraftlog.log_store.partition_folders import make_partition_folder, remove_partition_folder, topic_id_of
from kraftlog.log_store.parts import StoreParts
from kraftlog.log_store.threads import Threads
from kraftlog.log_store.topics import INTERNAL, Topic, check_name, check_not_internal, check_partitions, checked_configs
from kraftlog.log_store.transaction_coordinator import TransactionCoordinator
from kraftlog.log_store.transaction_records import transaction_states
from kraftlog.log_store.transaction_state import TopicPartition, TransactionState
from kraftlog.metadata.uuids import uuid_text
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE, names
from kraftlog.types import IsolationLevel
from kraftlog.write.locked_directory import LockedLogDirectory
from kraftlog.write.log_directory_state import LogDirectoryState, remove_clean_shutdown, remove_high_watermarks
from kraftlog.write.log_options import LogOptions
from kraftlog.write.offset_checkpoint import set_offsets

if TYPE_CHECKING:
    from kraftlog.log_store.consumer import Consumer
    from kraftlog.log_store.housekeeping import Freed
    from kraftlog.log_store.producer import Producer

DEFAULT_TIMEOUT_MS = 60_000  # transaction.timeout.ms
_TRANSACTION_STATE_CONFIGS = {"cleanup.policy": "compact", "segment.bytes": "104857600"}
_OFFSETS_CONFIGS = {"cleanup.policy": "compact", "segment.bytes": "104857600"}


class LogStore:
    """A Kafka log directory with topics, producers, transactions and consumers, without a broker.

    It holds Kafka's lock while it is open. Its contents are those of a KRaft cluster with one node: such a node can
    open the directory afterwards, and a store can open the directory of such a node. Opening completes prepared
    transactions like a coordinator, and aborts open ones, whose producers are gone.

    Threads may share a store and its producers; a consumer may be used by one thread at a time. Processes may not share
    a store: in a child process that has inherited a store by ``fork``, its use is refused, and closing it does not
    close it for the parent.

    Any method may raise an asynchronous exception such as that of Ctrl-C. The operation is then either complete or not
    started; the next use of the store finishes or undoes partial steps.

    Parameters
    ----------
    path : path
        The log directory; created if missing.
    **options
        As in ``StoreOptions``.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another store has the directory.
    ValueError
        When it is not the log directory of a single KRaft node.
    RecordError
        When its logs are damaged before their recovery points.
    StorageError
        When the disk fails or is full, because opening a store writes. ``kraftlog.open`` can still read the directory.

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
        self.path = local_path(path)
        self.options = StoreOptions(**options)
        self._owner = Owner(self.path)
        self._open_files = OpenFiles(self.options.open_files)
        self._appends = Appends()
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
        remove_high_watermarks(self.path)  # of a directory that a store may have
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
        runtime = _Runtime(self)
        members = GroupMembers(runtime)
        groups = GroupCoordinator(runtime, members)
        transaction_version = self._cluster.features.get("transaction.version", 0)
        transactions = TransactionCoordinator(
            runtime,
            groups,
            transaction_version,
            self._threads,
            continues_transactions=self.options.continues_transactions,
        )
        self._parts = StoreParts(
            transactions,
            groups,
            members,
            self._open_partition,
            self._topic,
            self._folder,
            runtime.next_producer_id,
            self.options.clock,
            self._owner,
            self._cluster,
            self._appends,
        )
        known = read_known(self.path, self._ends_of_coordinators()) if was_clean else None
        if known is not None:
            transactions.load(known.transactions)
            groups.take(known.groups, known.group_records)
        else:
            for key in self._present(TRANSACTION_STATE):
                transactions.load(transaction_states(list(PartitionFolder.of(self._folder(key)).segments)))
        for overwrite in decided_overwrites(self.path, transactions.states()):
            overwrite.finish(self._partition)
        transactions.recover()
        for partition in list(self._partitions.values()):
            transactions.end_left_open(partition)
        transactions.expire()
        epochs = {state.producer_id: state.producer_epoch for state in transactions.states() if state.is_ongoing}
        for key in self._present(CONSUMER_OFFSETS) if known is None else ():
            groups.load(PartitionFolder.of(self._folder(key)).segments, epochs)

    def _write_known(self) -> None:
        ends = self._ends_of_coordinators()
        if ends and not self._parts.groups.has_pending:  # pending offsets are only in the log
            groups = {group: self._parts.groups.committed(group) for group in self._parts.groups.groups()}
            records = self._parts.groups.records
            write_known(self.path, ends, Known(self._parts.transactions.states(), groups, records))

    def _ends_of_coordinators(self) -> dict[TopicPartition, tuple[str, int]]:
        """Return the ends of the coordinators' topics, by their recovery points."""
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
        """The topics by name, except Kafka's internal topics."""
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
            Nothing is created in this case.
        """
        check_not_internal(name)
        self._create(name, partitions, checked_configs(name, configs or {}))
        self._parts.members.topic_created(name)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all its records and committed offsets."""
        check_not_internal(name)
        with self._guard, storage_errors():
            self._check_open()
            topic = self._topic(name)
            self._parts.groups.forget_topic(name)  # first: else a group would skip records of a new topic of that name
            for number in range(topic.partitions):
                partition = self._partitions.pop((name, number), None)
                if partition is not None:
                    partition.delete()
            self._cluster.delete(topic)
            self._parts.members.topic_deleted(name)
            self._remove(name, range(topic.partitions))

    def create_partitions(self, name: str, partitions: int) -> None:
        """Raise the number of partitions of a topic; the records that it has stay where they are.

        Parameters
        ----------
        name : str
        partitions : int
            The new number.

        Raises
        ------
        UnknownTopicOrPartitionError, InvalidPartitionsError
        """
        check_not_internal(name)
        with self._guard, storage_errors():
            self._check_open()
            topic = self._topic(name)
            if partitions <= topic.partitions:
                raise InvalidPartitionsError(
                    f"topic {name!r} has {topic.partitions} partitions; expected a larger number, found {partitions}"
                )
            check_partitions(name, partitions)
            self._take_changed(self._cluster.add_partitions(topic, partitions))
        self._parts.members.topic_created(name)

    def alter_configs(self, name: str, configs: Mapping[str, object]) -> None:
        """Change configurations of a topic; others keep their values.

        Parameters
        ----------
        name : str
        configs : mapping
            As in ``create_topic``; None for Kafka's default.

        Raises
        ------
        UnknownTopicOrPartitionError, InvalidConfigError
            Nothing is changed in this case.
        """
        check_not_internal(name)
        checked = checked_configs(name, {key: value for key, value in configs.items() if value is not None})
        removed = {key for key, value in configs.items() if value is None}
        with self._guard, storage_errors():
            self._check_open()
            topic = self._topic(name)
            changes: dict[str, str | None] = dict.fromkeys(sorted(removed & topic.configs.keys()))
            self._take_changed(self._cluster.set_configs(topic, changes | checked))

    def _take_changed(self, topic: Topic) -> None:
        for number in range(topic.partitions):
            partition = self._partitions.get((topic.name, number))
            if partition is not None:
                partition.take_topic(topic)

    def delete_records(self, name: str, partition: int, before: int) -> int:
        """Delete the records of a partition before an offset, as Kafka's administrators do.

        Consumers no longer read them. Their segments are removed by ``apply_retention`` when all of their records are
        deleted.

        Parameters
        ----------
        name : str
        partition : int
        before : int
            -1 for all records.

        Returns
        -------
        int
            The new first offset of the log.

        Raises
        ------
        OffsetOutOfRangeError
            When the log does not reach that offset.
        PolicyViolationError
            When the topic is compacted only.
        """
        check_not_internal(name)
        opened = self._open_partition((name, partition))
        if "delete" not in opened.topic.cleanup_policy:
            raise PolicyViolationError(f"topic {name!r} is compacted: it keeps the last record of each key")
        with self._guard, storage_errors():
            end_offset = opened.next_offset
            offset = end_offset if before == -1 else before
            if not 0 <= offset <= end_offset:
                raise OffsetOutOfRangeError(f"{name}-{partition}: offset {before} is not between 0 and {end_offset}")
            if offset > opened.log_start_offset:
                opened.sync()  # first: else a crash could leave a log that ends before its start
                set_offsets(self.path / LOG_START_OFFSETS, {(name, partition): offset})
                opened.move_log_start(offset)
            return opened.log_start_offset

    def _remove(self, name: str, numbers: Iterable[int]) -> None:
        """Remove partitions of a deleted topic: their folders last, so that the remaining work is known."""
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
        """Remove the remains of a topic of this name, after an exception or a crash during its deletion.

        A folder without a topic id becomes one of the new topic.
        """
        numbers = partition_folders(self.path).get(name, [])
        with_topic_id = [number for number in numbers if topic_id_of(self._folder((name, number))) is not None]
        if with_topic_id:
            self._remove(name, with_topic_id)

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
            With it records are written in transactions. An earlier producer with the same id is fenced, and its
            transaction is aborted. Without it the producer is idempotent.
        transaction_timeout_ms : int
            Timeout after which a transaction is aborted.
        compression, compression_level, max_batch_bytes
            As in ``encode``.
        """
        from kraftlog.log_store.producer import Producer

        self._check_open()
        if transactional_id is not None and not (isinstance(transactional_id, str) and transactional_id):
            raise ValueError(f"transactional_id {transactional_id!r} is not a nonempty text")
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
            Group for which it commits offsets, and from whose offsets it starts.
        isolation_level : {"read_uncommitted", "read_committed"}
        auto_offset_reset : {"earliest", "latest"}
            Start position in a partition without a committed offset.
        max_poll_interval_ms : int
            If it has not polled for this time, other members of its group get its partitions; its next ``poll`` rejoins
            the group.
        """
        from kraftlog.log_store.consumer import Consumer

        self._check_open()
        return Consumer(self._parts, group, isolation_level, auto_offset_reset, max_poll_interval_ms)

    # state

    @property
    def parts(self) -> StoreParts:
        """The coordinators and partitions, for a server of Kafka's protocol."""
        self._check_open()
        return self._parts

    def transactional_ids(self) -> list[TransactionState]:
        """Return the state of each transactional id."""
        self._owner.check()
        return self._parts.transactions.states()

    def abort_transaction(self, transactional_id: str) -> None:
        """Abort the open transaction of a producer, and fence the producer, like an administrator."""
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
        """Compact topics by their ``cleanup.policy``, like Kafka's log cleaner: the last record of each key is kept.

        Closed segments up to the last stable offset are cleaned, subject to ``delete.retention.ms`` and
        ``min.compaction.lag.ms`` of the topics.

        Parameters
        ----------
        topics : str or iterable of str, optional
            By default all, including internal topics.
        roll : bool
            Whether to roll segments first, so that all stable records are cleaned.

        Returns
        -------
        list of Freed
            Sizes before and after, for each partition.
        """
        from kraftlog.log_store.housekeeping import clean

        freed = [
            clean(partition, self.path, self.options.clock(), roll=roll)
            for partition in self._partitions_to_keep(topics)
        ]
        return [each for each in freed if each is not None]

    def apply_retention(self, topics: Iterable[str] | None = None) -> list[Freed]:
        """Remove segments that exceed ``retention.ms`` and ``retention.bytes`` of their topics.

        The last segment of a partition, and segments after the last stable offset, are kept. The parameter and the
        result are as in ``clean``.
        """
        from kraftlog.log_store.housekeeping import apply_retention

        freed = [apply_retention(partition, self.options.clock()) for partition in self._partitions_to_keep(topics)]
        return [each for each in freed if each is not None]

    def _partitions_to_keep(self, topics: Iterable[str] | None) -> list[Partition]:
        self._check_open()
        topic_names = names(topics)
        every = (
            sorted(self._cluster.topics) if topic_names is None else [self._topic(name).name for name in topic_names]
        )
        return [self._open_partition(key) for name in every for key in self._present(name)]

    # the end

    def flush(self) -> None:
        """Wait until all written data is on disk."""
        self._check_open()
        self._parts.transactions.settle()
        for partition in list(self._partitions.values()):
            partition.sync()

    def close(self) -> None:
        """Abort open transactions, sync all data, and release the lock; a second call does nothing.

        With ``continues_transactions`` they stay open.

        A broker that opens the directory afterwards needs no recovery.

        In a child process that has inherited the store by ``fork`` it does nothing. If it raises an asynchronous
        exception such as that of Ctrl-C, the next user of the directory recovers it; call it again to release the lock.

        Raises
        ------
        StoreError
            When single records of producers could not be written; the store is closed nevertheless.
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
            if was_open:  # otherwise an exception such as KeyboardInterrupt ended it; the next opening recovers
                with storage_errors():
                    self._finish()
        finally:
            self._abandon()

    def _finish(self) -> None:
        """Sync all data, and mark the directory as cleanly closed."""
        self._parts.transactions.recover()
        self._parts.transactions.settle()
        self._compaction.close()
        for partition in self._partitions.values():
            partition.close()
        self._cluster.close()
        self._log_directory.recovery_points.close()
        if any(partition.has_failed for partition in self._partitions.values()):
            return  # the next opening must recover the directory
        self._write_known()
        write_file(self.path / CLEAN_SHUTDOWN, json.dumps({"version": 0, "brokerEpoch": -1}).encode())

    def __enter__(self) -> LogStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _abandon(self) -> None:
        """Release all resources unchanged, the lock last; can be repeated after an exception."""
        self._is_open = False
        parts = getattr(self, "_parts", None)
        if parts is not None:
            parts.transactions.close()
        for partition in list(self._partitions.values()):  # a thread may open one at this moment
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
        topic = self._cluster.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"topic {name!r}: the store has no such topic")
        return topic

    def _partitions_of(self, name: str) -> int:
        topic = self._cluster.topics.get(name)
        return 0 if topic is None else topic.partitions

    def _folder(self, key: TopicPartition) -> Path:
        return self.path / f"{key[0]}-{key[1]}"

    def _open_partition(self, key: TopicPartition) -> Partition:
        self._check_open()
        return self._partition(key)

    def _partition(self, key: TopicPartition) -> Partition:
        partition = self._partitions.get(key)
        if partition is not None:
            return partition  # when the store is closed, the partition is, too
        about_to_wait()
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
                key,
                folder,
                topic,
                options,
                points,
                self._open_files,
                log_start,
                appends=self._appends,
                was_clean=self._was_clean,
            )
        self._open_files.use(opened)
        return opened

    def _create_internal(self, name: str) -> None:
        if name == TRANSACTION_STATE:
            self._create(name, self.options.transaction_log_partitions, _TRANSACTION_STATE_CONFIGS)
        else:
            self._create(name, self.options.offsets_partitions, _OFFSETS_CONFIGS)


class _Runtime(CoordinatorRuntime):
    """A store, for its coordinators, while it opens and closes as well."""

    def __init__(self, store: LogStore) -> None:
        self._store = store

    def partition(self, key: TopicPartition) -> Partition:
        return self._store._partition(key)

    def partition_counts(self) -> Mapping[str, int]:
        return {name: topic.partitions for name, topic in self._store.topics.items()}

    def partition_count(self, internal_topic: str) -> int:
        options = self._store.options
        is_offsets = internal_topic == CONSUMER_OFFSETS
        new = options.offsets_partitions if is_offsets else options.transaction_log_partitions
        return self._store._partitions_of(internal_topic) or new

    def next_producer_id(self) -> int:
        with self._store._guard:
            return self._store._cluster.next_producer_id()

    def now(self) -> int:
        return self._store.options.clock()

    def note_write(self, partition: Partition) -> None:
        self._store._compaction.note_write(partition)
