"""The transaction coordinator: transactional ids, the two phases of a commit, and what a crash left of one.

A commit is decided when the record PrepareCommit is on disk. What it depends on is on disk before it: the data of all
partitions. What depends on it comes behind it: the markers. When these are on disk, CompleteCommit is written; when
that is on disk, the id can begin its next transaction. So the last record of an id always says enough to finish its
transaction, and what stands in the partitions behind PrepareCommit belongs to no other one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from kraftlog.codec.batch_encoder import BatchEncoder
from kraftlog.coordinator.coordinator_partition import coordinator_partition
from kraftlog.log_store.coordinator_runtime import CoordinatorRuntime
from kraftlog.log_store.errors import (
    InvalidTransactionError,
    InvalidTransactionTimeoutError,
    ProducerFencedError,
    StorageError,
    UnknownTopicOrPartitionError,
)
from kraftlog.log_store.group_coordinator import GroupCoordinator
from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.log_store.partition import Partition
from kraftlog.log_store.threads import Threads
from kraftlog.log_store.transaction_records import transaction_key, transaction_record
from kraftlog.log_store.transaction_state import (
    EPOCH_BUMP_VERSION,
    ONGOING,
    PREPARE_COMMIT,
    PREPARED,
    AddPartitions,
    Complete,
    EndTransaction,
    Event,
    Fence,
    InitProducerId,
    TopicPartition,
    TransactionalProducer,
    TransactionState,
    transition,
)
from kraftlog.topics import TRANSACTION_STATE
from kraftlog.types import Buffer

ProducerEpoch: TypeAlias = tuple[int, int]
"""Producer id and epoch."""

LONGEST_TIMEOUT_MS = 900_000  # transaction.max.timeout.ms
EXPIRATION_MS = 7 * 86_400_000  # transactional.id.expiration.ms
EXPIRED_EVERY_MS = 3_600_000  # transaction.remove.expired.transaction.cleanup.interval.ms

_LOGGER = logging.getLogger("kraftlog.log_store")


@dataclass
class _Id:
    """A transactional id.

    Attributes
    ----------
    log_partition : int
        Of ``__transaction_state``; -1 as long as it was not asked for.
    unwritten : TransactionState or None
        The completed state, whose record is written when the markers are on disk.
    marked : set of Partition
        Whose markers may not be on disk.
    is_written : bool
        Whether the record of the state is in the log. The state moves first: an exception between the two, such as that
        of Ctrl-C, leaves it false, and whoever uses the id next writes the record.
    ended : (int, int, bool) or None
        Producer id and epoch that asked last to end a transaction, and whether to commit it.
    continued : (ProducerEpoch, ProducerEpoch) or None
        What the last producer that began had before, if it named it, and what it got.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    log_partition: int = -1
    state: TransactionState | None = None
    unwritten: TransactionState | None = None
    marked: set[Partition] = field(default_factory=set)
    is_written: bool = True
    ended: tuple[int, int, bool] | None = None
    continued: tuple[ProducerEpoch, ProducerEpoch] | None = None


