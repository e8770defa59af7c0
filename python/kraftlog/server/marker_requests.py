"""Requests that write the markers of transactions, of administrators and of coordinators elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kraftlog.log_store.errors import InvalidProducerEpochError, InvalidProducerIdMappingError, InvalidTopicError
from kraftlog.log_store.store import LogStore
from kraftlog.log_store.transaction_state import EPOCH_BUMP_VERSION
from kraftlog.protocol.request import Request
from kraftlog.server.outcome import Outcome
from kraftlog.server.server import Handler
from kraftlog.topics import CONSUMER_OFFSETS, INTERNAL_TOPICS, TopicPartition

WRITE_MARKERS = 27


@dataclass(frozen=True)
class _Marker:
    """A marker that a request asks for."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    raises_epoch: bool


class MarkerRequests:
    """Answers ``WriteTxnMarkers``, with which an administrator ends a hanging transaction in a partition.

    The coordinator of the store does not learn of it, as in Kafka: a transaction that is open there stays open.

    Parameters
    ----------
    store : LogStore
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {WRITE_MARKERS: self._write_markers}

    async def _write_markers(self, request: Request) -> Mapping[str, Any]:
        return {"markers": await asyncio.to_thread(self._answers, request.values)}

    def _answers(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return one answer for each producer: clients do not expect two of them."""
        topics: dict[int, list[dict[str, Any]]] = {}
        for one in values["markers"]:
            marker = _Marker(
                one["producer_id"],
                one["producer_epoch"],
                one["coordinator_epoch"],
                one["transaction_result"],
                one["transaction_version"] >= EPOCH_BUMP_VERSION,
            )
            topics.setdefault(marker.producer_id, []).extend(
                {"name": topic["name"], "partitions": self._partitions(marker, topic)} for topic in one["topics"]
            )
        return [{"producer_id": producer_id, "topics": some} for producer_id, some in topics.items()]

    def _partitions(self, marker: _Marker, topic: Mapping[str, Any]) -> list[dict[str, Any]]:
        keys = [TopicPartition(topic["name"], number) for number in topic["partition_indexes"]]
        return [
            {"partition_index": key.partition, "error_code": Outcome.of(partial(self._write, marker, key)).code}
            for key in keys
        ]

    def _write(self, marker: _Marker, key: TopicPartition) -> None:
        """Append a marker, and wait until it is on disk."""
        if key.topic in INTERNAL_TOPICS and key.topic != CONSUMER_OFFSETS:
            raise InvalidTopicError(f"topic {key.topic!r} has no transactions")
        if marker.producer_id < 0:
            raise InvalidProducerIdMappingError(f"no producer has the id {marker.producer_id}")
        if marker.producer_epoch < 0:
            raise InvalidProducerEpochError(f"no producer has the epoch {marker.producer_epoch}")
        partition = self._store.parts.partition_of(key)
        partition.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            is_commit=marker.is_commit,
            raises_epoch=marker.raises_epoch,
            timestamp_ms=self._store.parts.clock(),
            coordinator_epoch=marker.coordinator_epoch,
            checks=True,
        )
        partition.sync()
        if key.topic == CONSUMER_OFFSETS:
            epoch = marker.producer_epoch - marker.raises_epoch  # of the data
            self._store.parts.groups.end(marker.producer_id, epoch, is_commit=marker.is_commit, partition=key)
