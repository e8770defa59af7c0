"""Requests of administrators for the node: its disk, its metadata log, and what only larger clusters have."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kraftlog.disk.disk import disk
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.log_store.errors import UnknownTopicOrPartitionError
from kraftlog.log_store.store import LogStore
from kraftlog.metadata.uuids import uuid_bytes
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.cluster_requests import Node
from kraftlog.server.outcome import Outcome, fields_of
from kraftlog.server.server import Handler
from kraftlog.topics import CLUSTER_METADATA, TopicPartition

DESCRIBE_ACLS, DESCRIBE_LOG_DIRS, ELECT_LEADERS, LIST_REASSIGNMENTS = 29, 35, 43, 46
DESCRIBE_QUOTAS, DESCRIBE_SCRAM_CREDENTIALS, DESCRIBE_QUORUM = 48, 50, 55
_PREFERRED, _UNCLEAN = 0, 1  # types of elections
_WITH_DIRECTORIES = 2  # first version of DescribeQuorum with the ids of directories, and with nodes (KIP-853)


class NodeRequests:
    """Answers requests of administrators for the only node of a cluster.

    It has no authorizer, no quotas and no credentials in its metadata log, and answers as Kafka does without them.

    Parameters
    ----------
    store : LogStore
    node : Node
    """

    def __init__(self, store: LogStore, node: Node) -> None:
        self._store = store
        self._node = node

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            DESCRIBE_ACLS: self._describe_acls,
            DESCRIBE_LOG_DIRS: self._describe_log_dirs,
            ELECT_LEADERS: self._elect_leaders,
            LIST_REASSIGNMENTS: self._list_reassignments,
            DESCRIBE_QUOTAS: self._describe_quotas,
            DESCRIBE_SCRAM_CREDENTIALS: self._describe_scram_credentials,
            DESCRIBE_QUORUM: self._describe_quorum,
        }

    # the log directory

    async def _describe_log_dirs(self, request: Request) -> Mapping[str, Any]:
        outcome = await asyncio.to_thread(Outcome.of, lambda: self._log_dir(request.values["topics"]))
        directory: dict[str, Any] = {"error_code": outcome.code, "log_dir": str(self._store.path.absolute())}
        return {"results": [directory | (outcome.value or {})]}

    def _log_dir(self, requested: Iterable[Mapping[str, Any]] | None) -> dict[str, Any]:
        topics = self._store.parts.cluster.topics
        if requested is None:
            numbers = {topic.name: set(range(topic.partitions)) for topic in list(topics.values())}
        else:
            known = {one["topic"]: topics[one["topic"]].partitions for one in requested if one["topic"] in topics}
            numbers = {
                one["topic"]: {number for number in one["partitions"] if 0 <= number < known[one["topic"]]}
                for one in requested
                if one["topic"] in known
            }
        total_bytes, usable_bytes = disk().volume_space(self._store.path)
        return {
            "topics": [
                {"name": name, "partitions": [self._size(TopicPartition(name, number)) for number in sorted(each)]}
                for name, each in sorted(numbers.items())
                if each
            ],
            "total_bytes": total_bytes,
            "usable_bytes": usable_bytes,
        }

    def _size(self, of: TopicPartition) -> dict[str, Any]:
        folder = self._store.parts.folder_of(of)
        has_folder = disk().entry(folder) is not None  # of a partition that nobody has used there is none
        segments = PartitionFolder.of(folder).segments if has_folder else ()
        return {"partition_index": of.partition, "partition_size": sum(one.size for one in segments), "offset_lag": 0}

    # the metadata log

    async def _describe_quorum(self, request: Request) -> Mapping[str, Any]:
        topics = []
        for topic in request.values["topics"]:
            name = topic["topic_name"]
            numbers = [one["partition_index"] for one in topic["partitions"]]
            partitions = [await self._quorum(name, number) for number in numbers]
            topics.append({"topic_name": name, "partitions": partitions})
        nodes = [{"node_id": self._node.node_id, "listeners": []}]
        answer = {"topics": topics, "nodes": nodes}
        return answer if request.version >= _WITH_DIRECTORIES else _without_directories(answer)

    async def _quorum(self, topic: str, number: int) -> dict[str, Any]:
        outcome = await asyncio.to_thread(Outcome.of, lambda: self._metadata_log(topic, number))
        unknown = {"leader_id": -1, "leader_epoch": -1, "high_watermark": -1}
        return {"partition_index": number} | unknown | fields_of(outcome)

    def _metadata_log(self, topic: str, number: int) -> dict[str, Any]:
        if (topic, number) != (CLUSTER_METADATA, 0):
            raise UnknownTopicOrPartitionError(f"{topic}-{number} has no quorum; {CLUSTER_METADATA}-0 has one")
        cluster, now = self._store.parts.cluster, self._store.parts.clock()
        end = cluster.log_end()
        voter = {
            "replica_id": cluster.node_id,
            "replica_directory_id": uuid_bytes(cluster.directory_id),
            "log_end_offset": end.end_offset,
            "last_fetch_timestamp": now,  # of the leader itself: now, as in LeaderState.describeReplicaState
            "last_caught_up_timestamp": now,
        }
        return {
            "leader_id": cluster.node_id,
            "leader_epoch": end.last_epoch,
            "high_watermark": end.end_offset,
            "current_voters": [voter],
        }

    # what larger clusters have

    async def _elect_leaders(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        if values["election_type"] not in (_PREFERRED, _UNCLEAN):
            return {"error_code": ErrorCode.INVALID_REQUEST}
        results = [
            {"topic": one["topic"], "partition_result": list(self._elections(one["topic"], one["partitions"]))}
            for one in values["topic_partitions"] or ()  # where all are meant, Kafka leaves out what it need not elect
        ]
        return {"replica_election_results": results}

    def _elections(self, topic: str, numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
        known = self._store.parts.cluster.topics.get(topic)
        for number in numbers:
            is_known = known is not None and 0 <= number < known.partitions
            code = ErrorCode.ELECTION_NOT_NEEDED if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            message = "its only replica is its leader" if is_known else "no such partition"
            yield {"partition_id": number, "error_code": code, "error_message": f"{topic}-{number}: {message}"}

    async def _list_reassignments(self, request: Request) -> Mapping[str, Any]:
        return {"error_message": None, "topics": []}

    async def _describe_acls(self, request: Request) -> Mapping[str, Any]:
        return {"error_code": ErrorCode.SECURITY_DISABLED, "error_message": "No Authorizer is configured."}

    async def _describe_quotas(self, request: Request) -> Mapping[str, Any]:
        return {"error_message": None, "entries": []}

    async def _describe_scram_credentials(self, request: Request) -> Mapping[str, Any]:
        results = [
            {
                "user": one["name"],
                "error_code": ErrorCode.RESOURCE_NOT_FOUND,
                "error_message": f"user {one['name']!r} has no credentials in the metadata log",
            }
            for one in request.values["users"] or ()
        ]
        return {"error_message": None, "results": results}


def _without_directories(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer to DescribeQuorum for clients that know neither nodes nor ids of directories."""
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            for voter in partition.get("current_voters", ()):
                del voter["replica_directory_id"]
    return {"topics": answer["topics"]}
