"""The metadata image of a restored cluster: that of the source, with other nodes and replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kraftlog.backup.new_nodes import NewNode, Place
from kraftlog.backup.quorum import with_records
from kraftlog.metadata.image import Image
from kraftlog.metadata.schemas import schema_of

BROKER_EPOCH = 0  # of the registrations, and in the mark of a clean shutdown
TOPIC, _BROKER = 2, 4  # resource types
_MIN_ISR = "min.insync.replicas"
_REMOTE = "remote."  # configs of tiered storage: no broker starts with them that has no such storage

Row = dict[str, Any]


@dataclass(frozen=True)
class ReplicasOfPartition:
    """A partition in the new cluster.

    Attributes
    ----------
    topic, partition : str, int
        Its name in the new cluster.
    topic_id : bytes
    leader_epoch : int
    places : tuple of Place
        The leader first.
    """

    topic: str
    partition: int
    topic_id: bytes
    leader_epoch: int
    places: tuple[Place, ...]


def restored_image(
    image: Image,
    nodes: Sequence[NewNode],
    partitions: Iterable[ReplicasOfPartition],
    new_names: Mapping[str, str],
    next_producer_id: int,
    notes: list[str],
) -> Image:
    """Return the image of a new cluster with the topics of an image.

    Features, configs, ACLs, SCRAM credentials and quotas stay. Nodes, replicas and what depends on them are new: all
    replicas are in sync, and all nodes are registered and fenced, as after a shutdown. A coordinator takes partitions
    for deleted whose leader is not registered.

    Parameters
    ----------
    image : Image
    nodes : sequence of NewNode
    partitions : iterable of ReplicasOfPartition
        All partitions of the new cluster.
    new_names : mapping of str to str
        Of each topic of the new cluster, by its name in the image.
    next_producer_id : int
        The first one that no producer has.
    notes : list of str
        Receives what does not stay.
    """
    every = list(partitions)
    topics = {one.topic: one.topic_id for one in every}
    replicas = {one.topic: len(one.places) for one in every}
    rows: dict[str, list[Row]] = {
        "RegisterBrokerRecord": [_registration(node) for node in nodes],
        "RegisterControllerRecord": [],
        "TopicRecord": [{"name": name, "topic_id": topic_id} for name, topic_id in topics.items()],
        "PartitionRecord": [_partition(one) for one in every],
        "ConfigRecord": list(new_configs(_rows(image, "ConfigRecord"), new_names, replicas, len(nodes), notes.append)),
        "ProducerIdsRecord": [],
        "DelegationTokenRecord": [],
    }
    if next_producer_id:
        rows["ProducerIdsRecord"] = [
            {"broker_id": nodes[0].node_id, "broker_epoch": BROKER_EPOCH, "next_producer_id": next_producer_id}
        ]
    tokens = _rows(image, "DelegationTokenRecord")
    if tokens:
        which = "1 delegation token is" if len(tokens) == 1 else f"{len(tokens)} delegation tokens are"
        notes.append(f"{which} left out: ask for new ones")
    if _rows(image, "AccessControlEntryRecord"):
        notes.append("the cluster has ACLs: no broker heeds them before server.properties has an authorizer.class.name")
    return with_records(image, {name: pa.Table.from_pylist(some, schema_of(name)) for name, some in rows.items()})


def _rows(image: Image, name: str) -> list[Row]:
    rows: list[Row] = image.tables([name])[name].to_pylist()
    return rows


def _registration(node: NewNode) -> Row:
    return {
        "broker_id": node.node_id,
        "is_migrating_zk_broker": False,
        "incarnation_id": node.directory_ids[0],  # any: each start of a node has its own
        "broker_epoch": BROKER_EPOCH,
        "end_points": [],
        "features": [],
        "rack": None,
        "fenced": True,
        "in_controlled_shutdown": False,
        "log_dirs": sorted(node.directory_ids),
        "cordoned_log_dirs": [],
    }


def _partition(one: ReplicasOfPartition) -> Row:
    ids = [place.node.node_id for place in one.places]
    return {
        "partition_id": one.partition,
        "topic_id": one.topic_id,
        "replicas": ids,
        "isr": ids,
        "removing_replicas": [],
        "adding_replicas": [],
        "leader": ids[0],
        "leader_recovery_state": 0,
        "leader_epoch": one.leader_epoch,
        "partition_epoch": 0,
        "directories": [place.directory_id for place in one.places],
        "eligible_leader_replicas": None,
        "last_known_elr": None,
    }


def new_configs(
    rows: list[Row],
    new_names: Mapping[str, str],
    replicas: Mapping[str, int],
    nodes_count: int,
    note: Callable[[str], None],
) -> Iterable[Row]:
    """Return configs as those of a new cluster.

    Parameters
    ----------
    rows : list of dict
        Of the table ``ConfigRecord``.
    new_names : mapping of str to str
        Of each topic of the new cluster, by its name in the image.
    replicas : mapping of str to int
        How many a partition of a topic has, by its new name.
    nodes_count : int
    note : callable
        Receives what does not stay.
    """
    brokers, remote = set[str](), set[str]()
    for row in rows:
        kind, resource, name = row["resource_type"], row["resource_name"], row["name"]
        if kind == _BROKER and resource:
            brokers.add(resource)
            continue
        if kind == TOPIC and resource not in new_names:
            continue
        if kind == TOPIC and name.startswith(_REMOTE):
            remote.add(resource)
            continue
        if kind == TOPIC:
            row["resource_name"] = new_names[resource]
        most = replicas.get(row["resource_name"], nodes_count) if kind == TOPIC else nodes_count
        if name == _MIN_ISR and row["value"].isdecimal() and int(row["value"]) > most:
            whose = row["resource_name"] if kind == TOPIC else "all brokers"
            note(f"{whose}: {_MIN_ISR} is {most}, not {row['value']}, since there are no more replicas")
            row["value"] = str(most)
        yield row
    if brokers:
        note(f"configs of single brokers are left out: {', '.join(sorted(brokers))}")
    for topic in sorted(remote):
        note(f"{topic}: its configs of tiered storage are left out")
