"""Requests for records and offsets of partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from kraftlog.codec.options import READ_COMMITTED, READ_UNCOMMITTED
from kraftlog.errors import RecordError
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.options import ServerOptions
from kraftlog.server.outcome import Outcome
from kraftlog.server.readable_log import NO_TOPIC_ID, ReadableLog, ReadablePartition, ReadableTopic
from kraftlog.server.server import Handler
from kraftlog.tables.partition_offsets import Found, Time
from kraftlog.topics import TopicPartition
from kraftlog.types import IsolationLevel

FETCH, LIST_OFFSETS = 1, 2
_UNKNOWN = -1
_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -3, -4, -5
_TIMES: dict[int, Time] = {
    _LATEST: "latest",
    _EARLIEST: "earliest",
    _MAX_TIMESTAMP: "max-timestamp",
    _EARLIEST_LOCAL: "earliest",  # a tier and a log directory are served as one log
}


class ReadingRequests:
    """Answers ``Fetch`` and ``ListOffsets``.

    Fetch sessions (KIP-227) are never created, which a server may do; a client then names all partitions each time.
    """

    def __init__(self, log: ReadableLog, options: ServerOptions) -> None:
        self._log = log
        self._options = options

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {FETCH: self._fetch, LIST_OFFSETS: self._list_offsets}

    async def _fetch(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        if values["session_id"]:
            return {"error_code": ErrorCode.FETCH_SESSION_ID_NOT_FOUND}
        isolation_level = _isolation_level(values)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + max(values["max_wait_ms"], 0) / 1000
        min_bytes = min(values["min_bytes"], values["max_bytes"], self._options.max_response_bytes)
        while True:
            grown = self._log.growth(self._partitions(values))  # before the log is read, so that no append is missed
            try:
                answer = await asyncio.to_thread(self._fetched, values, isolation_level)
                partitions = [one for topic in answer for one in topic["partitions"]]
                size = sum(len(one["records"] or b"") for one in partitions)
                if size >= min_bytes or any(one["error_code"] for one in partitions):
                    break
                done, _ = await asyncio.wait([grown], timeout=max(deadline - loop.time(), 0))
                if not done:
                    break
            finally:
                grown.cancel()
        return {"responses": answer}

    def _partitions(self, values: Mapping[str, Any]) -> Iterator[TopicPartition]:
        for requested in values["topics"]:
            topic = self._log.topic(requested["topic"], requested["topic_id"])
            if topic is not None:
                yield from (TopicPartition(topic.name, one["partition"]) for one in requested["partitions"])

    def _fetched(self, values: Mapping[str, Any], isolation_level: IsolationLevel) -> list[dict[str, Any]]:
        left = min(values["max_bytes"], self._options.max_response_bytes)
        answer = []
        for requested in values["topics"]:
            topic = self._log.topic(requested["topic"], requested["topic_id"])
            partitions = []
            for one in requested["partitions"]:
                fields = self._fetched_partition(requested, topic, one, left, isolation_level)
                left -= len(fields["records"] or b"")
                partitions.append(fields)
            answer.append({"topic": requested["topic"], "topic_id": requested["topic_id"], "partitions": partitions})
        return answer

    def _fetched_partition(
        self,
        requested: Mapping[str, Any],
        topic: ReadableTopic | None,
        one: Mapping[str, Any],
        left: int,
        isolation_level: IsolationLevel,
    ) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "partition_index": one["partition"],
            "error_code": ErrorCode.NONE,
            "high_watermark": _UNKNOWN,
            "records": b"",
        }
        partition = None if topic is None else topic.partitions.get(one["partition"])
        if partition is None:
            by_id = topic is None and requested["topic_id"] != NO_TOPIC_ID
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return fields | {"error_code": code}
        outcome = Outcome.of(lambda: self._read(partition, one, left, isolation_level))
        return fields | {"error_code": _code_of(outcome)} | (outcome.value or {})

    def _read(
        self, partition: ReadablePartition, one: Mapping[str, Any], left: int, isolation_level: IsolationLevel
    ) -> dict[str, Any]:
        fields = {
            "high_watermark": partition.high_watermark,
            "last_stable_offset": partition.last_stable_offset,
            "log_start_offset": partition.log_start_offset,
        }
        if left <= 0:
            return fields
        found = partition.fetch(one["fetch_offset"], min(one["partition_max_bytes"], left), isolation_level)
        aborted = found.aborted
        return fields | {
            "records": found.records,
            "aborted_transactions": None
            if aborted is None
            else [{"producer_id": each.producer_id, "first_offset": each.first_offset} for each in aborted],
        }

    async def _list_offsets(self, request: Request) -> Mapping[str, Any]:
        return {"topics": await asyncio.to_thread(self._listed, request.values)}

    def _listed(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        isolation_level = _isolation_level(values)
        return [
            {
                "name": topic["name"],
                "partitions": [
                    self._listed_partition(topic["name"], one, isolation_level) for one in topic["partitions"]
                ],
            }
            for topic in values["topics"]
        ]

    def _listed_partition(self, name: str, one: Mapping[str, Any], isolation_level: IsolationLevel) -> dict[str, Any]:
        fields = {"partition_index": one["partition_index"], "error_code": ErrorCode.NONE}
        topic, timestamp = self._log.topic(name, NO_TOPIC_ID), one["timestamp"]
        partition = None if topic is None else topic.partitions.get(one["partition_index"])
        if partition is None:
            return fields | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        if timestamp == _LATEST_TIERED:
            return fields
        if timestamp < 0 and timestamp not in _TIMES:
            return fields | {"error_code": ErrorCode.UNSUPPORTED_VERSION}
        outcome = Outcome.of(lambda: partition.offset_at(_TIMES.get(timestamp, timestamp), isolation_level))
        found = outcome.value or Found()
        offset = _UNKNOWN if found.offset is None else found.offset
        return fields | {"error_code": _code_of(outcome), "timestamp": found.timestamp, "offset": offset}


def _isolation_level(values: Mapping[str, Any]) -> IsolationLevel:
    return READ_COMMITTED if values["isolation_level"] else READ_UNCOMMITTED


def _code_of(outcome: Outcome[Any]) -> int:
    """Return the error code; any damage is CORRUPT_MESSAGE to a consumer."""
    return ErrorCode.CORRUPT_MESSAGE if isinstance(outcome.error, RecordError) else outcome.code
