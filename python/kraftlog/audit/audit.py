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
from kraftlog.errors import Fault
from kraftlog.layout.discover import READINGS, Discovery
from kraftlog.topics import COORDINATOR_TOPICS

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


UNREADABLE_FILE = "unreadable_file"
Of = tuple[str | None, int | None]
NOWHERE: Of = (None, None)


def findings(evidence: Evidence) -> list[Finding]:
    """Return the findings of all checks, the worst first.

    A broker that runs replaces and deletes files while they are read. What was found in partitions to which that
    happened is dropped, and they are listed and read again. ``evidence.read`` receives the faults that remain.
    """
    found: list[Finding] = []
    now = evidence.apart()
    for left in reversed(range(READINGS)):
        some, has_faults = _checked(now), bool(now.read.faults)
        again = now.files.listed_again() if some or has_faults else None
        stale = set() if again is None else _stale(now, again)
        if left:
            some = [one for one in some if (one.topic, one.partition) not in stale]
            now.read.faults[:] = [one for one in now.read.faults if (one.topic, one.partition) not in stale]
        found += [one for one in some if one not in found]
        known = {(one, one.replica) for one in evidence.read.faults}
        faults = dict.fromkeys((one, one.replica) for one in now.read.faults)
        evidence.read.add(*(one for one, replica in faults if (one, replica) not in known))
        if again is None or not stale or not left:
            evidence.read.notes.extend(now.lines.metadata_notes)
            break
        now = now.only(again, stale)
    return sorted(found, key=lambda one: one.order)


def _checked(evidence: Evidence) -> list[Finding]:
    """Return the findings of all checks; a check that cannot read a file is a fault."""
    found: list[Finding] = []
    for check in CHECKS:
        try:
            found += check(evidence)
        except OSError as error:
            evidence.read.add(Fault(UNREADABLE_FILE, str(error)))
    return found


def _stale(evidence: Evidence, again: Discovery) -> set[Of]:
    """Return the partitions of which files were deleted or replaced while they were read.

    These are all of them, and what is of no partition, if files on which all checks depend could not be read.
    """
    changed: set[Of] = {*evidence.changed(again)}
    every: set[Of] = {(one.topic, one.partition) for one in evidence.files.segments}
    unreadable: set[Of] = {(one.topic, one.partition) for one in evidence.read.faults if one.error == UNREADABLE_FILE}
    coordinators = {one for one in unreadable if one[0] in COORDINATOR_TOPICS}
    is_of_coordinators = any(one in changed or one not in every for one in coordinators)  # these were listed for it
    is_unknown = NOWHERE in unreadable and bool(changed)
    is_of_all = is_of_coordinators or is_unknown or evidence.is_metadata_changed(again)
    return {*every, NOWHERE} if is_of_all else changed


def findings(evidence: Evidence) -> list[Finding]:
    """Return the findings of all checks, the worst first; ``evidence.read`` receives the faults that remain."""
    return settled(evidence.apart(), CHECKS, evidence.read)


def finding_codes() -> list[FindingCode]:
    """Return the codes of all findings, the worst first: those that the modules of this package define."""
    modules = [import_module(f"{audit.__name__}.{one.name}") for one in pkgutil.iter_modules(audit.__path__)]
    codes = {value for module in modules for value in vars(module).values() if isinstance(value, FindingCode)}
    return sorted(codes, key=lambda one: (one.severity, one.name))
