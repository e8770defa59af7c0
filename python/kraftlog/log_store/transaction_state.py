"""The transactions of one transactional id: a function of a state and an event, without files, clocks or locks.

States and fields are those of Kafka's coordinator and of ``TransactionLogValue``. Each state that ``transition``
returns is a record of ``__transaction_state``. With transaction version 2 the end of a transaction raises the epoch of
its producer; where epochs are exhausted, a new producer id takes its place when the transaction is complete.

Specification: "Transactions in Apache Kafka", KIP-98, KIP-890.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from kraftlog.log_store.errors import InvalidProducerIdMappingError, InvalidTransactionError, ProducerFencedError

TopicPartition = tuple[str, int]

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD = range(7)
NAMES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead")
PREPARED = (PREPARE_COMMIT, PREPARE_ABORT)
LAST_EPOCH = 2**15 - 1  # reserved for ending transactions; a producer never writes with it
NONE = -1
EPOCH_BUMP_VERSION = 2  # since this transaction.version each end of a transaction raises the epoch (KIP-890)


class TransactionalProducer(Protocol):
    """A producer that claims a transactional id."""

    @property
    def transactional_id(self) -> str:
        """The id."""

    @property
    def producer_id(self) -> int:
        """As in the batch header."""

    @property
    def producer_epoch(self) -> int:
        """As in the batch header."""


@dataclass(frozen=True, slots=True)
class TransactionState:
    """The state of a transactional id.

    Attributes
    ----------
    partitions : frozenset of (str, int)
        Partitions that the transaction has written to.
    start_timestamp, last_update_timestamp : int
        In milliseconds; -1 without a transaction.
    next_producer_id : int
        Id of the producer after the prepared transaction is complete; -1: unchanged.
    transaction_version : int
        Version with which the producer writes; 0 until its first transaction.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: int = EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_timestamp: int = NONE
    last_update_timestamp: int = NONE
    previous_producer_id: int = NONE
    next_producer_id: int = NONE
    transaction_version: int = 0

    @property
    def status_name(self) -> str:
        """Kafka's name of the status."""
        return NAMES[self.status]

    @property
    def is_ongoing(self) -> bool:
        """Whether a transaction is open."""
        return self.status == ONGOING

    @property
    def is_pending(self) -> bool:
        """Whether a transaction is open or about to end."""
        return self.status in (ONGOING, *PREPARED)

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left for another transaction."""
        return self.producer_epoch >= LAST_EPOCH - 1


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """A producer starts with the id. ``new_producer_id`` is for a new id, or one whose epochs are exhausted."""

    timeout_ms: int
    timestamp: int
    new_producer_id: int = NONE


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """A producer is about to write to partitions."""

    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    timestamp: int
    transaction_version: int


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """A producer commits or aborts. ``new_producer_id`` is for a producer whose epochs are exhausted."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    timestamp: int
    new_producer_id: int = NONE


