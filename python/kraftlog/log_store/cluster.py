"""A store as a cluster of one node, whose topics are in ``__cluster_metadata-0``, as on a KRaft broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from kraftlog.codec.metadata_version import metadata_version_level
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.checkpoints import META_PROPERTIES
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.log_store.directory import Found, found_partitions
from kraftlog.log_store.errors import storage_errors
from kraftlog.log_store.topics import Topic
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.one_message import encode_message
from kraftlog.metadata.kafka_names import TOPIC_RESOURCE
from kraftlog.metadata.uuids import uuid_text
from kraftlog.metadata.versions import record_version
from kraftlog.read.lineage import LogEnd, log_end
from kraftlog.topics import CLUSTER_METADATA
from kraftlog.write.locked_directory import LockedLogDirectory
from kraftlog.write.meta_properties import write_meta_properties
from kraftlog.write.metadata_writer import MetadataLogWriter

FEATURES = {"metadata.version": metadata_version_level("4.0"), "group.version": 1, "transaction.version": 2}
PRODUCER_ID_BLOCK = 1000  # a broker's block size
_UNASSIGNED = uuid_text(bytes(16))

Row: TypeAlias = dict[str, object]


class Cluster:
    """Topics, features and producer ids of a log directory.

    Parameters
    ----------
    log_directory : LockedLogDirectory
        A new one gets ``meta.properties`` and a metadata log.
    clock : callable
        Returns the time in milliseconds.
    new_uuid : callable
        Returns 16 bytes.
    node_id : int
        Node id of a new log directory.
    was_clean : bool
        Whether the log directory was closed cleanly; otherwise the metadata log is recovered.
    adopts_partitions : bool
        Whether partitions of a log directory without a metadata log are taken over.

    Attributes
    ----------
    features : dict of str to int
    node_id : int
    cluster_id : str or None
    """

    def __init__(
        self,
        log_directory: LockedLogDirectory,
        clock: Callable[[], int],
        new_uuid: Callable[[], bytes],
        node_id: int,
        *,
        was_clean: bool,
        adopts_partitions: bool = False,
    ) -> None:
        self._log_directory = log_directory
        self._folder = log_directory.path / f"{CLUSTER_METADATA}-0"
        self._clock, self._new_uuid = clock, new_uuid
        self._writer: MetadataLogWriter | None = None
        self._first_free_id = self._end_of_ids = 0
        self._topics: dict[str, Topic] = {}
        self._lock = threading.RLock()
        self._is_halfway = False
        self.features: dict[str, int] = {}
        self._is_registered = False
        directory_content = Found()
        if adopts_partitions and not self._is_there():
            directory_content = found_partitions(log_directory.path, new_uuid)
        self._adopts = adopts_partitions
        properties = self._properties() or self._format(node_id)
        self.node_id = int(properties["node.id"])
        self.cluster_id = properties.get("cluster.id")
        self.directory_id = properties.get("directory.id", _UNASSIGNED)
        if not was_clean:
            self._recover()
        self._load()
        if not self.features:
            features = self._encoded("FeatureLevelRecord", [_feature(*each) for each in FEATURES.items()])
            ids = [self._ids_row(directory_content.next_producer_id)] if directory_content.next_producer_id else []
            topics = self._records_of(directory_content.topics)
            self._append([features, self._registration(), *topics, self._encoded("ProducerIdsRecord", ids)])
            self.features = dict(FEATURES)
            self._topics.update({topic.name: topic for topic in directory_content.topics})
            self._first_free_id = self._end_of_ids = directory_content.next_producer_id
        elif not self._is_registered:
            self._append([self._registration()])

    @property
    def topics(self) -> dict[str, Topic]:
        """The topics by name."""
        if self._is_halfway:
            self._make_whole()
        return self._topics

    def log_end(self) -> LogEnd:
        """Return the leader epoch and the end of the metadata log.

        Raises
        ------
        RecordError
            When it is damaged there.
        """
        faults: list[Fault] = []
        with self._lock:
            end = log_end(PartitionFolder.of(self._folder).segments, faults)
        for fault in faults:
            raise error_from_fault(fault)
        return end

    def new_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        """Return a new topic without writing it."""
        return Topic(name, self._new_uuid(), (0,) * partitions, configs)

    def create(self, topics: Iterable[Topic]) -> None:
        """Write topics to the metadata log, all of them or none."""
        topics = list(topics)
        with self._step():
            self._append(self._records_of(topics))
            self._topics.update({topic.name: topic for topic in topics})

    def _records_of(self, topics: list[Topic]) -> list[list[bytes]]:
        topic_rows: list[Row] = [{"name": topic.name, "topic_id": uuid_text(topic.topic_id)} for topic in topics]
        config_rows: list[Row] = [
            _config_row(topic.name, key, value) for topic in topics for key, value in topic.configs.items()
        ]
        partition_rows = [self._partition_row(topic, at) for topic in topics for at in range(topic.partitions)]
        return [
            self._encoded("TopicRecord", topic_rows),
            self._encoded("ConfigRecord", config_rows),
            self._encoded("PartitionRecord", partition_rows),
        ]

    def add_partitions(self, topic: Topic, partitions: int) -> Topic:
        """Write new partitions of a topic; return it with them."""
        grown = replace(topic, leader_epochs=topic.leader_epochs + (0,) * (partitions - topic.partitions))
        rows = [self._partition_row(grown, at) for at in range(topic.partitions, partitions)]
        with self._step():
            self._append([self._encoded("PartitionRecord", rows)])
            self._topics[topic.name] = grown
        return grown

    def set_configs(self, topic: Topic, configs: Mapping[str, str | None]) -> Topic:
        """Write configurations of a topic, of which None has Kafka's default; return it with them."""
        merged = {key: value for key, value in {**topic.configs, **configs}.items() if value is not None}
        rows = [_config_row(topic.name, key, value) for key, value in configs.items()]
        changed = replace(topic, configs=merged)
        with self._step():
            self._append([self._encoded("ConfigRecord", rows)])
            self._topics[topic.name] = changed
        return changed

    def delete(self, topic: Topic) -> None:
        """Remove a topic from the metadata log."""
        with self._step():
            self._append([self._encoded("RemoveTopicRecord", [{"topic_id": uuid_text(topic.topic_id)}])])
            del self._topics[topic.name]

    def next_producer_id(self) -> int:
        """Return an unused producer id; its block is written before the first id of the block is returned."""
        if self._first_free_id >= self._end_of_ids:
            with self._step():
                self._first_free_id, end = self._end_of_ids, self._end_of_ids + PRODUCER_ID_BLOCK
                self._append([self._encoded("ProducerIdsRecord", [self._ids_row(end)])])
                self._end_of_ids = end
        self._first_free_id += 1
        return self._first_free_id - 1

    def _ids_row(self, end: int) -> Row:
        return {"broker_id": self.node_id, "broker_epoch": -1, "next_producer_id": end}

    def close(self) -> None:
        """Close the metadata log."""
        if self._writer is not None:
            self._writer.close()

    def _properties(self) -> dict[str, str] | None:
        path = self._log_directory.path / META_PROPERTIES
        if disk().entry(path) is None:
            return None
        lines = disk().read_bytes(path).decode().splitlines()
        properties = {
            key.strip(): value.strip() for key, is_row, value in (line.partition("=") for line in lines) if is_row
        }
        if "node.id" not in properties:
            raise ValueError(f"{path}: expected node.id of a KRaft log directory, found none")
        return properties

    def _format(self, node_id: int) -> dict[str, str]:
        path = self._log_directory.path / META_PROPERTIES
        other = [entry.name for entry in disk().entries(path.parent) if entry.name.rpartition("-")[2].isdigit()]
        if other and not self._adopts:
            raise ValueError(
                f"{path.parent}: {other[0]} is there, but no {META_PROPERTIES}; an empty folder or a log directory of "
                "KRaft expected"
            )
        return write_meta_properties(path.parent, uuid_text(self._new_uuid()), node_id, self._new_uuid())

    def _is_there(self) -> bool:
        return disk().entry(self._folder) is not None and bool(PartitionFolder.of(self._folder).segments)

    def _recover(self) -> None:
        """Truncate what a crash left after the end of the metadata log, as a new controller does."""
        if self._is_there():
            self._open_writer()

    def _load(self) -> None:
        if not self._is_there():
            return
        from kraftlog.log_store.cluster_records import read_cluster

        state = read_cluster(self._folder, self.node_id)
        self.features = dict(state.features)
        self._topics = {topic.name: topic for topic in state.topics}
        self._first_free_id = self._end_of_ids = state.next_producer_id
        self._is_registered = state.is_registered

    def _registration(self) -> list[bytes]:
        """Return the registration of the node, as one that is not running.

        A coordinator takes partitions for deleted when no broker is registered as their leader, and completes their
        transactions without markers (``KRaftMetadataCache.getPartitionLeaderEndpoint``). With a broker without
        endpoints, it waits for the registration of the node that is starting.
        """
        row: Row = {
            "broker_id": self.node_id,
            "incarnation_id": self.directory_id,  # any: each start of a node has its own
            "broker_epoch": 0,
            "end_points": [],
            "features": [],
            "rack": None,
            "fenced": True,
            "log_dirs": [] if self.directory_id == _UNASSIGNED else [self.directory_id],
        }
        return self._encoded("RegisterBrokerRecord", [row])

    def _partition_row(self, topic: Topic, partition: int) -> Row:
        return {
            "partition_id": partition,
            "topic_id": uuid_text(topic.topic_id),
            "replicas": [self.node_id],
            "isr": [self.node_id],
            "leader": self.node_id,
            "leader_epoch": topic.leader_epochs[partition],
            "partition_epoch": 0,
            "directories": [self.directory_id],
        }

    def _encoded(self, name: str, rows: list[Row]) -> list[bytes]:
        version = record_version(name, self.features.get("metadata.version", FEATURES["metadata.version"]))
        api_key = BUILT_IN.messages[name].api_key
        assert version is not None
        assert api_key is not None
        return [frame(api_key, version) + encode_message(name, version, row) for row in rows]

    @contextmanager
    def _step(self) -> Iterator[None]:
        """Change the metadata log, and topics and ids in memory, in one step, as ``Partition`` does."""
        with self._lock:
            self._make_whole()
            self._is_halfway = True
            yield
            self._is_halfway = False

    def _make_whole(self) -> None:
        """Read the metadata log again after an exception such as KeyboardInterrupt has interrupted a step.

        After an error of the disk, every call fails until the store is reopened.
        """
        with self._lock, storage_errors():
            writer = self._writer
            if not self._is_halfway or (writer is not None and isinstance(writer.failure, OSError)):
                return
            self._writer = None
            if writer is not None:
                writer.close()
            self._recover()
            self._load()
            self._is_halfway = False

    def _append(self, records: list[list[bytes]]) -> None:
        """Append records in one transaction, or in one batch if they fit."""
        writer = self._open_writer()
        values = [value for each in records for value in each]
        if len(values) <= 16:
            writer.append(values)
            return
        with writer.transaction("topics") as transaction:
            transaction.append(values)

    def _open_writer(self) -> MetadataLogWriter:
        """Open the metadata log for writing under a new epoch, as a new controller does."""
        if self._writer is None:
            self._writer = MetadataLogWriter(
                self._folder,
                None,
                metadata_version=self.features.get("metadata.version", FEATURES["metadata.version"]),
                node_id=self.node_id,
                voters=(self.node_id,),
                clock=self._clock,
                log_directory=self._log_directory,
            )
        return self._writer


def _config_row(topic: str, key: str, value: str | None) -> Row:
    return {"resource_type": TOPIC_RESOURCE, "resource_name": topic, "name": key, "value": value}


def _feature(name: str, level: int) -> Row:
    return {"name": name, "feature_level": level}
