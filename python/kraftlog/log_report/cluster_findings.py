"""Findings about the cluster: those of ``kraftlog health`` in the metadata image, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kraftlog.log_report.facts import Facts
from kraftlog.log_report.finding import DETAILS, ERROR, NOTE, SHOWN, WARNING, Finding, counted, place
from kraftlog.tables.commands import kafka, kraftlog


@dataclass(frozen=True)
class _Check:
    severity: str
    one: str
    many: str
    text: str
    command: str


_CHECKS = {
    "offline": _Check(
        ERROR,
        "partition without a leader",
        "partitions without a leader",
        "Nobody reads or writes them. Start the brokers that were last in the ISR: an unclean election loses records.",
        kafka("kafka-topics.sh", "--describe", "--unavailable-partitions"),
    ),
    "under_min_isr": _Check(
        ERROR,
        "partition with fewer replicas in sync than min.insync.replicas",
        "partitions with fewer replicas in sync than min.insync.replicas",
        "Producers with acks=all are refused. Bring back the brokers that left the ISR; the timeline says when.",
        kafka("kafka-topics.sh", "--describe", "--under-min-isr-partitions"),
    ),
    "under_replicated": _Check(
        WARNING,
        "partition with a replica that is not in sync",
        "partitions with replicas that are not in sync",
        "One more broker that stops may take them offline. The timeline says which broker left the ISR.",
        kafka("kafka-topics.sh", "--describe", "--under-replicated-partitions"),
    ),
    "elr_in_use": _Check(
        WARNING,
        "partition that relies on eligible leader replicas",
        "partitions that rely on eligible leader replicas",
        "Their ISR is smaller than min.insync.replicas. Bring back the brokers that left it.",
        kafka("kafka-topics.sh", "--describe", "--under-min-isr-partitions"),
    ),
    "unregistered_replica": _Check(
        WARNING,
        "replica on a broker that is not registered",
        "replicas on brokers that are not registered",
        "Start these brokers, or move the replicas with kafka-reassign-partitions.sh.",
        kafka("kafka-reassign-partitions.sh", "--list"),
    ),
    "fenced_broker": _Check(
        WARNING,
        "broker that is fenced",
        "brokers that are fenced",
        "They are registered, and send no heartbeats. Their own logs, and the timeline below, say since when and why.",
        kafka("kafka-broker-api-versions.sh"),
    ),
    "leader_imbalance": _Check(
        NOTE,
        "broker that does not lead all partitions that prefer it",
        "brokers that do not lead all partitions that prefer them",
        "An election gives them the leadership back, once they are in sync.",
        kafka("kafka-leader-election.sh", "--election-type", "preferred", "--all-topic-partitions"),
    ),
    "orphaned_config": _Check(
        NOTE,
        "config of a topic or broker that is not there",
        "configs of topics or brokers that are not there",
        "They do nothing now, and will apply to a topic or broker of that name.",
        kafka("kafka-configs.sh", "--describe", "--entity-type", "topics"),
    ),
}
_OF_STOPPED = ("offline", "under_min_isr", "under_replicated", "fenced_broker")
_STOPPED = "All brokers are fenced: the cluster was stopped, or had not started yet, when this metadata log ended."


def cluster_findings(facts: Facts) -> Iterator[Finding]:
    """Return a finding for each check with rows; a stopped cluster is not an error."""
    if facts.cluster is None:
        return
    brokers = facts.cluster.brokers
    is_stopped = bool(brokers) and all(broker["fenced"] for broker in brokers)
    for name, (count, rows) in facts.cluster.checks.items():
        check = _CHECKS[name]
        is_of_stopped = is_stopped and name in _OF_STOPPED
        named = [(_name(row), row["message"]) for row in rows]
        yield Finding(
            NOTE if is_of_stopped else check.severity,
            name,
            counted(count, check.one, check.many),
            _STOPPED if is_of_stopped else check.text,
            [where for where, _ in named[:SHOWN]],
            count - len(named[:SHOWN]),
            [f"{where}: {message}" for where, message in named[:DETAILS]],
            [kraftlog("health", [str(facts.cluster.folder)]), *([] if is_of_stopped else [check.command])],
        )


def _name(row: dict[str, Any]) -> str:
    if row["topic"] is not None:
        return place(row["topic"], row["partition"])
    return "cluster" if row["broker_id"] is None else f"broker {row['broker_id']}"
