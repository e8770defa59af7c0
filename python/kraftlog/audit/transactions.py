"""Checks of transactions against each other and against their coordinators."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.transactions.producer import NONE

TORN_TRANSACTION = FindingCode(
    "torn_transaction",
    Severity.ERROR,
    "Some partitions of a transaction committed it and others did not, so that a consumer sees a part of it.",
    "The transaction is identified by its marker epoch or by __transaction_state.",
)


def torn_transactions(evidence: Evidence) -> Iterator[Finding]:
    """Return transactions whose partitions, or whose coordinator, contradict each other."""
    for one in evidence.producer_logs.transactions:
        contradiction = one.contradiction()
        if contradiction is not None:
            part, what = contradiction
            offset = part.marker_offset if part.has_ended else part.first_offset
            yield Finding(
                TORN_TRANSACTION,
                f"transaction {one.producer_id}:{one.producer_epoch}: {what}",
                part.of.topic,
                part.of.partition,
                None if offset == NONE else offset,
            )
