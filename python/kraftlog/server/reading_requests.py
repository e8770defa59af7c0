"""Requests for records and offsets of partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any

from kraftlog.codec.options import READ_COMMITTED, READ_UNCOMMITTED
from kraftlog.disk.waiting import about_to_wait
from kraftlog.errors import RecordError
from kraftlog.log_store.errors import FencedLeaderEpochError, OffsetOutOfRangeError, UnknownLeaderEpochError
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.read.lineage import EpochEnd
from kraftlog.server.fetch_sessions import Answer, FetchContext, FetchSessions, PartitionFetch
from kraftlog.server.in_place import in_place
from kraftlog.server.options import ServerOptions
from kraftlog.server.outcome import Outcome
from kraftlog.server.readable_log import NO_TOPIC_ID, ReadableLog, ReadablePartition, ReadableTopic
from kraftlog.server.server import Handler
from kraftlog.server.unread_bytes import UnreadBytes
from kraftlog.tables.found_offset import Found, Time
from kraftlog.topics import TopicPartition
from kraftlog.types import IsolationLevel

FETCH, LIST_OFFSETS, LEADER_EPOCH = 1, 2, 23
_UNKNOWN = -1
_MOST_IN_PLACE = 20  # partitions, of which each takes 0.1 ms
_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -3, -4, -5
_TIMES: dict[int, Time] = {
    _LATEST: "latest",
    _EARLIEST: "earliest",
    _MAX_TIMESTAMP: "max-timestamp",
    _EARLIEST_LOCAL: "earliest",  # a tier and a log directory are served as one log
}


class ReadingRequests:
    """Answers ``Fetch``, ``ListOffsets`` and ``OffsetForLeaderEpoch``."""

    def __init__(self, log: ReadableLog, options: ServerOptions, unread: UnreadBytes) -> None:
        self._log = log
        self._options = options
        self._unread = unread
        self._sessions = FetchSessions()
        self._checking: asyncio.Future[None] | None = None

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {FETCH: self._fetch, LIST_OFFSETS: self._list_offsets, LEADER_EPOCH: self._offset_for_leader_epoch}

    async def _fetch(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        context = self._sessions.begin(request)
        if context.error_code:
            return {"error_code": context.error_code}
        isolation_level = _isolation_level(values)
        loop = asyncio.get_running_loop()
        # a client that vanishes without closing its connection is noticed only when it is answered
        wait_ms = min(max(values["max_wait_ms"], 0), self._options.max_idle_ms)
        deadline = loop.time() + wait_ms / 1000
        grown: asyncio.Future[None] | None = None
        ends = [] if request.ended is None else [request.ended]  # it may still read what is there
        while True:
            is_late = loop.time() >= deadline or any(end.done() for end in ends)
            max_bytes = min(values["max_bytes"], self._options.max_response_bytes, self._unread.left)
            min_bytes = min(values["min_bytes"], max_bytes)
            try:
                with self._unread.held(max(max_bytes, 0)):
                    answers = await in_place(partial(self._fetched, context, max_bytes, isolation_level))
                size = sum(len(fields["records"]) for _, fields in answers)
                if size >= min_bytes or any(_must_be_told(fields) for _, fields in answers) or is_late:
                    break
                del answers  # what waits for more holds neither files nor memory
                if grown is not None:
                    left_s = max(deadline - loop.time(), 0)
                    await asyncio.wait([grown, *ends], timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if grown is not None:
                    grown.cancel()
            grown = self._log.growth(self._partitions(context))  # and read once more, so that no append is missed
        return self._sessions.response(request, context, answers)

    def _partitions(self, context: FetchContext) -> Iterator[TopicPartition]:
        for requested, fetches in groupby(context.fetches, lambda one: one.topic):
            topic = self._log.topic(*requested)
            if topic is not None:
                yield from (TopicPartition(topic.name, one.partition) for one in fetches)

    def _fetched(self, context: FetchContext, max_bytes: int, isolation_level: IsolationLevel) -> list[Answer]:
        if len(context.fetches) > _MOST_IN_PLACE:
            about_to_wait()
        left = max_bytes
        answers = []
        for requested, fetches in groupby(context.fetches, lambda one: one.topic):
            topic = self._log.topic(*requested)
            for one in fetches:
                fields = self._fetched_partition(topic, one, left, isolation_level)
                left -= len(fields["records"])
                answers.append((one, fields))
        return answers

    def _fetched_partition(
        self, topic: ReadableTopic | None, one: PartitionFetch, left: int, isolation_level: IsolationLevel
    ) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "partition_index": one.partition,
            "error_code": ErrorCode.NONE,
            "high_watermark": _UNKNOWN,
            "records": b"",
        }
        partition = None if topic is None else topic.partitions.get(one.partition)
        if partition is None:
            by_id = topic is None and one.topic.topic_id != NO_TOPIC_ID
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return fields | {"error_code": code}
        outcome = Outcome.of(lambda: self._read(partition, one, left, isolation_level))
        return fields | {"error_code": _code_of(outcome)} | (outcome.value or {})

    def _read(
        self, partition: ReadablePartition, one: PartitionFetch, left: int, isolation_level: IsolationLevel
    ) -> dict[str, Any]:
        _check_leader_epoch(partition, one.current_leader_epoch)
        fields: dict[str, Any] = {
            "high_watermark": partition.high_watermark,
            "last_stable_offset": partition.last_stable_offset,
            "log_start_offset": partition.log_start_offset,
        }
        if one.last_fetched_epoch != _UNKNOWN:
            diverging = _diverging(partition, one)
            if diverging is not None:
                return fields | {"diverging_epoch": {"epoch": diverging.epoch, "end_offset": diverging.end_offset}}
        if left <= 0:
            return fields
        found = partition.fetch(one.fetch_offset, min(one.max_bytes, left), isolation_level)
        if found.check_next is not None:  # while the client reads what it gets now
            asyncio.get_running_loop().call_soon(self._check_ahead, found.check_next)
        aborted = found.aborted
        return fields | {
            "records": found.records,
            "aborted_transactions": None
            if aborted is None
            else [{"producer_id": each.producer_id, "first_offset": each.first_offset} for each in aborted],
        }

    def _check_ahead(self, check: Callable[[], None]) -> None:
        """Check in a thread, one at a time: appends and syncs of many clients must not wait behind checks."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.get_running_loop().run_in_executor(None, check)

    async def _offset_for_leader_epoch(self, request: Request) -> Mapping[str, Any]:
        return {"topics": await asyncio.to_thread(self._epoch_ends, request.values)}

    def _epoch_ends(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [
            {"topic": one["topic"], "partitions": [self._epoch_end(one["topic"], each) for each in one["partitions"]]}
            for one in values["topics"]
        ]

    def _epoch_end(self, name: str, one: Mapping[str, Any]) -> dict[str, Any]:
        fields = {"partition": one["partition"], "error_code": ErrorCode.NONE}
        topic = self._log.topic(name, NO_TOPIC_ID)
        partition = None if topic is None else topic.partitions.get(one["partition"])
        if partition is None:
            return fields | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

        def end() -> EpochEnd | None:
            _check_leader_epoch(partition, one["current_leader_epoch"])
            return partition.lineage.end_for(one["leader_epoch"])

        outcome = Outcome.of(end)
        if outcome.value is None:
            return fields | {"error_code": _code_of(outcome)}
        return fields | {"leader_epoch": outcome.value.epoch, "end_offset": outcome.value.end_offset}

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

        def at() -> Found:
            _check_leader_epoch(partition, one["current_leader_epoch"])
            return partition.offset_at(_TIMES.get(timestamp, timestamp), isolation_level)

        outcome = Outcome.of(at)
        found = outcome.value or Found()
        offset = _UNKNOWN if found.offset is None else found.offset
        return fields | {"error_code": _code_of(outcome), "timestamp": found.timestamp, "offset": offset}


def _check_leader_epoch(partition: ReadablePartition, leader_epoch: int) -> None:
    """Check the leader epoch that a client knows from its metadata (KIP-320)."""
    current = _UNKNOWN if leader_epoch == _UNKNOWN else partition.leader_epoch
    if _UNKNOWN not in (leader_epoch, current) and leader_epoch != current:
        error = FencedLeaderEpochError if leader_epoch < current else UnknownLeaderEpochError
        raise error(f"leader epoch {leader_epoch} is not the current one, {current}")


def _diverging(partition: ReadablePartition, one: PartitionFetch) -> EpochEnd | None:
    """Return where the reader's log diverges from this one, judging from its last epoch (KIP-595); None if nowhere."""
    end = partition.lineage.end_for(one.last_fetched_epoch)
    if end is None or one.fetch_offset < partition.log_start_offset:
        raise OffsetOutOfRangeError(f"the log does not have offset {one.fetch_offset}")
    is_same = end.epoch == one.last_fetched_epoch and one.fetch_offset <= end.end_offset
    return None if is_same else end


def _must_be_told(fields: Mapping[str, Any]) -> bool:
    """Whether a client that waits for records gets its answer now."""
    return bool(fields["error_code"]) or "diverging_epoch" in fields


def _isolation_level(values: Mapping[str, Any]) -> IsolationLevel:
    return READ_COMMITTED if values["isolation_level"] else READ_UNCOMMITTED


def _code_of(outcome: Outcome[Any]) -> int:
    """Return the error code; any damage is CORRUPT_MESSAGE to a consumer."""
    return ErrorCode.CORRUPT_MESSAGE if isinstance(outcome.error, RecordError) else outcome.code
