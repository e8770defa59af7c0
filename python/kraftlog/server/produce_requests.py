"""Requests of producers that write records."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from kraftlog.disk.waiting import about_to_wait, must_not_wait
from kraftlog.log_store.errors import InvalidProducerEpochError, ProducerFencedError, UnknownTopicOrPartitionError
from kraftlog.log_store.produced_batch import InvalidBatchError, ProducedBatch
from kraftlog.log_store.store import LogStore
from kraftlog.log_store.topics import Topic, check_not_internal
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.client_transactions import WITH_EPOCH_BUMP, ClientProducer, ClientTransactions
from kraftlog.server.in_place import in_place
from kraftlog.server.outcome import Outcome, fields_of
from kraftlog.server.readable_log import NO_TOPIC_ID, ReadableLog, ReadableTopic
from kraftlog.server.server import ConnectionEndedError, Handler
from kraftlog.types import Buffer

PRODUCE = 0
_ACKS = (-1, 0, 1)
_WAITS_FOR_DISK = -1
_ADDS_PARTITIONS = 12  # since this version the request itself takes partitions into the transaction (KIP-890)
_NO_OFFSET = -1
_UNKNOWN_TOPIC_ID: dict[str, Any] = {"error_code": ErrorCode.UNKNOWN_TOPIC_ID, "error_message": "no topic has this id"}
_MOST_QUICK = 1 << 16  # bytes, also when decompressed: a switch to another thread takes as long


class UnacknowledgedError(ConnectionEndedError):
    """Records that could not be written, of a client that waits for no response."""


class ProduceRequests:
    """Answers ``Produce``: the batches of clients become batches of the log, as they are.

    Parameters
    ----------
    store : LogStore
    log : ReadableLog
        The topics of the store.
    """

    def __init__(self, store: LogStore, log: ReadableLog) -> None:
        self._store = store
        self._log = log
        self._transactions = ClientTransactions(store)

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {PRODUCE: self._produce}

    async def _produce(self, request: Request) -> Mapping[str, Any] | None:
        responses = [
            {"name": topic["name"], "topic_id": topic["topic_id"], "partition_responses": []}
            for topic in request.values["topic_data"]
        ]
        await in_place(partial(self._produced, request, responses))
        if request.values["acks"]:
            return {"responses": responses}
        for topic in responses:
            for one in topic["partition_responses"]:
                if one["error_code"]:
                    raise UnacknowledgedError(f"{topic['name']}-{one['index']}: {one['error_message']}")
        return None

    def _produced(self, request: Request, responses: list[dict[str, Any]]) -> None:
        """Write the partitions that have no response yet."""
        for topic, response in zip(request.values["topic_data"], responses, strict=True):
            done = response["partition_responses"]
            for one in topic["partition_data"][len(done) :]:
                done.append(self._response(request, topic, one))

    def _response(self, request: Request, requested: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = {"index": one["index"], "base_offset": _NO_OFFSET}
        if request.values["acks"] not in _ACKS:
            message = f"expected acks of -1, 0 or 1, found {request.values['acks']}"
            return fields | {"error_code": ErrorCode.INVALID_REQUIRED_ACKS, "error_message": message}
        topic = self._log.topic(requested["name"], requested["topic_id"])
        if topic is None and requested["topic_id"] != NO_TOPIC_ID:
            return fields | _UNKNOWN_TOPIC_ID
        outcome = Outcome.of(lambda: self._written(request, topic, requested, one))
        error = outcome.error
        if isinstance(error, ProducerFencedError):  # producers expect the other name here (KIP-588)
            outcome = Outcome(None, InvalidProducerEpochError(str(error)))
        elif isinstance(error, InvalidBatchError) and error.record_index is not None:
            fields["record_errors"] = [
                {"batch_index": error.record_index, "batch_index_error_message": outcome.message}
            ]
        return fields | fields_of(outcome)

    def _written(
        self, request: Request, topic: ReadableTopic | None, requested: Mapping[str, Any], one: Mapping[str, Any]
    ) -> dict[str, Any]:
        name, records = requested["name"], one["records"] or b""
        if len(records) > _MOST_QUICK:
            about_to_wait()
        check_not_internal(name if topic is None else topic.name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"topic {name!r}: the store has no such topic")
        parts, key = self._store.parts, (topic.name, one["index"])
        partition, now = parts.partition_of(key), parts.clock()
        if requested["topic_id"] not in (NO_TOPIC_ID, partition.topic.topic_id):
            return _UNKNOWN_TOPIC_ID  # deleted and created again since; a partition that is deleted now is not written
        batch = _checked(records, parts.topic_of(topic.name), now)
        verify = None
        if batch.stamp.is_transactional:
            transactional_id = request.values["transactional_id"]
            if not transactional_id:
                return {"error_code": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
            producer = ClientProducer(transactional_id, batch.stamp.producer_id, batch.stamp.producer_epoch)
            if request.version >= _ADDS_PARTITIONS:
                self._transactions.add(producer, [key], WITH_EPOCH_BUMP)
            verify = partial(self._transactions.check, producer, key)
        syncs = request.values["acks"] == _WAITS_FOR_DISK and partition.waits_for_disk
        if syncs:
            about_to_wait()
        base_offset = partition.append_batch(batch, now, verify)
        if syncs:
            partition.sync()
        return {"base_offset": base_offset, "log_start_offset": partition.log_start_offset}


def _checked(records: Buffer, topic: Topic, now_ms: int) -> ProducedBatch:
    """Check a batch; a thread that must not wait leaves one that becomes large when it is decompressed to another."""
    if not must_not_wait():
        return ProducedBatch.checked(records, topic, now_ms)
    try:
        return ProducedBatch.checked(records, topic, now_ms, _MOST_QUICK)
    except InvalidBatchError as error:
        if error.kafka_code == ErrorCode.MESSAGE_TOO_LARGE:
            about_to_wait()
        raise
