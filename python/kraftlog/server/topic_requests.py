"""Requests of administrators that create, change and delete topics and records."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from threading import Lock
from typing import Any

from kraftlog.log_store.errors import (
    InvalidConfigError,
    TopicExistsError,
)
from kraftlog.log_store.store import LogStore
from kraftlog.log_store.topics import LISTS, Topic, check_name, check_partitions, checked_configs, topic_configs
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.cluster_requests import Node
from kraftlog.server.outcome import Outcome, fields_of
from kraftlog.server.readable_log import NO_TOPIC_ID, ReadableLog
from kraftlog.server.server import Handler

CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, CREATE_PARTITIONS = 19, 20, 21, 37
DESCRIBE_CONFIGS, ALTER_CONFIGS, LIST_CONFIG_RESOURCES = 32, 44, 74
_DELETE_BY_ID = 6  # first version of DeleteTopics with ids (KIP-516)
_BY_DEFAULT = -1
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3  # operations on a configuration
_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32  # types of resources
_RESOURCES = {_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP}
_BOOLEAN, _STRING, _INT, _LONG, _LIST = 1, 2, 3, 5, 7  # types of values
_TYPES = {
    "cleanup.policy": _LIST,
    "segment.bytes": _INT,
    "internal.segment.bytes": _INT,
    "retention.ms": _LONG,
    "retention.bytes": _LONG,
    "delete.retention.ms": _LONG,
    "min.compaction.lag.ms": _LONG,
    "max.message.bytes": _INT,
    "message.timestamp.type": _STRING,
    "compression.type": _STRING,
    "min.insync.replicas": _INT,
    "remote.storage.enable": _BOOLEAN,
    "node.id": _INT,
    "num.partitions": _INT,
    "advertised.listeners": _LIST,
}
_DYNAMIC_TOPIC_CONFIG, _DEFAULT_CONFIG, _STATIC_BROKER_CONFIG = 1, 5, 4  # sources of configurations
_NO_OFFSET = -1


class TopicRequests:
    """Answers the requests of administrators for topics.

    Parameters
    ----------
    store : LogStore
    log : ReadableLog
        The topics of the store.
    node : Node
    default_partitions : int
        Partitions of a topic whose creator names no number.
    """

    def __init__(self, store: LogStore, log: ReadableLog, node: Node, default_partitions: int) -> None:
        self._store = store
        self._log = log
        self._node = node
        self._default_partitions = default_partitions
        self._altering = Lock()  # a list is read, changed and written

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            CREATE_TOPICS: self._create_topics,
            DELETE_TOPICS: self._delete_topics,
            CREATE_PARTITIONS: self._create_partitions,
            DELETE_RECORDS: self._delete_records,
            DESCRIBE_CONFIGS: self._describe_configs,
            ALTER_CONFIGS: self._alter_configs,
            LIST_CONFIG_RESOURCES: self._list_config_resources,
        }

    # topics

    async def _create_topics(self, request: Request) -> Mapping[str, Any]:
        topics, is_trial = request.values["topics"], request.values["validate_only"]
        counts = Counter(topic["name"] for topic in topics)
        responses = []
        for topic in topics:
            if counts[topic["name"]] > 1:
                fields = _error(ErrorCode.INVALID_REQUEST, "named twice")
            else:
                fields = await _answer(partial(self._created, topic, is_trial=is_trial))
            responses.append({"name": topic["name"], "error_message": None} | fields)
        return {"topics": responses}

    def _created(self, requested: Mapping[str, Any], *, is_trial: bool) -> dict[str, Any]:
        name, partitions = requested["name"], requested["num_partitions"]
        assignments = {one["partition_index"]: one["broker_ids"] for one in requested["assignments"]}
        if assignments:
            expected = {number: [self._node.node_id] for number in range(len(assignments))}
            if assignments != expected:
                return _error(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"expected {expected}, found {assignments}")
            partitions = len(assignments)
        elif requested["replication_factor"] not in (1, _BY_DEFAULT):
            found = requested["replication_factor"]
            return _error(ErrorCode.INVALID_REPLICATION_FACTOR, f"expected 1, for the only broker, found {found}")
        if partitions == _BY_DEFAULT:
            partitions = self._default_partitions
        configs = {one["name"]: one["value"] for one in requested["configs"]}
        if is_trial:
            self._check_new(name, partitions, configs)
            topic = Topic(name, NO_TOPIC_ID, (0,) * partitions, checked_configs(name, configs))
        else:
            self._store.create_topic(name, partitions, configs)
            topic = self._store.parts.topic_of(name)
        return {
            "topic_id": topic.topic_id,
            "num_partitions": topic.partitions,
            "replication_factor": 1,
            "configs": [
                {"name": key, "value": value, "config_source": source} for key, value, source in _configs_of(topic)
            ],
        }

    def _check_new(self, name: str, partitions: int, configs: Mapping[str, object]) -> None:
        topics = self._store.parts.cluster.topics
        if name in topics:
            raise TopicExistsError(f"topic {name!r} exists")
        check_name(name, topics)
        check_partitions(name, partitions)
        checked_configs(name, configs)

    async def _delete_topics(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        if request.version >= _DELETE_BY_ID:
            requested = [(one["name"], one["topic_id"]) for one in values["topics"]]
        else:
            requested = [(name, NO_TOPIC_ID) for name in values["topic_names"]]
        responses = []
        for name, topic_id in requested:
            topic = self._log.topic(name or "", topic_id)
            fields: dict[str, Any] = {"name": name, "topic_id": topic_id}
            if topic is not None:
                fields |= {"name": topic.name, "topic_id": topic.topic_id}
                fields |= await _answer(partial(self._deleted, topic.name))
            else:
                by_name = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                fields |= _error(ErrorCode.UNKNOWN_TOPIC_ID if name is None else by_name, "no such topic")
            responses.append(fields)
        return {"responses": responses}

    def _deleted(self, name: str) -> dict[str, Any]:
        self._store.delete_topic(name)
        return {}

    async def _create_partitions(self, request: Request) -> Mapping[str, Any]:
        is_trial = request.values["validate_only"]
        results = []
        for topic in request.values["topics"]:
            fields = await _answer(partial(self._grown, topic, is_trial=is_trial))
            results.append({"name": topic["name"]} | fields)
        return {"results": results}

    def _grown(self, requested: Mapping[str, Any], *, is_trial: bool) -> dict[str, Any]:
        name, count, assignments = requested["name"], requested["count"], requested["assignments"]
        has, node_id = self._store.parts.topic_of(name).partitions, self._node.node_id
        if count > has and assignments is not None:
            is_here = all(one["broker_ids"] == [node_id] for one in assignments)
            if len(assignments) != count - has or not is_here:
                return _error(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"expected {count - has} times broker {node_id}")
        if is_trial and count > has:
            check_partitions(name, count)
        else:
            self._store.create_partitions(name, count)
        return {}

    # records

    async def _delete_records(self, request: Request) -> Mapping[str, Any]:
        topics = []
        for topic in request.values["topics"]:
            partitions = []
            for one in topic["partitions"]:
                delete = partial(self._store.delete_records, topic["name"], one["partition_index"], one["offset"])
                outcome = await asyncio.to_thread(Outcome.of, delete)
                start = _NO_OFFSET if outcome.value is None else outcome.value
                partitions.append(
                    {"partition_index": one["partition_index"], "low_watermark": start, "error_code": outcome.code}
                )
            topics.append({"name": topic["name"], "partitions": partitions})
        return {"topics": topics}

    # configurations

    async def _describe_configs(self, request: Request) -> Mapping[str, Any]:
        return {"results": [self._described(one, request.values) for one in request.values["resources"]]}

    def _described(self, resource: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "resource_type": resource["resource_type"],
            "resource_name": resource["resource_name"],
        }
        found = Outcome.of(lambda: self._configs(resource))
        answer |= {"error_code": found.code, "error_message": found.message}
        keys = resource["configuration_keys"]
        answer["configs"] = [
            {
                "name": name,
                "value": value,
                "read_only": resource["resource_type"] != _TOPIC,
                "config_source": source,
                "synonyms": [{"name": name, "value": value, "source": source}] if values["include_synonyms"] else [],
                "config_type": _TYPES[name],
                "documentation": None,
            }
            for name, value, source in found.value or ()
            if keys is None or name in keys
        ]
        return answer

    def _configs(self, resource: Mapping[str, Any]) -> Iterable[tuple[str, str, int]]:
        kind, name = resource["resource_type"], resource["resource_name"]
        if kind == _TOPIC:
            return _configs_of(self._store.parts.topic_of(name))
        if kind == _BROKER and name in ("", str(self._node.node_id)):
            configs = {
                "node.id": self._node.node_id,
                "num.partitions": self._default_partitions,
                "advertised.listeners": f"{self._node.security_protocol}://{self._node.address}",
            }
            return [(key, str(value), _STATIC_BROKER_CONFIG) for key, value in configs.items()]
        raise InvalidConfigError(f"no configurations of {name!r}: expected a topic, or broker {self._node.node_id}")

    async def _list_config_resources(self, request: Request) -> Mapping[str, Any]:
        # version 0 is for client metrics alone, and names no types
        types = set(request.values["resource_types"]) or (_RESOURCES if request.version else {_CLIENT_METRICS})
        if types - _RESOURCES:
            return {"error_code": ErrorCode.UNSUPPORTED_VERSION}
        names = {_TOPIC: sorted(self._store.parts.cluster.topics), _BROKER: [str(self._node.node_id)]}
        return {
            "config_resources": [
                {"resource_name": name, "resource_type": kind} for kind in sorted(types) for name in names.get(kind, ())
            ]
        }

    async def _alter_configs(self, request: Request) -> Mapping[str, Any]:
        is_trial = request.values["validate_only"]
        responses = []
        for one in request.values["resources"]:
            fields = await _answer(partial(self._altered, one, is_trial=is_trial))
            identity = {"resource_type": one["resource_type"], "resource_name": one["resource_name"]}
            responses.append({"error_message": None} | identity | fields)
        return {"responses": responses}

    def _altered(self, resource: Mapping[str, Any], *, is_trial: bool) -> dict[str, Any]:
        name = resource["resource_name"]
        if resource["resource_type"] != _TOPIC:
            raise InvalidConfigError(f"the configurations of {name!r} are fixed; only those of topics can be changed")
        counts = Counter(one["name"] for one in resource["configs"])
        repeated = [key for key, count in counts.items() if count > 1]
        if repeated:
            return _error(ErrorCode.INVALID_REQUEST, f"topic {name!r}: {', '.join(repeated)} named twice")
        without_value = [
            one["name"]
            for one in resource["configs"]
            if one["config_operation"] in (_SET, _APPEND, _SUBTRACT) and one["value"] is None
        ]
        if without_value:
            return _error(ErrorCode.INVALID_REQUEST, f"topic {name!r}: no value for {', '.join(without_value)}")
        with self._altering:
            topic = self._store.parts.topic_of(name)
            changes = {one["name"]: _changed(topic, one) for one in resource["configs"]}
            if is_trial:
                checked_configs(name, {key: value for key, value in changes.items() if value is not None})
            else:
                self._store.alter_configs(name, changes)
        return {}


def _changed(topic: Topic, change: Mapping[str, Any]) -> str | None:
    """Return the new value of a configuration; None for Kafka's default."""
    key, value, operation = change["name"], change["value"], change["config_operation"]
    if operation == _DELETE:
        return None
    if operation == _SET:
        return str(value)
    if operation not in (_APPEND, _SUBTRACT):
        raise InvalidConfigError(f"topic {topic.name!r}: {key}: unknown operation {operation}")
    if key not in LISTS:
        raise InvalidConfigError(f"topic {topic.name!r}: {key} is not a list")
    items, named = ([one.strip() for one in text.split(",")] for text in (topic_configs(topic)[key], value))
    if operation == _APPEND:
        return ",".join(dict.fromkeys([*items, *named]))
    return ",".join(item for item in items if item not in named)


def _configs_of(topic: Topic) -> list[tuple[str, str, int]]:
    """Return name, value and source of all configurations of a topic."""
    return [
        (name, value, _DYNAMIC_TOPIC_CONFIG if name in topic.configs else _DEFAULT_CONFIG)
        for name, value in topic_configs(topic).items()
    ]


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error_code": code, "error_message": message}


async def _answer(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return fields_of(await asyncio.to_thread(Outcome.of, run))
