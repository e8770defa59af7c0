"""The transactions of clients in a store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kraftlog.disk.waiting import about_to_wait, must_not_wait
from kraftlog.log_store.errors import InvalidProducerIdMappingError, InvalidTransactionError, ProducerFencedError
from kraftlog.log_store.store import LogStore
from kraftlog.log_store.transaction_state import TopicPartition

WITHOUT_EPOCH_BUMP, WITH_EPOCH_BUMP = 0, 2  # versions of transactions of older and newer clients (KIP-890)


@dataclass(frozen=True)
class ClientProducer:
    """A producer, as a request names it.

    Attributes
    ----------
    transactional_id : str
    producer_id, producer_epoch : int
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int


class ClientTransactions:
    """Takes partitions into transactions, or checks that they are in one.

    Parameters
    ----------
    store : LogStore
    """

    def __init__(self, store: LogStore) -> None:
        self._coordinator = store.parts.transactions

    def add(self, producer: ClientProducer, partitions: Iterable[TopicPartition], transaction_version: int) -> None:
        """Take partitions into the transaction of a producer; begin it if it has none.

        A thread that must not wait only finds them in it, as they are from the second batch on.

        Raises
        ------
        StoreError
            When another producer has the id, or the transaction is about to end.
        """
        added = frozenset(partitions)
        if must_not_wait():
            if not self._coordinator.includes(producer, added):
                about_to_wait()
            return
        self._coordinator.add_partitions(producer, added, transaction_version)

    def check(self, producer: ClientProducer, partition: TopicPartition) -> None:
        """Check that a partition is in the open transaction of a producer, which older clients add it to first.

        It is called by the append to the partition: earlier, the marker of the transaction could still come before the
        batch. For it takes no lock, and the state of a transaction moves before its markers are appended.

        Raises
        ------
        InvalidProducerIdMappingError, ProducerFencedError, InvalidTransactionError
        """
        name = f"transactional id {producer.transactional_id!r}"
        state = self._coordinator.state(producer.transactional_id)
        if state is None or state.producer_id != producer.producer_id:
            raise InvalidProducerIdMappingError(f"{name} does not belong to producer {producer.producer_id}")
        if state.producer_epoch != producer.producer_epoch:
            raise ProducerFencedError(
                f"{name} has epoch {state.producer_epoch}; epoch {producer.producer_epoch} is fenced"
            )
        if not state.is_ongoing or partition not in state.partitions:
            raise InvalidTransactionError(f"{name}: {'-'.join(map(str, partition))} is not in its transaction")
