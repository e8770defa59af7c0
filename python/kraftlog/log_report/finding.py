"""``Finding``, and its texts for places and numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

ERROR, WARNING, NOTE = SEVERITIES = ("error", "warning", "note")
SHOWN = 6  # maximum places and commands of a finding
DETAILS = 3


@dataclass(frozen=True)
class Finding:
    """Something that needs attention, or is worth knowing.

    Attributes
    ----------
    severity : {"error", "warning", "note"}
    kind : str
        The error, check or state.
    title : str
        Number and name.
    text : str
        Meaning, and what to do next.
    where : list of str
        The first places.
    more : int
        Number of other places.
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
    """Return a number and a noun.

    Examples
    --------
    >>> from kraftlog.log_report.finding import counted
    >>> counted(1, "batch", "batches"), counted(2000, "batch", "batches")
    ('1 batch', '2,000 batches')
    """
    return f"{count:,} {one if count == 1 else many}"


def place(topic: str | None, partition: int | None) -> str:
    """Return the name of a partition, of a topic, or of files outside of partition folders."""
    return "files" if topic is None else topic if partition is None else f"{topic}-{partition}"


def places(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return the partition names of rows, without duplicates."""
    return list(dict.fromkeys(place(row["topic"], row["partition"]) for row in rows))
