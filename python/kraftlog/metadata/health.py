"""What is not well in a cluster, as its metadata image says: a row for each partition, broker or config concerned."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.metadata.image import Image
from kraftlog.metadata.kafka_names import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftlog.metadata.record_types import BROKERS, CONFIGS, PARTITIONS, TOPICS
from kraftlog.schema import TableSchema

HEALTH = TableSchema(
    "health",
    "a partition, broker or config of a metadata image that needs attention",
    {
        "check": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "broker_id": pa.int32(),
        "message": pa.string(),
    },
)
MIN_ISR = "min.insync.replicas"
DEFAULT_MIN_ISR = 1
_IS_INT = re.compile(r"\s*[0-9]{1,9}\s*")  # others Kafka takes for no number, or for more than any partition has

Rows = npt.NDArray[np.intp]


def health(image: Image) -> pa.Table:
    """Return what is not well.

    Parameters
    ----------
    image : Image

    Returns
    -------
    pyarrow.Table
        Columns of ``HEALTH``. ``check`` is one of

        - ``offline``: a partition has no leader;
        - ``under_min_isr``: fewer replicas are in sync than ``min.insync.replicas`` of the topic, else of the cluster,
          else 1; what ``server.properties`` of a broker sets is not in the image;
        - ``under_replicated``: fewer are in sync than there are replicas, those left out that a reassignment adds;
        - ``elr_in_use``: eligible leader replicas stand in for replicas that are in sync (KIP-966);
        - ``unregistered_replica``: a replica's broker is not registered;
        - ``leader_imbalance``: how many of the partitions that prefer a broker as their leader have another one;
        - ``fenced_broker``: a broker is registered and fenced;
        - ``orphaned_config``: a config of a topic or broker that is not there.

    Examples
    --------
    >>> import kraftlog
    >>> from kraftlog.metadata.health import health
    >>> at = kraftlog.open("tests/golden/metadata/log").image()
    >>> health(at.image).slice(63).select(["check", "broker_id", "message"]).to_pylist()[1]
    {'check': 'fenced_broker', 'broker_id': 1, 'message': 'fenced, in controlled shutdown'}
    """
    tables = image.tables()
    findings = [*_of_partitions(tables), *_of_brokers(tables), *_of_configs(tables)]
    return pa.concat_tables([HEALTH.select().empty_table(), *findings])


def _of_partitions(tables: Mapping[str, pa.Table]) -> Iterator[pa.Table]:
    partitions = tables[PARTITIONS.name].combine_chunks()
    topics = tables[TOPICS.name]
    names = topics.column("name").take(pc.index_in(partitions.column("topic_id"), topics.column("topic_id")))
    leader = partitions.column("leader").to_numpy()
    in_sync, replicas, adding = (_lengths(partitions, name) for name in ("isr", "replicas", "adding_replicas"))
    least = min_isr(tables[CONFIGS.name], names)
    eligible = _lengths(partitions, "eligible_leader_replicas")

    def rows(check: str, at: Rows, message: pa.Array, broker: pa.Array | None = None) -> pa.Table:
        topic, partition = (column.take(pa.array(at)) for column in (names, partitions.column("partition_id")))
        return _table(check, message, topic, partition, broker)

    def counted(at: Rows, *parts: str | npt.NDArray[np.int64]) -> pa.Array:
        return _text([part if isinstance(part, str) else part[at] for part in parts])

    at = np.flatnonzero(leader < 0)
    yield rows("offline", at, pa.repeat("no leader", len(at)))
    at = np.flatnonzero(in_sync < least)
    yield rows("under_min_isr", at, counted(at, "", in_sync, f" in sync, {MIN_ISR} ", least, ""))
    at = np.flatnonzero(in_sync < replicas - adding)
    yield rows("under_replicated", at, counted(at, "", in_sync, " in sync of ", replicas - adding, " replicas"))
    at = np.flatnonzero(eligible > 0)
    yield rows("elr_in_use", at, counted(at, "", eligible, " eligible leader replicas"))
    flat = partitions.column("replicas").combine_chunks()
    of, broker = pc.list_parent_indices(flat).to_numpy(), flat.flatten()
    is_there = pc.is_in(broker, tables[BROKERS.name].column("broker_id").combine_chunks())
    lost = np.flatnonzero(~is_there.to_numpy(zero_copy_only=False))
    broker = broker.take(pa.array(lost))
    yield rows("unregistered_replica", of[lost], _text(["broker ", broker.to_numpy(), " is not registered"]), broker)


def _of_brokers(tables: Mapping[str, pa.Table]) -> Iterator[pa.Table]:
    partitions = tables[PARTITIONS.name].combine_chunks()
    leader = partitions.column("leader").to_numpy()
    has_replicas = _lengths(partitions, "replicas") > 0
    some = partitions.column("replicas").filter(pa.array(has_replicas))
    preferred = pc.list_element(some, 0).to_numpy()
    brokers, of = np.unique(preferred, return_inverse=True)
    every, others = np.bincount(of), np.bincount(of[leader[has_replicas] != preferred], minlength=len(brokers))
    at = np.flatnonzero(others)
    message = _text(["", others[at], " of ", every[at], " partitions that prefer it have another leader, or none"])
    yield _table("leader_imbalance", message, broker=pa.array(brokers[at], pa.int32()))
    registered = tables[BROKERS.name]
    fenced = registered.filter(registered.column("fenced"))
    words = pc.if_else(fenced.column("in_controlled_shutdown"), "fenced, in controlled shutdown", "fenced")
    yield _table("fenced_broker", words, broker=fenced.column("broker_id"))


def _of_configs(tables: Mapping[str, pa.Table]) -> Iterator[pa.Table]:
    configs = tables[CONFIGS.name]
    kind, resource = configs.column("resource_type"), configs.column("resource_name")
    topics, brokers = tables[TOPICS.name].column("name"), tables[BROKERS.name].column("broker_id").cast(pa.string())
    lost_topic = pc.and_(pc.equal(kind, TOPIC_RESOURCE), pc.invert(pc.is_in(resource, topics.combine_chunks())))
    of_topics = configs.filter(lost_topic)
    message = pc.binary_join_element_wise(of_topics.column("name"), " is set, and there is no such topic", "")
    yield _table("orphaned_config", message, of_topics.column("resource_name"))
    is_other = pc.and_(pc.equal(kind, BROKER_RESOURCE), pc.not_equal(resource, ""))  # of all brokers it has no name
    of_brokers = configs.filter(pc.and_(is_other, pc.invert(pc.is_in(resource, brokers.combine_chunks()))))
    message = pc.binary_join_element_wise(
        of_brokers.column("name"),
        " is set for broker ",
        of_brokers.column("resource_name"),
        ", which is not registered",
        "",
    )
    yield _table("orphaned_config", message)


def min_isr(configs: pa.Table, topics: pa.Array) -> npt.NDArray[np.int64]:
    """Return how many replicas of each partition must be in sync: of the topic, else of the cluster, else 1.

    Parameters
    ----------
    configs : pyarrow.Table
        ``ConfigRecord`` of an image.
    topics : pyarrow.Array
        The name of the topic of each partition.
    """
    of_name = configs.filter(pc.equal(configs.column("name"), MIN_ISR)).to_pylist()
    least = {
        (row["resource_type"], row["resource_name"]): int(row["value"])
        for row in of_name
        if _IS_INT.fullmatch(row["value"])
    }
    others = least.get((BROKER_RESOURCE, ""), DEFAULT_MIN_ISR)
    of_topics = {name: value for (kind, name), value in least.items() if kind == TOPIC_RESOURCE}
    at = pc.index_in(topics, pa.array(list(of_topics), pa.string()))
    values = pa.array(list(of_topics.values()), pa.int64()).take(at)
    return np.asarray(pc.fill_null(values, others), np.int64)


def _lengths(partitions: pa.Table, column: str) -> npt.NDArray[np.int64]:
    return np.asarray(pc.fill_null(pc.list_value_length(partitions.column(column)), 0), np.int64)


def _text(parts: list[str | npt.NDArray[np.int64]]) -> pa.Array:
    """Return a text for each row out of texts and numbers."""
    count = max(len(part) for part in parts if not isinstance(part, str))
    columns = [pa.repeat(part, count) if isinstance(part, str) else pa.array(part).cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*columns, "")


def _table(
    check: str,
    message: pa.Array,
    topic: pa.Array | None = None,
    partition: pa.Array | None = None,
    broker: pa.Array | None = None,
) -> pa.Table:
    count = len(message)
    given = {"check": pa.repeat(check, count), "topic": topic, "partition": partition, "broker_id": broker}
    columns = given | {"message": message}
    arrays = [
        pa.nulls(count, field.type) if (column := columns[field.name]) is None else column for field in HEALTH.select()
    ]
    return pa.table(arrays, schema=HEALTH.select())