@dataclass(frozen=True, slots=True)
class Fence:
    """The open transaction is aborted, and its producer is fenced."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class Complete:
    """The markers of a prepared transaction are in all partitions."""

    timestamp: int


Event = InitProducerId | AddPartitions | EndTransaction | Fence | Complete


def transition(transactional_id: str, state: TransactionState | None, event: Event) -> TransactionState:
    """Return the state after an event; the same state if there is nothing to do, as for a repeated event.

    Parameters
    ----------
    transactional_id : str
    state : TransactionState or None
        None for an unknown id.
    event : Event

    Raises
    ------
    InvalidProducerIdMappingError
        When the id is unknown, or belongs to another producer id.
    ProducerFencedError
        When the epoch is not that of the last producer.
    InvalidTransactionError
        When the state does not allow the event.

    Examples
    --------
    >>> state = transition("etl", None, InitProducerId(60_000, 1, new_producer_id=7))
    >>> state = transition("etl", state, AddPartitions(7, 0, frozenset({("orders", 0)}), 2, 2))
    >>> state = transition("etl", state, EndTransaction(7, 0, True, 3))
    >>> NAMES[state.status], state.producer_epoch
    ('PrepareCommit', 1)
    >>> NAMES[transition("etl", state, Complete(4)).status]
    'CompleteCommit'
    """
    if isinstance(event, InitProducerId):
        return _begun(transactional_id, state, event)
    if state is None:
        raise InvalidProducerIdMappingError(
            f"transactional id {transactional_id!r}: no producer id; it is unknown or expired"
        )
    if isinstance(event, Complete):
        return _complete(state, event)
    if isinstance(event, Fence):
        return _fenced(state, event)
    _check_producer(state, event.producer_id, event.producer_epoch)
    return _added(state, event) if isinstance(event, AddPartitions) else _prepared(state, event)


def is_ended_again(state: TransactionState, producer: TransactionalProducer, *, is_commit: bool) -> bool:
    """Whether a producer asks to end a transaction that has ended so, because the first response did not reach it."""
    if state.status != (COMPLETE_COMMIT if is_commit else COMPLETE_ABORT):
        return False
    if state.transaction_version < EPOCH_BUMP_VERSION:
        return (producer.producer_id, producer.producer_epoch) == (state.producer_id, state.producer_epoch)
    if producer.producer_id == state.producer_id:
        return producer.producer_epoch == state.producer_epoch - 1
    return producer.producer_id == state.previous_producer_id and state.producer_epoch == 0


def _begun(transactional_id: str, state: TransactionState | None, event: InitProducerId) -> TransactionState:
    if state is None:
        return TransactionState(
            transactional_id,
            event.new_producer_id,
            0,
            event.timeout_ms,
            last_update_timestamp=event.timestamp,
            previous_producer_id=event.new_producer_id,
        )
    if state.status in (ONGOING, *PREPARED):
        raise InvalidTransactionError(f"{_name(state)} still has an open transaction; end it first")
    begun = replace(
        state,
        status=EMPTY,
        partitions=frozenset(),
        timeout_ms=event.timeout_ms,
        start_timestamp=NONE,
        last_update_timestamp=event.timestamp,
    )
    if not state.is_exhausted:
        return replace(begun, producer_epoch=state.producer_epoch + 1, previous_producer_id=state.producer_id)
    return replace(begun, producer_id=event.new_producer_id, producer_epoch=0, previous_producer_id=state.producer_id)


def _added(state: TransactionState, event: AddPartitions) -> TransactionState:
    if state.status in PREPARED:
        raise InvalidTransactionError(f"{_name(state)} is about to end its transaction")
    if state.status == ONGOING:
        if event.partitions <= state.partitions:
            return state
        partitions, start = state.partitions | event.partitions, state.start_timestamp
    else:
        partitions, start = event.partitions, event.timestamp
    return replace(
        state,
        status=ONGOING,
        partitions=partitions,
        start_timestamp=start,
        last_update_timestamp=event.timestamp,
        previous_producer_id=state.producer_id,
        transaction_version=event.transaction_version,
    )


def _prepared(state: TransactionState, event: EndTransaction) -> TransactionState:
    if state.status != ONGOING:
        raise InvalidTransactionError(f"{_name(state)} has no open transaction")
    prepared = replace(
        state,
        status=PREPARE_COMMIT if event.is_commit else PREPARE_ABORT,
        last_update_timestamp=event.timestamp,
        previous_producer_id=state.producer_id,
    )
    if state.transaction_version < EPOCH_BUMP_VERSION:
        return prepared
    following = event.new_producer_id if state.is_exhausted else NONE
    return replace(prepared, producer_epoch=state.producer_epoch + 1, next_producer_id=following)


def _fenced(state: TransactionState, event: Fence) -> TransactionState:
    if state.status != ONGOING:
        raise InvalidTransactionError(f"{_name(state)} has no open transaction")
    return replace(
        state,
        status=PREPARE_ABORT,
        producer_epoch=min(state.producer_epoch + 1, LAST_EPOCH),
        last_update_timestamp=event.timestamp,
        previous_producer_id=state.producer_id,
    )


def _complete(state: TransactionState, event: Complete) -> TransactionState:
    if state.status not in PREPARED:
        return state
    complete = replace(
        state,
        status=COMPLETE_COMMIT if state.status == PREPARE_COMMIT else COMPLETE_ABORT,
        partitions=frozenset(),
        last_update_timestamp=event.timestamp,
    )
    if state.next_producer_id == NONE:
        return complete
    return replace(
        complete,
        producer_id=state.next_producer_id,
        producer_epoch=0,
        previous_producer_id=state.producer_id,
        next_producer_id=NONE,
    )


def _check_producer(state: TransactionState, producer_id: int, producer_epoch: int) -> None:
    if (producer_id, producer_epoch) == (state.producer_id, state.producer_epoch):
        return
    if producer_id not in (state.producer_id, state.previous_producer_id):
        raise InvalidProducerIdMappingError(
            f"{_name(state)} belongs to producer {state.producer_id}, not {producer_id}"
        )
    raise ProducerFencedError(
        f"{_name(state)} has epoch {state.producer_epoch} of producer {state.producer_id}; "
        f"epoch {producer_epoch} of producer {producer_id} is fenced"
    )


def _name(state: TransactionState) -> str:
    return f"transactional id {state.transactional_id!r} ({NAMES[state.status]})"
