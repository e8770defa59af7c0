"""``ClusterImage``: what the metadata log says of brokers, partitions and configs, and when."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kraftlog.disk.remote_path import LogPath
from kraftlog.metadata.kafka_names import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftlog.metadata.record_types import BROKERS, CONFIGS, PARTITIONS, TOPICS
from kraftlog.metadata.uuids import uuid_text
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.read.partitions import Replica
from kraftlog.topics import TopicPartition

# Broker settings that hold for topics without their own, by the name of the topic's setting.
_OF_BROKERS = {
    "cleanup.policy": "log.cleanup.policy",
    "max.message.bytes": "message.max.bytes",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}


class AssignedPartition(NamedTuple):
    """A partition of the image; ``directories`` are those of its replicas, in the same order, or empty."""

    of: TopicPartition
    topic_id: str
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[bytes, ...]


class RegisteredBroker(NamedTuple):
    """A broker of the image; ``log_dirs`` are the ids of its directories that are online, empty where unknown."""

    broker_id: int
    broker_epoch: int
    log_dirs: frozenset[bytes]


class ClusterImage:
    """The image at the end of the metadata log.

    Parameters
    ----------
    at : ImageAt
    replicas : sequence of Replica
        The replicas of the metadata log.
    """

    def __init__(self, at: ImageAt, replicas: Sequence[Replica]) -> None:
        self._tables = at.image.tables([BROKERS.name, CONFIGS.name, PARTITIONS.name, TOPICS.name])
        self._line = max(replicas, key=lambda one: one.end)
        self.end_offset = max(self._line.end.end_offset, at.offset + 1)
        self.timestamp = at.timestamp
        # nodes whose own log reaches this image: their other files are from the same time
        self.replicas = [one for one in replicas if one.node_id is not None and one.end == self._line.end]
        self.node_ids = frozenset(one.node_id for one in self.replicas if one.node_id is not None)

    @property
    def folder(self) -> LogPath:
        """The folder of the metadata log."""
        return self._line.folder

    @cached_property
    def topic_ids(self) -> dict[str, str]:
        """Ids of the topics, by name."""
        rows = self._rows(TOPICS.name, "name", "topic_id")
        return {row["name"]: uuid_text(row["topic_id"]) for row in rows}

    @cached_property
    def partitions(self) -> dict[TopicPartition, AssignedPartition]:
        """The partitions."""
        topics = {topic_id: name for name, topic_id in self.topic_ids.items()}
        found: dict[TopicPartition, AssignedPartition] = {}
        for row in self._rows(PARTITIONS.name, "topic_id", "partition_id", "replicas", "isr", "directories"):
            topic_id = uuid_text(row["topic_id"])
            if topic_id in topics:
                of = TopicPartition(topics[topic_id], row["partition_id"])
                lists = [tuple(row[name] or ()) for name in ("replicas", "isr", "directories")]
                found[of] = AssignedPartition(of, topic_id, *lists)
        return found

    @cached_property
    def brokers(self) -> dict[int, RegisteredBroker]:
        """The registered brokers, by id."""
        rows = self._rows(BROKERS.name, "broker_id", "broker_epoch", "log_dirs")
        return {
            row["broker_id"]: RegisteredBroker(row["broker_id"], row["broker_epoch"], frozenset(row["log_dirs"] or ()))
            for row in rows
        }

    def topic_configs(self, topic: str) -> dict[str, str]:
        """Return the settings of a topic itself."""
        return {
            name: value for (kind, of, name), value in self._configs.items() if (kind, of) == (TOPIC_RESOURCE, topic)
        }

    def config(self, topic: str, name: str) -> str | None:
        """Return a setting that holds for a topic; None where files of the brokers decide, or brokers differ."""
        own = self._configs.get((TOPIC_RESOURCE, topic, name))
        if own is not None:
            return own
        of_brokers = _OF_BROKERS.get(name)
        several = {of for kind, of, config in self._configs if kind == BROKER_RESOURCE and config == of_brokers}
        return self._configs.get((BROKER_RESOURCE, "", of_brokers or "")) if several == {""} else None

    def number(self, topic: str, name: str) -> float | None:
        """Return a setting that is a number, as ``config`` does."""
        try:
            return float(self.config(topic, name) or "")
        except ValueError:
            return None

    def registered_at(self, broker_id: int) -> int | None:
        """Return a time at which a broker had registered, in milliseconds; None if it is unknown.

        A broker registers once, when it starts. If the log begins later, it is the time of the first batch.
        """
        broker = self.brokers.get(broker_id)
        if broker is None:
            return None
        log = MetadataLog(self._line.segments)
        batch = log.batch_at(max(broker.broker_epoch, log.start_offset))
        return None if batch is None else int(np.max(batch["max_timestamp"]))

    @cached_property
    def _configs(self) -> dict[tuple[int, str, str], str]:
        rows = self._rows(CONFIGS.name, "resource_type", "resource_name", "name", "value")
        return {(row["resource_type"], row["resource_name"], row["name"]): row["value"] for row in rows}

    def _rows(self, table: str, *columns: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._tables[table].select(list(columns)).to_pylist()
        return rows
