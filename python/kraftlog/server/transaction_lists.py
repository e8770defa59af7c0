"""Requests of administrators that describe transactions and producers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from kraftlog.errors import KraftlogError
from kraftlog.log_store.store import LogStore
from kraftlog.log_store.transaction_state import NAMES, TransactionState
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.server import Handler
from kraftlog.topics import TopicPartition
from kraftlog.transactions.producer_state import ProducerState

DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
_NONE = -1


class Transactions(Protocol):
    """Transactional ids and producers, of a store or of a log that is only read; may wait for a disk."""

    @property
    def now(self) -> int:
        """The time to which ages of transactions are counted, in milliseconds."""

    @property
    def transactional_ids(self) -> Sequence[TransactionState]:
        """The state of each transactional id."""

    def producers(self, of: TopicPartition) -> Sequence[ProducerState]:
        """Return the producers of a partition.

        Raises
        ------
        KraftlogError
            When there is no such partition.
        """


class StoredTransactions:
    """The transactional ids and the producers of a store.

    Parameters
    ----------
    store : LogStore
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store

    @property
    def now(self) -> int:
        """The time to which ages of transactions are counted, in milliseconds."""
        return self._store.parts.clock()

    @property
    def transactional_ids(self) -> Sequence[TransactionState]:
        """The state of each transactional id."""
        return self._store.transactional_ids()

    def producers(self, of: TopicPartition) -> Sequence[ProducerState]:
        """Return the producers of a partition."""
        return self._store.parts.partition_of(of).producer_states()


class TransactionLists:
    """Answers ``ListTransactions``, ``DescribeTransactions`` and ``DescribeProducers``.

    Parameters
    ----------
    transactions : Transactions
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            DESCRIBE_PRODUCERS: self._describe_producers,
            DESCRIBE_TRANSACTIONS: self._describe_transactions,
            LIST_TRANSACTIONS: self._list_transactions,
        }

    async def _list_transactions(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        unknown = [name for name in values["state_filters"] if name not in NAMES]
        try:
            pattern = re.compile(values["transactional_id_pattern"] or "")
        except re.error:
            return {"error_code": ErrorCode.INVALID_REGULAR_EXPRESSION}
        states = await asyncio.to_thread(lambda: self._transactions.transactional_ids)
        rows = [
            {
                "transactional_id": state.transactional_id,
                "producer_id": state.producer_id,
                "transaction_state": state.status_name,
            }
            for state in states
            if (not values["state_filters"] or state.status_name in values["state_filters"])
            and (not values["producer_id_filters"] or state.producer_id in values["producer_id_filters"])
            and self._age_ms(state) > values["duration_filter"]
            and (not pattern.pattern or pattern.fullmatch(state.transactional_id))
        ]
        return {"unknown_state_filters": unknown, "transaction_states": rows}

    def _age_ms(self, state: TransactionState) -> int:
        """Return for how long a transaction is open; 0 without one."""
        return self._transactions.now - state.start_timestamp if state.is_pending else 0

    async def _describe_transactions(self, request: Request) -> Mapping[str, Any]:
        every = await asyncio.to_thread(lambda: self._transactions.transactional_ids)
        states = {state.transactional_id: state for state in every}
        rows = []
        for name in request.values["transactional_ids"]:
            state = states.get(name)
            if state is None:
                code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
                rows.append({"transactional_id": name, "error_code": code, "transaction_state": ""})
            else:
                rows.append(_described(state))
        return {"transaction_states": rows}

    async def _describe_producers(self, request: Request) -> Mapping[str, Any]:
        return {"topics": await asyncio.to_thread(lambda: list(self._producers(request.values)))}

    def _producers(self, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for topic in values["topics"]:
            partitions = [self._producers_of(topic["name"], number) for number in topic["partition_indexes"]]
            yield {"name": topic["name"], "partitions": partitions}

    def _producers_of(self, topic: str, number: int) -> dict[str, Any]:
        try:
            states = self._transactions.producers(TopicPartition(topic, number))
        except KraftlogError as error:
            return {"partition_index": number, "error_code": error.kafka_code, "error_message": str(error)}
        producers = [
            {
                "producer_id": state.producer_id,
                "producer_epoch": state.producer_epoch,
                "last_sequence": state.last_sequence,
                "last_timestamp": state.last_timestamp,
                "coordinator_epoch": state.coordinator_epoch,
                "current_txn_start_offset": _NONE
                if state.current_transaction_first_offset is None
                else state.current_transaction_first_offset,
            }
            for state in states
        ]
        return {"partition_index": number, "active_producers": producers}


def _described(state: TransactionState) -> dict[str, Any]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(state.partitions):
        topics.setdefault(topic, []).append(partition)
    return {
        "transactional_id": state.transactional_id,
        "transaction_state": state.status_name,
        "transaction_timeout_ms": state.timeout_ms,
        "transaction_start_time_ms": state.start_timestamp,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "topics": [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()],
    }
