"""Requests for the topics of a log and the only node that serves them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.error_response import error_response
from kraftlog.server.outcome import Outcome
from kraftlog.server.readable_log import NO_TOPIC_ID, ReadableLog, ReadableTopic
from kraftlog.server.server import Handler

METADATA, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 3, 60, 75
_MOST_PARTITIONS = 2_000  # max.request.partition.size.limit
_BROKERS = 1  # endpoint type
_MOST_DESCRIBED = 4  # responses with topics that are made at the same time
_NO_LEADER = -1
_NO_ELR: dict[str, Any] = {"eligible_leader_replicas": [], "last_known_elr": []}  # of one replica


@dataclass(frozen=True)
class Node:
    """The node that clients connect to, and by which of Kafka's security protocols."""

    host: str
    port: int
    node_id: int = 1
    security_protocol: str = "PLAINTEXT"

    @property
    def address(self) -> str:
        """Host and port, for ``bootstrap.servers`` of a client."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def fields(self) -> dict[str, Any]:
        """Its fields in responses."""
        return {"node_id": self.node_id, "host": self.host, "port": self.port}


class ClusterRequests:
    """Answers ``Metadata``, ``DescribeTopicPartitions`` and ``DescribeCluster``."""

    def __init__(self, log: ReadableLog, node: Node) -> None:
        self._log = log
        self._node = node
        # the fields of a response take many times as much memory as its bytes, which the loop makes of them next
        self._described = asyncio.Semaphore(_MOST_DESCRIBED)

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            METADATA: self._metadata,
            DESCRIBE_CLUSTER: self._describe_cluster,
            DESCRIBE_TOPIC_PARTITIONS: self._describe_topic_partitions,
        }

    async def _metadata(self, request: Request) -> Mapping[str, Any]:
        return {
            "brokers": [self._node.fields],
            "cluster_id": self._log.cluster_id,
            "controller_id": self._node.node_id,
            "topics": await self._topics(request),
        }

    async def _topics(self, request: Request) -> Iterable[dict[str, Any]]:
        requested = request.values["topics"]
        async with self._described:
            if requested is None or (request.version == 0 and not requested):
                found: list[ReadableTopic | dict[str, Any]] = [*self._log.topics.values()]
            else:
                creates = request.values["allow_auto_topic_creation"]
                found = [await self._requested(one, creates=creates) for one in requested]
            # the leader epochs of a log that is only read are in its batches
            return await asyncio.to_thread(
                lambda: [one if isinstance(one, dict) else self._topic(one) for one in found]
            )

    async def _requested(self, one: Mapping[str, Any], *, creates: bool) -> ReadableTopic | dict[str, Any]:
        name, topic_id = one["name"], one["topic_id"]
        found = self._log.topic(name or "", topic_id if name is None else NO_TOPIC_ID)
        if found is not None:
            return found
        code: int = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if creates and name is not None:
            outcome = await asyncio.to_thread(Outcome.of, partial(self._log.created_on_use, name))
            if outcome.value is not None:
                return outcome.value
            code = outcome.code
        return {"error_code": code, "name": name, "topic_id": topic_id or NO_TOPIC_ID}

    def _topic(self, topic: ReadableTopic) -> dict[str, Any]:
        return _identity(topic) | {"partitions": [self._partition(topic, number) for number in _numbers(topic)]}

    def _partition(self, topic: ReadableTopic, number: int) -> dict[str, Any]:
        if number not in topic.partitions:
            return {"error_code": ErrorCode.LEADER_NOT_AVAILABLE, "partition_index": number, "leader_id": _NO_LEADER}
        replicas = [self._node.node_id]
        epoch = Outcome.of(lambda: topic.partitions[number].leader_epoch)  # of a log that cannot be read it is unknown
        return {
            "partition_index": number,
            "leader_id": self._node.node_id,
            "leader_epoch": _NO_LEADER if epoch.value is None else epoch.value,
            "replica_nodes": replicas,
            "isr_nodes": replicas,
        }

    async def _describe_topic_partitions(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        first_name, first = "", 0
        if values["cursor"] is not None:
            first_name, first = values["cursor"]["topic_name"], values["cursor"]["partition_index"]
        if first < 0:
            return error_response(request, ErrorCode.INVALID_REQUEST)
        limit = max(min(values["response_partition_limit"], _MOST_PARTITIONS), 1)
        async with self._described:
            names = {one["name"] for one in values["topics"]} or self._log.topics.keys()
            topics = [(name, self._log.topic(name, NO_TOPIC_ID)) for name in sorted(names) if name >= first_name]
            return await asyncio.to_thread(self._page, topics, (first_name, first), limit)

    def _page(
        self, topics: Iterable[tuple[str, ReadableTopic | None]], start: tuple[str, int], limit: int
    ) -> dict[str, Any]:
        """Return topics with at most ``limit`` partitions, and where the next page begins (KIP-966)."""
        described: list[dict[str, Any]] = []
        for name, topic in topics:
            if topic is None:
                described.append({"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "name": name})
                continue
            numbers = _numbers(topic)[start[1] if name == start[0] else 0 :]
            page = numbers[:limit]
            limit -= len(page)
            if page:
                partitions = [self._partition(topic, number) | _NO_ELR for number in page]
                described.append(_identity(topic) | {"partitions": partitions})
            if len(page) < len(numbers):
                cursor = {"topic_name": name, "partition_index": numbers[len(page)]}
                return {"topics": described, "next_cursor": cursor}
        return {"topics": described, "next_cursor": None}

    async def _describe_cluster(self, request: Request) -> Mapping[str, Any]:
        if request.values["endpoint_type"] != _BROKERS:
            return {"error_code": ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "cluster_id": self._log.cluster_id or ""}
        node = self._node.fields
        return {
            "cluster_id": self._log.cluster_id or "",
            "controller_id": self._node.node_id,
            "brokers": [{"broker_id": node["node_id"], "host": node["host"], "port": node["port"]}],
        }


def _identity(topic: ReadableTopic) -> dict[str, Any]:
    return {"name": topic.name, "topic_id": topic.topic_id, "is_internal": topic.is_internal}


def _numbers(topic: ReadableTopic) -> range:
    """Return the numbers of partitions without a gap: clients take the number of entries for that of partitions."""
    return range(max(topic.partitions) + 1)
