"""All findings, the worst first, and the limits of the files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from kraftlog.log_report.audit_findings import audit_findings
from kraftlog.log_report.cluster_findings import cluster_findings
from kraftlog.log_report.facts import Facts
from kraftlog.log_report.finding import SEVERITIES, Finding, counted
from kraftlog.log_report.group_findings import group_findings
from kraftlog.log_report.log_findings import log_findings
from kraftlog.log_report.transaction_findings import transaction_findings
from kraftlog.topics import CLUSTER_METADATA, CONSUMER_OFFSETS, TRANSACTION_STATE


def findings(facts: Facts) -> list[Finding]:
    """Return all findings, errors first."""
    found = [*log_findings(facts), *transaction_findings(facts), *group_findings(facts), *cluster_findings(facts)]
    found += audit_findings(facts, {one.kind for one in found})
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


def worst(found: Iterable[Finding]) -> str | None:
    """Return the severity of the worst finding; None without findings."""
    return min((one.severity for one in found), key=SEVERITIES.index, default=None)


def verdict(found: Iterable[Finding]) -> str:
    """Return the number of findings of each severity."""
    severities = [one.severity for one in found]
    counts = [(severities.count(name), name) for name in SEVERITIES]
    parts = [counted(count, name, f"{name}s") for count, name in counts if count]
    return ", ".join(parts) if parts else "Nothing wrong was found"


def absent(facts: Facts) -> list[str]:
    """Return notes on missing files."""
    found = []
    if facts.groups is None:
        found.append(f"No {CONSUMER_OFFSETS} among the files: nothing is known of groups and their lag.")
    if not facts.knows_coordinators:
        found.append(f"No {TRANSACTION_STATE} among the files: whether open transactions hang is not known.")
    if facts.cluster is None:
        found.append(f"No {CLUSTER_METADATA} among the files: nothing is known of brokers, leaders and replicas.")
    if any(one.topic is None for one in facts.partitions):
        found.append("Some files lie in no partition's folder: their topics are not known.")
    return found


def short_path(path: str) -> str:
    """Return the last parts of a path."""
    parts = PurePath(path).parts
    return path if len(parts) <= 3 else "/".join(("...", *parts[-2:]))
