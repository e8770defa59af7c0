"""Findings about groups: offsets that the log does not have, and lag without members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftlog.log_report.facts import Facts
from kraftlog.log_report.finding import DETAILS, ERROR, NOTE, SHOWN, Finding, counted, place
from kraftlog.tables.commands import kafka, kraftlog

_SCRIPT = "kafka-consumer-groups.sh"
_LOST = (
    "Records were deleted before the group has read them. auto.offset.reset decides where it goes on; the first command"
    " shows how many are lost."
)
_AHEAD = (
    "The group has read records that are not in these files: the log was truncated or restored, or this copy is older"
    " than the offsets. Reset them before the group starts, or it goes on where auto.offset.reset says."
)


def group_findings(facts: Facts) -> Iterator[Finding]:
    """Return offsets out of range, and groups with lag but without members."""
    groups = facts.groups
    if groups is None:
        return
    if groups.lost:
        title = counted(
            groups.lost_count, "committed offset before the log start", "committed offsets before the log start"
        )
        yield _out_of_range(facts, "offset_before_log_start", title, _LOST, groups.lost, groups.lost_count)
    if groups.ahead:
        title = counted(
            groups.ahead_count, "committed offset behind the log end", "committed offsets behind the log end"
        )
        yield _out_of_range(facts, "offset_behind_log_end", title, _AHEAD, groups.ahead, groups.ahead_count)
    idle = sorted((one for one in groups.groups.values() if one.lag > 0 and not one.members), key=lambda one: -one.lag)
    if idle:
        yield Finding(
            NOTE,
            "idle_group",
            counted(len(idle), "group with lag and without members", "groups with lag and without members"),
            "Nobody reads for them. Start their consumers, or delete the groups that are no longer used.",
            [f"{one.name} ({one.lag:,})" for one in idle[:SHOWN]],
            max(len(idle) - SHOWN, 0),
            [row["sentence"] for one in idle for row in one.worst[:1] if row["lag"]][:DETAILS],
            _commands(facts, idle[0].name),
        )


def _out_of_range(facts: Facts, kind: str, title: str, text: str, rows: list[dict[str, Any]], count: int) -> Finding:
    named = [(f"{row['group']} in {place(row['topic'], row['partition'])}", row) for row in rows]
    return Finding(
        ERROR,
        kind,
        title,
        text,
        [name for name, _ in named[:SHOWN]],
        count - len(named[:SHOWN]),
        [row["sentence"] for _, row in named[:DETAILS]],
        _commands(facts, rows[0]["group"]),
    )


def _commands(facts: Facts, group: str) -> list[str]:
    return [kraftlog("lag", facts.paths, "--group", group), kafka(_SCRIPT, "--describe", "--group", group)]
