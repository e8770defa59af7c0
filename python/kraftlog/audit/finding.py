"""``FindingCode`` and ``Finding``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class Severity(IntEnum):
    """How much a finding matters, the worst first."""

    ERROR = 0
    """Records are lost, or a guarantee of Kafka does not hold."""
    WARNING = 1
    """Something that an operator should look at."""
    NOTE = 2
    """Worth knowing; a healthy cluster may have it."""

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class FindingCode:
    """A kind of finding.

    Attributes
    ----------
    name : str
    severity : Severity
    meaning : str
        What it may mean.
    precondition : str
        When files can prove it; otherwise the check is silent.
    faults : tuple of str
        Codes of ``kraftlog verify`` with another name for the same fact.
    """

    name: str
    severity: Severity
    meaning: str
    precondition: str
    faults: tuple[str, ...] = ()


class Finding(NamedTuple):
    """Something that the files of a cluster prove.

    Attributes
    ----------
    code : FindingCode
    known : str
        What is known, in one sentence: offsets, epochs, ids, and the values that contradict each other.
    topic : str or None
        None for findings about no single topic.
    partition : int or None
    offset : int or None
        The first offset concerned.
    node_id : int or None
        The broker whose files show it, if only one does.
    file : str or None
        The file or directory, for findings about files beside the log.
    next_command : str or None
        A command that shows more of it, or that mends it.
    """

    code: FindingCode
    known: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    node_id: int | None = None
    file: str | None = None
    next_command: str | None = None

    @property
    def where(self) -> str:
        """The topic, partition, offset, node and file that it has, for people."""
        parts = (
            [] if self.topic is None else [self.topic if self.partition is None else f"{self.topic}-{self.partition}"]
        )
        parts += [] if self.offset is None else [f"offset {self.offset}"]
        parts += [] if self.node_id is None else [f"node {self.node_id}"]
        return ", ".join(parts + ([] if self.file is None else [self.file]))

    @property
    def sentence(self) -> str:
        """All of it in one line, for people."""
        where = f" ({self.where})" if self.where else ""
        after = "" if self.next_command is None else f" Next: {self.next_command}"
        return f"{self.code.severity} {self.code.name}{where}: {self.known}. {self.code.meaning}{after}"

    @property
    def order(self) -> tuple[int, str, str, int, int]:
        """The worst first, then by code and place."""
        return (
            self.code.severity,
            self.code.name,
            self.topic or "",
            -1 if self.partition is None else self.partition,
            -1 if self.offset is None else self.offset,
        )
