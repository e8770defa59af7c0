"""All checks of an audit."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module

from kraftlog import audit
from kraftlog.audit import cluster, retention, settings, side_files
from kraftlog.audit.committed_offsets import committed_offsets
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode
from kraftlog.audit.loss_ledger import lost_lines
from kraftlog.audit.lost_markers import lost_markers
from kraftlog.audit.producers import (
    epoch_findings,
    impossible_headers,
    late_begins,
    plain_batches,
    sequence_findings,
    suspected_duplicates,
)
from kraftlog.audit.replicas import replicas_that_differ
from kraftlog.audit.settled import settled
from kraftlog.audit.transactions import (
    coordinator_transitions,
    marker_epochs,
    markers_without_decision,
    markers_without_records,
    open_transactions,
    torn_transactions,
)

Check = Callable[[Evidence], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    replicas_that_differ,
    lost_lines,
    lost_markers,
    torn_transactions,
    markers_without_decision,
    markers_without_records,
    marker_epochs,
    coordinator_transitions,
    open_transactions,
    sequence_findings,
    epoch_findings,
    plain_batches,
    impossible_headers,
    late_begins,
    suspected_duplicates,
    committed_offsets,
    *retention.CHECKS,
    *settings.CHECKS,
    *side_files.CHECKS,
    *cluster.CHECKS,
)


def findings(evidence: Evidence) -> list[Finding]:
    """Return the findings of all checks, the worst first; ``evidence.read`` receives the faults that remain."""
    return settled(evidence.apart(), CHECKS, evidence.read)


def finding_codes() -> list[FindingCode]:
    """Return the codes of all findings, the worst first: those that the modules of this package define."""
    modules = [import_module(f"{audit.__name__}.{one.name}") for one in pkgutil.iter_modules(audit.__path__)]
    codes = {value for module in modules for value in vars(module).values() if isinstance(value, FindingCode)}
    return sorted(codes, key=lambda one: (one.severity, one.name))