class TransactionCoordinator:
    """The transactional ids of a store; its methods are for any thread.

    Parameters
    ----------
    runtime : CoordinatorRuntime
    groups : GroupCoordinator
        Of the offsets that are committed with a transaction.
    transaction_version : int
        The level of the feature ``transaction.version``.
    threads : Threads or None
        Waits for several files at once; None waits for one behind the other, and lets the next transaction of an id
        wait for the markers of the last one, which otherwise a thread of its own does.
    continues_transactions : bool
        Whether transactions outlive the store.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        groups: GroupCoordinator,
        transaction_version: int,
        threads: Threads | None,
        *,
        continues_transactions: bool = False,
    ) -> None:
        self._runtime = runtime
        self._groups = groups
        self._version = transaction_version
        self._continues = continues_transactions
        self._threads = threads
        # not the same one: a task that waits for an id would keep those from running that its holder waits for
        self._settler = None if threads is None else Threads(1)
        self._ids: dict[str, _Id] = {}
        self._ongoing: dict[str, int] = {}  # when their transactions time out
        self._expires_at = runtime.now() + EXPIRED_EVERY_MS
        self._guard = threading.Lock()

    def load(self, states: Iterable[TransactionState]) -> None:
        """Take states that the log has."""
        for state in states:
            self._take(self._id(state.transactional_id), state)

    def state(self, transactional_id: str) -> TransactionState | None:
        """Return the state of an id; None of one that is not known."""
        return self._known(transactional_id).state

    def includes(self, producer: TransactionalProducer, partitions: frozenset[TopicPartition]) -> bool:
        """Return whether partitions are in the open transaction of a producer, and the record that says so is on disk.

        It takes no lock: as after ``add_partitions``, the transaction may end before the caller writes to them.
        """
        state = self.state(producer.transactional_id)
        is_known = (
            state is not None
            and state.is_ongoing
            and (state.producer_id, state.producer_epoch) == (producer.producer_id, producer.producer_epoch)
            and partitions <= state.partitions
        )
        if not is_known or not self._known(producer.transactional_id).is_written:  # asked later: the state moves first
            return False
        log = self._log_of(producer.transactional_id)
        return log.is_synced or not log.waits_for_disk

    def states(self) -> list[TransactionState]:
        """Return the states of all ids, by id."""
        states = [each.state for _, each in sorted(self._ids.items())]
        return [state for state in states if state is not None]

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, continues: ProducerEpoch | None = None
    ) -> TransactionState:
        """Begin with an id: the producer that had it before is fenced, and its transaction is aborted.

        Parameters
        ----------
        transactional_id : str
        timeout_ms : int
        continues : (int, int), optional
            What the producer has been so far, if it goes on after an error (KIP-360).

        Raises
        ------
        InvalidTransactionTimeoutError
            When the timeout is not between 1 and 15 minutes in milliseconds.
        ProducerFencedError
            When another producer has begun since.
        """
        if not 0 < timeout_ms <= LONGEST_TIMEOUT_MS:
            raise InvalidTransactionTimeoutError(
                f"transactional id {transactional_id!r}: a timeout of {timeout_ms} ms is not between 1 and "
                f"{LONGEST_TIMEOUT_MS}"
            )
        with self._claimed(transactional_id) as entry:
            if continues is not None and entry.state is not None:
                current = _producer_epoch(entry.state)
                if entry.continued == (continues, current):
                    return entry.state  # asked again, because the first response did not reach it
                if continues != current:
                    raise ProducerFencedError(
                        f"transactional id {transactional_id!r}: another producer has begun with it"
                    )
            if entry.state is not None and entry.state.status == ONGOING:
                self._abort(entry)
            elif entry.state is not None and entry.state.status in PREPARED:
                self._complete(entry)  # its markers could not be written before
            needs_id = entry.state is None or entry.state.is_exhausted
            new_id = self._runtime.next_producer_id() if needs_id else -1
            begun = self._write(transactional_id, entry, InitProducerId(timeout_ms, self._runtime.now(), new_id))
            self._log_of(
                transactional_id
            ).sync()  # else a crash could leave records of an epoch that is given out again
            entry.continued = None if continues is None else (continues, _producer_epoch(begun))
            return begun

    @property
    def transaction_version(self) -> int:
        """The level of the feature ``transaction.version``."""
        return self._version

    def add_partitions(
        self,
        state: TransactionalProducer,
        partitions: frozenset[TopicPartition],
        transaction_version: int | None = None,
    ) -> TransactionState:
        """Take partitions into the transaction of a producer, and begin it when it has none.

        Parameters
        ----------
        state : TransactionalProducer
        partitions : frozenset of (str, int)
        transaction_version : int, optional
            Version with which the producer writes, if it is lower than that of the store.
        """
        self.abort_timed_out()
        version = self._version if transaction_version is None else min(transaction_version, self._version)
        entry = self._known(state.transactional_id)
        with entry.lock:
            now = self._runtime.now()
            event = AddPartitions(state.producer_id, state.producer_epoch, partitions, now, version)
            before = entry.state
            added = self._write(state.transactional_id, entry, event)
            if self._continues and added is not before:  # else a crash could leave records that no commit includes
                self._log_of(state.transactional_id).sync()
            return added

    def end(
        self, state: TransactionalProducer, *, is_commit: bool, on_decision: Callable[[], None] | None = None
    ) -> TransactionState:
        """Commit or abort the transaction of a producer; return the state with which its next one begins.

        When an exception such as that of Ctrl-C has come out of it, it can be called again, and goes on where it was.
        PrepareCommit is the state before its record is appended: from then on nothing can abort the transaction.

        Parameters
        ----------
        state : TransactionalProducer
        is_commit : bool
        on_decision : callable, optional
            Is called when PrepareCommit is on disk, before the first marker is written.

        Raises
        ------
        ProducerFencedError
            When another producer has begun with the id.
        InvalidTransactionError
            When there is nothing to end, or an abort comes behind the decision to commit.
        StorageError
            When the disk fails. Whether a commit counts is known when the store has been opened again.
        """
        self.abort_timed_out()
        request = state.producer_id, state.producer_epoch, is_commit
        entry = self._known(state.transactional_id)
        with entry.lock:
            if not _has_ended(entry, request):
                self._check_undecided(entry, state)
                new_id = -1
                if entry.state is not None and entry.state.is_exhausted:
                    new_id = self._runtime.next_producer_id()
                event = EndTransaction(state.producer_id, state.producer_epoch, is_commit, self._runtime.now(), new_id)
                prepared = transition(state.transactional_id, entry.state, event)
                if is_commit:
                    self._sync(self._there(prepared))
                self._settle(entry)
                self._move(entry, prepared, request)
            assert entry.state is not None
            if entry.state.status not in PREPARED:
                return entry.state  # asked again, behind an exception that came when all was done
            self._write_state(entry)
            if is_commit:
                self._log_of(state.transactional_id).sync()
            if on_decision is not None:
                on_decision()
            completed = self._complete(entry)
            log = self._log_of(state.transactional_id)
            if not log.waits_for_disk:
                self._settle(entry)  # at once: a thread would take longer, and keep this one from going on
        self._runtime.note_write(log)
        if self._settler is not None and log.waits_for_disk:
            with suppress(RuntimeError):  # the store is being closed, which does it as well
                self._settler.submit(self._settle_one, state.transactional_id)
        return completed

    def has_decided(self, state: TransactionalProducer) -> bool:
        """Whether the commit of a producer's transaction may be decided: it can be committed again, and not aborted."""
        entry = self._known(state.transactional_id)
        with entry.lock:
            return _has_ended(entry, (state.producer_id, state.producer_epoch, True))

    @staticmethod
    def _check_undecided(entry: _Id, state: TransactionalProducer) -> None:
        if _has_ended(entry, (state.producer_id, state.producer_epoch, True)):
            raise InvalidTransactionError(
                f"transactional id {state.transactional_id!r}: the commit of the transaction was interrupted when it "
                "was decided; it cannot be aborted, call commit_transaction again"
            )

    def abort(self, transactional_id: str) -> None:
        """Abort the transaction that an id has under way, and fence its producer, as an administrator does.

        Raises
        ------
        InvalidTransactionError
            When it has none.
        """
        entry = self._known(transactional_id)
        with entry.lock:
            if entry.state is None or entry.state.status != ONGOING:
                raise InvalidTransactionError(f"transactional id {transactional_id!r} has no transaction under way")
            self._abort(entry)

    def abort_timed_out(self) -> None:
        """Abort transactions that have taken longer than their producers allow; hourly, ids expire as well.

        What fails is of the disk, and concerns those whose transactions these are: they meet it themselves.
        """
        now = self._runtime.now()
        for name in [name for name, end in list(self._ongoing.items()) if end < now]:
            entry = self._known(name)
            with entry.lock, _logged(f"transactional id {name!r}: its transaction has timed out"):
                if self._ongoing.get(name, now) < now:
                    self._abort(entry)
        if now >= self._expires_at:
            with _logged("transactional ids expire"):
                self.expire()

    def expire(self) -> list[str]:
        """Remove the ids that have not been used for a week, as Kafka does; return them.

        Their records end in tombstones, and another producer with such an id gets a new producer id.
        """
        now = self._runtime.now()
        self._expires_at, oldest = now + EXPIRED_EVERY_MS, now - EXPIRATION_MS
        expired = []
        for name in sorted(self._ids):
            entry = self._known(name)
            with entry.lock:
                state = entry.state
                if state is not None and not state.is_pending and state.last_update_timestamp < oldest:
                    self._settle(entry)
                    self._append(name, KeyAndValue(transaction_key(name), None))
                    entry.state = None
                    expired.append(name)
                if entry.state is None:
                    self._forget(name, entry)
        return expired

    def recover(self) -> None:
        """Finish what is prepared, and abort what is under way, unless its producer is still there to end it."""
        for name in sorted(self._ids):
            entry = self._known(name)
            with entry.lock:
                if entry.state is not None and entry.state.status in PREPARED:
                    self._complete(entry)
                elif entry.state is not None and entry.state.status == ONGOING and not self._continues:
                    self._abort(entry)

    def end_left_open(self, partition: Partition) -> None:
        """Abort transactions that are open in a partition, and that no transactional id knows of.

        Such a one was begun shortly before a crash: its records came to the disk, and its transactional id did not.
        """
        states = {state.producer_id: state for state in self.states()}
        for producer_id, entry in sorted(partition.producers.open_transactions().items()):
            state = states.get(producer_id)
            if state is not None and state.is_ongoing and partition.key in state.partitions:
                continue
            epoch = max(entry.producer_epoch, 0 if state is None else state.producer_epoch)
            now = self._runtime.now()
            partition.append_marker(producer_id, epoch, is_commit=False, raises_epoch=False, timestamp_ms=now)
            self._groups.end(producer_id, epoch, is_commit=False)

    def settle(self) -> None:
        """Wait until the markers of all transactions are on disk, and write that these are complete."""
        for name in sorted(self._ids):
            self._settle_one(name)

    def close(self) -> None:
        """End the thread; what it has not done is done when the store is opened again."""
        if self._settler is not None:
            self._settler.shutdown(drops_waiting=True)

    def _settle_one(self, transactional_id: str) -> None:
        entry = self._known(transactional_id)
        with entry.lock:
            self._settle(entry)

    def _abort(self, entry: _Id) -> None:
        assert entry.state is not None
        prepared = transition(entry.state.transactional_id, entry.state, Fence(self._runtime.now()))
        self._settle(entry)
        self._move(entry, prepared)
        self._complete(entry)

    def _complete(self, entry: _Id) -> TransactionState:
        """Write the markers of a prepared transaction; those that are there are not written again.

        A partition gets one even if nothing was written there: what its producer sends too late is refused then.
        """
        prepared = entry.state
        assert prepared is not None
        is_commit = prepared.status == PREPARE_COMMIT
        self._write_state(entry)
        if is_commit:  # also when an exception came out of the wait for it
            self._log_of(prepared.transactional_id).sync()
        raises_epoch = prepared.transaction_version >= EPOCH_BUMP_VERSION
        now = self._runtime.now()
        for partition in self._there(prepared):
            entry.marked.add(partition)
            partition.append_marker(
                prepared.producer_id,
                prepared.producer_epoch,
                is_commit=is_commit,
                raises_epoch=raises_epoch,
                timestamp_ms=now,
            )
        self._groups.end(prepared.producer_id, prepared.producer_epoch - raises_epoch, is_commit=is_commit)
        completed = transition(prepared.transactional_id, prepared, Complete(now))
        entry.unwritten = completed  # first: else an exception could leave a state that nobody writes
        self._take(entry, completed)
        return completed

    def _there(self, state: TransactionState) -> list[Partition]:
        """Return the partitions of a transaction, without those whose topics were deleted meanwhile."""
        partitions = []
        for key in sorted(state.partitions):
            with suppress(UnknownTopicOrPartitionError):
                partitions.append(self._runtime.partition(key))
        return partitions

    def _take(self, entry: _Id, state: TransactionState) -> None:
        entry.state = state
        if state.is_ongoing:
            self._ongoing[state.transactional_id] = state.start_timestamp + state.timeout_ms
        else:
            self._ongoing.pop(state.transactional_id, None)

    def _write(self, transactional_id: str, entry: _Id, event: Event) -> TransactionState:
        state = transition(transactional_id, entry.state, event)
        if state is not entry.state:
            self._settle(entry)
            self._move(entry, state)
        self._write_state(entry)
        return state

    def _move(self, entry: _Id, state: TransactionState, ended: tuple[int, int, bool] | None = None) -> None:
        """Take a state whose record is yet to be written; ``ended`` is the request of a producer that led to it."""
        entry.is_written = False
        entry.ended = ended
        self._take(entry, state)

    def _write_state(self, entry: _Id) -> None:
        """Append the record of the state, unless it is there."""
        if not entry.is_written and entry.state is not None:
            self._append_state(entry.state)
            entry.is_written = True

    def _settle(self, entry: _Id) -> None:
        """Wait for the markers of the last transaction, write that it is complete, and wait for that."""
        self._sync(sorted(entry.marked, key=lambda partition: partition.key))
        completed = entry.unwritten
        if completed is not None:
            self._append_state(completed)
            self._log_of(completed.transactional_id).sync()
        entry.unwritten = None  # behind the disk: an exception before it lets the next one do it again
        entry.marked.clear()

    def _append_state(self, state: TransactionState) -> None:
        self._append(state.transactional_id, transaction_record(state, self._version))

    def _append(self, transactional_id: str, record: KeyAndValue) -> None:
        def encode(base_offset: int, leader_epoch: int) -> Buffer:
            now = self._runtime.now()
            encoder = BatchEncoder(base_offset=base_offset, partition_leader_epoch=leader_epoch, timestamp_ms=now)
            encoder.write_records([record.value], [record.key])
            return encoder.finish()

        self._log_of(transactional_id).append_records(encode)

    def _sync(self, partitions: list[Partition]) -> None:
        """Wait until all that was appended to partitions is on disk."""
        waiting = [partition for partition in partitions if not partition.is_synced]
        if self._threads is None or len(waiting) < 2:
            for partition in waiting:
                partition.sync()
            return
        for done in [self._threads.submit(partition.sync) for partition in waiting]:
            done.result()

    def _log_of(self, transactional_id: str) -> Partition:
        entry = self._known(transactional_id)
        if entry.log_partition < 0:
            count = self._runtime.partition_count(TRANSACTION_STATE)
            entry.log_partition = coordinator_partition(transactional_id, count)
        return self._runtime.partition((TRANSACTION_STATE, entry.log_partition))

    def _id(self, transactional_id: str) -> _Id:
        with self._guard:
            return self._ids.setdefault(transactional_id, _Id())

    def _known(self, transactional_id: str) -> _Id:
        """Return an id, or one without a state, which is not kept: clients may name any."""
        return self._ids.get(transactional_id) or _Id()

    @contextmanager
    def _claimed(self, transactional_id: str) -> Iterator[_Id]:
        """Hold an id that may be new; without a state at the end it is not kept."""
        while True:
            entry = self._id(transactional_id)
            with entry.lock:
                if self._ids.get(transactional_id) is not entry:
                    continue  # it has expired since, and another thread may hold the one that is in its place
                try:
                    yield entry
                finally:
                    if entry.state is None:
                        self._forget(transactional_id, entry)
                return

    def _forget(self, transactional_id: str, entry: _Id) -> None:
        """Remove an id without a state, whose lock is held."""
        with self._guard:
            if self._ids.get(transactional_id) is entry:
                del self._ids[transactional_id]


def _producer_epoch(state: TransactionState) -> ProducerEpoch:
    return state.producer_id, state.producer_epoch


def _has_ended(entry: _Id, request: tuple[int, int, bool]) -> bool:
    """Whether this was asked for, and the state has moved since: a transaction under way was not ended by it."""
    return entry.ended == request and entry.state is not None and entry.state.status != ONGOING


@contextmanager
def _logged(what: str) -> Iterator[None]:
    """Log that the disk has failed in work which is not the caller's."""
    try:
        yield
    except StorageError as error:
        _LOGGER.warning("%s, but the disk has failed: %s", what, error)
