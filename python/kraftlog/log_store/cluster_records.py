"""The cluster in the metadata log of a store: topics with their configs, features, producer ids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kraftlog.errors import Fault, error_from_fault
from kraftlog.log_store.topics import Topic
from kraftlog.metadata.kafka_names import TOPIC_RESOURCE
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at

_TYPES = (
    "TopicRecord",
    "PartitionRecord",
    "ConfigRecord",
    "ProducerIdsRecord",
    "FeatureLevelRecord",
    "RegisterBrokerRecord",
)


@dataclass(frozen=True)
class ClusterRecords:
    """The cluster at the end of a metadata log.

    Attributes
    ----------
    topics : tuple of Topic
    features : tuple of (str, int)
        Names and levels.
    next_producer_id : int
        The first id after all allocated blocks.
    is_registered : bool
        Whether the node is registered.
    """

    topics: tuple[Topic, ...]
    features: tuple[tuple[str, int], ...]
    next_producer_id: int
    is_registered: bool


def read_cluster(folder: Path, node_id: int) -> ClusterRecords:
    """Read a metadata log.

    Raises
    ------
    RecordError
        When it is damaged.
    ValueError
        When a partition is on another node.
    """
    faults: list[Fault] = []
    at = image_at(MetadataLog.open(folder), None, faults)
    for fault in faults:
        raise error_from_fault(fault)
    rows = {name: table.to_pylist() for name, table in at.image.tables(_TYPES).items()}
    epochs: dict[bytes, dict[int, int]] = {}
    for row in rows["PartitionRecord"]:
        if row["replicas"] != [node_id]:
            raise ValueError(
                f"{folder.parent}: a partition has the replicas {row['replicas']}, not [{node_id}]; "
                "only a cluster of one node can be opened"
            )
        epochs.setdefault(row["topic_id"], {})[row["partition_id"]] = row["leader_epoch"]
    configs: dict[str, dict[str, str]] = {}
    for row in rows["ConfigRecord"]:
        if row["resource_type"] == TOPIC_RESOURCE:
            configs.setdefault(row["resource_name"], {})[row["name"]] = row["value"]
    topics = []
    for row in rows["TopicRecord"]:
        name, epochs_of_topic = row["name"], epochs.get(row["topic_id"], {})
        leader_epochs = tuple(epochs_of_topic[at] for at in sorted(epochs_of_topic))
        topics.append(Topic(name, row["topic_id"], leader_epochs, configs.get(name, {})))
    features = tuple((row["name"], row["feature_level"]) for row in rows["FeatureLevelRecord"])
    ids = [row["next_producer_id"] for row in rows["ProducerIdsRecord"]]
    is_registered = any(row["broker_id"] == node_id for row in rows["RegisterBrokerRecord"])
    return ClusterRecords(tuple(topics), features, ids[-1] if ids else 0, is_registered)
