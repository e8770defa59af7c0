"""Settings of topics in the metadata log against the batches and replicas that there are.

A setting may have changed after batches were written: findings say what follows from it from now on.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from kraftlog.audit.cluster_image import ClusterImage
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.codec.options import ReadOptions
from kraftlog.read.partitions import Partition, is_metadata
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.read import Read
from kraftlog.topics import CLUSTER_METADATA, COORDINATOR_TOPICS

_IMAGE = "A metadata log has the setting, of the topic or of all brokers."
_UNCLEAN = "unclean.leader.election.enable"

COMPACTED_WITHOUT_KEY = FindingCode(
    "compacted_without_key",
    Severity.WARNING,
    "The log cleaner deletes these records: the topic was not compacted when they were written.",
    f"{_IMAGE} It is cleanup.policy with compact. The records are after the cleaner's checkpoint, if there is one.",
)
WAS_COMPACTED = FindingCode(
    "was_compacted",
    Severity.NOTE,
    "The topic keeps all records now, but a log cleaner removed some of them when it was compacted.",
    f"{_IMAGE} It is cleanup.policy without compact. A batch has fewer records than offsets.",
)
BATCH_ABOVE_LIMIT = FindingCode(
    "batch_above_limit",
    Severity.NOTE,
    "The limit was lowered after the batch was written: a replay or a mirror of the batch as it is would be refused.",
    f"{_IMAGE} It is max.message.bytes.",
)
FEW_REPLICAS = FindingCode(
    "few_replicas",
    Severity.NOTE,
    "min.insync.replicas is greater than the number of replicas: producers with acks=all are refused, by newer brokers"
    " as soon as one replica is out of sync.",
    f"{_IMAGE} The metadata log has the partition.",
)
UNCLEAN_ELECTIONS = FindingCode(
    "unclean_elections",
    Severity.NOTE,
    "An election may lose committed records, also of producers with acks=all.",
    f"{_IMAGE} It is {_UNCLEAN}.",
)


def records_without_keys(evidence: Evidence) -> Iterator[Finding]:
    """Return partitions of compacted topics that have records without a key."""
    cluster = evidence.cluster
    for partition in evidence.lines.partitions if cluster is not None else ():
        of = partition.segments[0].topic_partition
        assert cluster is not None
        if (
            of is not None
            and of.topic not in COORDINATOR_TOPICS
            and not is_metadata(partition.segments[0])
            and "compact" in (cluster.config(of.topic, "cleanup.policy") or "")
        ):
            offset = _first_without_key(evidence, partition)
            if offset is not None:
                known = f"the record at offset {offset} has no key, and cleanup.policy is "
                known += f"{cluster.config(of.topic, 'cleanup.policy')}"
                yield Finding(
                    COMPACTED_WITHOUT_KEY, known, *of, offset, next_command=evidence.from_offset("records", of, offset)
                )


def _first_without_key(evidence: Evidence, partition: Partition) -> int | None:
    first = evidence.checkpoints.cleaner_offset(partition.line) or 0
    options = ReadOptions(start_offset=max(first, partition.start_offset or 0))
    read = Read.of_segments(TABLES["records"], partition.segments, ["offset", "key"], options, [])
    for rows in read.rows():
        if rows.column("key").null_count:
            without = rows.column("offset").filter(pc.is_null(rows.column("key")))
            return int(without[0].as_py())
    return None


def settings_of_batches(evidence: Evidence) -> Iterator[Finding]:
    """Return partitions with batches that their topic's settings would not allow."""
    cluster = evidence.cluster
    for of, log in evidence.producer_logs.logs.items() if cluster is not None else ():
        assert cluster is not None
        policy = cluster.config(of.topic, "cleanup.policy")
        is_own = of.topic not in COORDINATOR_TOPICS
        if is_own and policy is not None and "compact" not in policy and log.first_cleaned is not None:
            known = f"the batch at offset {log.first_cleaned} lacks records, and cleanup.policy is {policy}"
            shown = evidence.from_offset("batches", of, log.first_cleaned)
            yield Finding(WAS_COMPACTED, known, *of, log.first_cleaned, next_command=shown)
        limit = cluster.number(of.topic, "max.message.bytes")
        size, offset = log.largest
        if limit is not None and size > limit:
            known = f"the batch at offset {offset} has {size} bytes, and max.message.bytes is {limit:.0f}"
            shown = evidence.from_offset("batches", of, offset)
            yield Finding(BATCH_ABOVE_LIMIT, known, *of, offset, next_command=shown)


def settings_of_replicas(evidence: Evidence) -> Iterator[Finding]:
    """Return topics whose settings do not suit their replicas, or risk records."""
    cluster = evidence.cluster
    if cluster is None:
        return
    for of, partition in sorted(cluster.partitions.items()):
        least = cluster.number(of.topic, "min.insync.replicas")
        if least is not None and least > len(partition.replicas) and evidence.is_selected(of):
            known = f"the replicas are {list(partition.replicas)}, and min.insync.replicas is {least:.0f}"
            yield Finding(FEW_REPLICAS, known, *of)
    yield from _unclean_elections(evidence, cluster)


def _unclean_elections(evidence: Evidence, cluster: ClusterImage) -> Iterator[Finding]:
    topics = sorted({of.topic for of in cluster.partitions if evidence.is_selected(of)})
    for topic in topics:
        if cluster.topic_configs(topic).get(_UNCLEAN) == "true":
            yield Finding(UNCLEAN_ELECTIONS, f"{_UNCLEAN} of the topic is true", topic)
    if cluster.config(CLUSTER_METADATA, _UNCLEAN) == "true":
        yield Finding(UNCLEAN_ELECTIONS, f"{_UNCLEAN} of all brokers is true")


CHECKS = (records_without_keys, settings_of_batches, settings_of_replicas)
