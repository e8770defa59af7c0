"""All checks of an audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding
from kraftlog.audit.transactions import torn_transactions

Check = Callable[[Evidence], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (torn_transactions,)


def findings(evidence: Evidence) -> list[Finding]:
    """Return the findings of all checks, the worst first."""
    return sorted((one for check in CHECKS for one in check(evidence)), key=lambda one: one.order)
