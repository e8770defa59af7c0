"""Requests of producers for their ids and transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kraftlog.log_store.errors import InvalidProducerEpochError, ProducerFencedError
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.store import LogStore
from kraftlog.log_store.transaction_state import NONE, TopicPartition, is_ended_again
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.client_transactions import (
    WITH_EPOCH_BUMP,
    WITHOUT_EPOCH_BUMP,
    ClientProducer,
    ClientTransactions,
)
from kraftlog.server.group_requests import GroupRequests
from kraftlog.server.outcome import Outcome
from kraftlog.server.readable_log import NO_TOPIC_ID, ReadableLog
from kraftlog.server.server import Handler
from kraftlog.topics import INTERNAL_TOPICS

INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TRANSACTION, COMMIT_OFFSETS = 22, 24, 25, 26, 28
_KNOWS_FENCED = {INIT_PRODUCER_ID: 4, ADD_PARTITIONS: 2, ADD_OFFSETS: 2, END_TRANSACTION: 2}  # first versions (KIP-588)
_ADDS_OF_BROKERS = 4  # first version of AddPartitionsToTxn that only brokers send
_ENDS_WITH_BUMP, _COMMITS_WITH_BUMP = 5, 5  # first versions of EndTxn and TxnOffsetCommit of newer clients (KIP-890)
_MOST_METADATA = 4096  # offset.metadata.max.bytes


class TransactionRequests:
    """Answers the requests of transactional and idempotent producers.

    Parameters
    ----------
    store : LogStore
    log : ReadableLog
        The topics of the store.
    groups : GroupRequests
        The groups whose offsets are committed in transactions.
    """

    def __init__(self, store: LogStore, log: ReadableLog, groups: GroupRequests) -> None:
        self._store = store
        self._log = log
        self._groups = groups
        self._transactions = ClientTransactions(store)

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            INIT_PRODUCER_ID: self._init,
            ADD_PARTITIONS: self._add_partitions,
            ADD_OFFSETS: self._add_offsets,
            END_TRANSACTION: self._end,
            COMMIT_OFFSETS: self._commit_offsets,
        }

    # producer ids

    async def _init(self, request: Request) -> Mapping[str, Any]:
        return await _answer(request, lambda: self._begun(request.values))

    def _begun(self, values: Mapping[str, Any]) -> dict[str, Any]:
        transactional_id = values["transactional_id"]
        if transactional_id == "":
            return {"error_code": ErrorCode.INVALID_REQUEST, "producer_id": NONE, "producer_epoch": NONE}
        if values["enable2_pc"] or values["keep_prepared_txn"]:  # KIP-939
            return {"error_code": ErrorCode.UNSUPPORTED_VERSION, "producer_id": NONE, "producer_epoch": NONE}
        if transactional_id is None:
            return {"producer_id": self._store.parts.new_producer_id(), "producer_epoch": 0}
        continues = None if values["producer_id"] == NONE else (values["producer_id"], values["producer_epoch"])
        state = self._store.parts.transactions.init_producer_id(
            transactional_id, values["transaction_timeout_ms"], continues
        )
        return {"producer_id": state.producer_id, "producer_epoch": state.producer_epoch}

    # transactions

    async def _add_partitions(self, request: Request) -> Mapping[str, Any]:
        if request.version >= _ADDS_OF_BROKERS:
            return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
        values = request.values
        topics = values["v3_and_below_topics"]
        keys = [(topic["name"], number) for topic in topics for number in topic["partitions"]]
        codes = {key: self._code_of_partition(key) for key in keys}
        if any(codes.values()):  # all of them or none
            codes = {key: code or ErrorCode.OPERATION_NOT_ATTEMPTED for key, code in codes.items()}
        else:
            producer = ClientProducer(
                values["v3_and_below_transactional_id"],
                values["v3_and_below_producer_id"],
                values["v3_and_below_producer_epoch"],
            )
            answer = await _answer(request, lambda: self._transactions.add(producer, keys, WITHOUT_EPOCH_BUMP))
            codes = dict.fromkeys(keys, answer.get("error_code", ErrorCode.NONE))
        return {
            "results_by_topic_v3_and_below": [
                {
                    "name": topic["name"],
                    "results_by_partition": [
                        {"partition_index": number, "partition_error_code": codes[topic["name"], number]}
                        for number in topic["partitions"]
                    ],
                }
                for topic in topics
            ]
        }

    def _code_of_partition(self, key: TopicPartition) -> int:
        if key[0] in INTERNAL_TOPICS:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topic = self._log.topic(key[0], NO_TOPIC_ID)
        is_known = topic is not None and key[1] in topic.partitions
        return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def _add_offsets(self, request: Request) -> Mapping[str, Any]:
        producer, group_id = _producer(request.values), request.values["group_id"]

        def add() -> None:
            self._transactions.add(producer, [self._offsets_of(group_id)], WITHOUT_EPOCH_BUMP)

        return await _answer(request, add)

    def _offsets_of(self, group_id: str) -> TopicPartition:
        """Return the partition of a group's offsets, which exists before a transaction names it."""
        key = self._store.parts.groups.partition_for(group_id)
        self._store.parts.partition_of(key)
        return key

    async def _end(self, request: Request) -> Mapping[str, Any]:
        return await _answer(request, lambda: self._ended(request))

    def _ended(self, request: Request) -> dict[str, Any]:
        producer, is_commit = _producer(request.values), request.values["committed"]
        transactions = self._store.parts.transactions
        state = transactions.state(producer.transactional_id)
        bumps = request.version >= _ENDS_WITH_BUMP
        if state is not None and is_ended_again(state, producer, is_commit=is_commit):
            ended = state
        else:
            if bumps and not is_commit and state is not None and not state.is_pending:
                # all that it sent was refused; its epoch ends nevertheless
                self._transactions.add(producer, [], WITH_EPOCH_BUMP)
            ended = transactions.end(producer, is_commit=is_commit)
        return {"producer_id": ended.producer_id, "producer_epoch": ended.producer_epoch} if bumps else {}

    # offsets

    async def _commit_offsets(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        code = self._groups.code_of_transactional_commit(values)
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        codes: dict[TopicPartition, int] = {}
        for topic in values["topics"]:
            found = self._log.topic(topic["name"], NO_TOPIC_ID)
            for one in topic["partitions"]:
                key = topic["name"], one["partition_index"]
                codes[key] = code
                if found is None or one["partition_index"] not in found.partitions:
                    codes[key] = code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif len(one["committed_metadata"] or "") > _MOST_METADATA:
                    codes[key] = code or ErrorCode.OFFSET_METADATA_TOO_LARGE
                elif not code:
                    offsets[key] = OffsetAndMetadata(
                        one["committed_offset"], one["committed_metadata"] or "", one["committed_leader_epoch"]
                    )
        if offsets:
            answer = await _answer(request, lambda: self._write_offsets(request, offsets))
            codes |= dict.fromkeys(offsets, answer.get("error_code", ErrorCode.NONE))
        return {
            "topics": [
                {
                    "name": topic["name"],
                    "partitions": [
                        {
                            "partition_index": one["partition_index"],
                            "error_code": codes[topic["name"], one["partition_index"]],
                        }
                        for one in topic["partitions"]
                    ],
                }
                for topic in values["topics"]
            ]
        }

    def _write_offsets(self, request: Request, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        producer, group_id = _producer(request.values), request.values["group_id"]
        key = self._offsets_of(group_id)
        if request.version >= _COMMITS_WITH_BUMP:
            self._transactions.add(producer, [key], WITH_EPOCH_BUMP)
        stamp = Stamp(producer.producer_id, producer.producer_epoch, NONE, is_transactional=True)
        self._store.parts.groups.commit_in_transaction(
            GroupMetadata(group_id), offsets, stamp, partial(self._transactions.check, producer, key)
        )
        self._store.parts.partition_of(key).sync()  # the transaction may be committed after a crash


def _producer(values: Mapping[str, Any]) -> ClientProducer:
    return ClientProducer(values["transactional_id"], values["producer_id"], values["producer_epoch"])


async def _answer(request: Request, run: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
    """Run in a thread; return the fields of the response, or the error of the protocol."""
    outcome = await asyncio.to_thread(Outcome.of, run)
    has_coordinator = request.values.get("transactional_id", "") is not None  # and not only asks for a producer id
    code = outcome.coordinator_code if has_coordinator else outcome.code
    if isinstance(outcome.error, ProducerFencedError) and request.version < _KNOWS_FENCED.get(request.api.key, 0):
        code = InvalidProducerEpochError.kafka_code
    return {"error_code": code} | (outcome.value or {})
