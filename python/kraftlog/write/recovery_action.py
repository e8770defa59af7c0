"""What recovery does with a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class RecoverOptions:
    """How to recover.

    Attributes
    ----------
    write : bool
        Act; otherwise only say what would be done.
    cut_damage : bool
        Cut at the first batch that is not sound, whatever lies behind it, as Kafka does.
    interval_bytes : int or None
        Kafka's ``index.interval.bytes`` of the topic; None for what the index files of a partition show.
    """

    write: bool = False
    cut_damage: bool = False
    interval_bytes: int | None = None


@dataclass(frozen=True)
class Action:
    """What is done with one file.

    Attributes
    ----------
    action : {"cut", "write", "remove", "keep", "refuse"}
        ``refuse``: the file is damaged, and kept all the same.
    size_before, size_after : int or None
        In bytes; None when there is no file.
    data : bytes
        What is written.
    """

    path: Path
    action: str
    size_before: int | None
    size_after: int | None
    reason: str
    data: bytes = field(default=b"", repr=False)

    @property
    def is_refusal(self) -> bool:
        """Whether a damaged file is kept."""
        return self.action == "refuse"


def keep(path: Path, there: bytes, reason: str) -> Action:
    """Leave a file as it is."""
    return Action(path, "keep", len(there), len(there), reason)


def write(path: Path, there: bytes | None, data: bytes, reason: str = "not what the log says") -> Action:
    """Write a file, unless it has these bytes."""
    if there is None:
        return Action(path, "write", None, len(data), "missing", data=data)
    if there == data:
        return keep(path, there, "what the log says")
    return Action(path, "write", len(there), len(data), reason, data=data)


def remove(path: Path, reason: str) -> Action:
    """Remove a file."""
    return Action(path, "remove", path.stat().st_size, None, reason)


def refuse(path: Path, size: int, reason: str) -> Action:
    """Leave a damaged file as it is."""
    return Action(path, "refuse", size, size, reason)
