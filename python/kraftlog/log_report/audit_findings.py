"""Findings of an audit, those of each code together."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby

from kraftlog.log_report.facts import Facts
from kraftlog.log_report.finding import DETAILS, SHOWN, Finding, place

_OF_REPORT = ("open_transaction", "hanging_transaction")  # the report's own findings cover all of them


def audit_findings(facts: Facts, kinds: Collection[str]) -> Iterator[Finding]:
    """Return the findings of the audit.

    Parameters
    ----------
    facts : Facts
    kinds : collection of str
        Kinds of other findings of the report: the same facts say nothing new.
    """
    for code, group in groupby(facts.audit, key=lambda one: one.code):
        each = list(group)
        if not {code.name, *code.faults}.isdisjoint((*kinds, *_OF_REPORT)):
            continue
        places = list(dict.fromkeys(place(one.topic, one.partition) for one in each))
        commands = dict.fromkeys(one.next_command for one in each if one.next_command is not None)
        yield Finding(
            str(code.severity),
            code.name,
            f"{code.name.replace('_', ' ')} ({len(each):,})",
            code.meaning,
            places[:SHOWN],
            max(len(places) - SHOWN, 0),
            [one.known for one in each[:DETAILS]],
            [*commands][:SHOWN],
        )
