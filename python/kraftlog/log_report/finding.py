"""``Finding``, and how places and numbers are named in one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

ERROR, WARNING, NOTE = SEVERITIES = ("error", "warning", "note")
SHOWN = 6  # places and commands of a finding
DETAILS = 3


@dataclass(frozen=True)
class Finding:
    """Something that needs attention, or that should be known.

    Attributes
    ----------
    severity : {"error", "warning", "note"}
    kind : str
        The error, check or state.
    title : str
        How many, and of what.
    text : str
        What it means, and what to do next.
    where : list of str
        The first places.
    more : int
        How many other places there are.
    details : list of str
        Sentences of the tables.
    commands : list of str
    """

    severity: str
    kind: str
    title: str
    text: str
    where: list[str] = field(default_factory=list)
    more: int = 0
    details: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


def counted(count: int, one: str, many: str) -> str:
    """Return a number and what it counts.

    Examples
    --------
    >>> from kraftlog.log_report.finding import counted
    >>> counted(1, "batch", "batches"), counted(2000, "batch", "batches")
    ('1 batch', '2,000 batches')
    """
    return f"{count:,} {one if count == 1 else many}"


def place(topic: str | None, partition: int | None) -> str:
    """Return the name of a partition, or of a topic, or that of files in no partition's folder."""
    return "files" if topic is None else topic if partition is None else f"{topic}-{partition}"


def places(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return the names of the partitions that rows are of, each once."""
    return list(dict.fromkeys(place(row["topic"], row["partition"]) for row in rows))
