"""Findings about transactions of producers: hanging ones, and others that are open."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlog.log_report.facts import Facts
from kraftlog.log_report.finding import DETAILS, ERROR, NOTE, SHOWN, WARNING, Finding, counted, places
from kraftlog.tables.commands import kafka, kraftlog
from kraftlog.topics import TRANSACTION_STATE

LONG_OPEN_MS = 900_000  # default of transaction.max.timeout.ms


def transaction_findings(facts: Facts) -> Iterator[Finding]:
    """Return hanging and open transactions."""
    yield from _hanging(facts)
    yield from _open(facts)


def _hanging(facts: Facts) -> Iterator[Finding]:
    known = [row for row in facts.hanging if row["command"] is not None]
    if known:
        names = places(known)
        yield Finding(
            ERROR,
            "hanging_transaction",
            counted(facts.hanging_known, "hanging transaction", "hanging transactions"),
            "No coordinator ends such a transaction: read_committed consumers stop there, and the log cleaner, too."
            " See that the producer is gone, then abort it.",
            names[:SHOWN],
            max(len(names) - SHOWN, 0),
            [row["sentence"] for row in known[:DETAILS]],
            [kraftlog("hanging", facts.paths), *(row["command"] for row in known[:SHOWN])],
        )


def _open(facts: Facts) -> Iterator[Finding]:
    hanging = {(row["topic"], row["partition"], row["producer_id"]) for row in facts.hanging if row["command"]}
    others = [one for one in facts.transactions.open if one.key not in hanging]
    count = facts.transactions.counts["open"] - facts.hanging_known
    if count <= 0 or not others:
        return
    oldest = min((one.start_timestamp for one in others if one.start_timestamp >= 0), default=None)
    is_long = oldest is not None and facts.now - oldest > LONG_OPEN_MS
    names = list(dict.fromkeys(one.name for one in others))
    if facts.unread_partitions & {(one.topic, one.partition) for one in others}:
        why = "What cannot be read may hold their ends."
    elif facts.knows_coordinators:
        why = "Their transactional ids are known: the coordinator ends them when it runs."
    else:
        why = f"Whether a coordinator will end them is not known without {TRANSACTION_STATE}."
    long = " Some are older than 15 minutes, the longest timeout that brokers allow by default." if is_long else ""
    yield Finding(
        WARNING if is_long else NOTE,
        "open_transaction",
        counted(count, "open transaction", "open transactions"),
        f"read_committed consumers wait for their ends. {why}{long}",
        names[:SHOWN],
        max(len(names) - SHOWN, 0),
        [facts.waits[of] for of in dict.fromkeys(one.key[:2] for one in others) if of in facts.waits][:DETAILS],
        [
            kraftlog("transactional-ids" if facts.knows_coordinators else "hanging", facts.paths),
            kafka("kafka-transactions.sh", "list"),
        ],
    )
