"""Actions of recovery on files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kraftlog.layout.build_index import INDEX_INTERVAL_BYTES
from kraftlog.layout.segment import Segment


@dataclass(frozen=True)
class RecoverOptions:
    """Options of recovery.

    Attributes
    ----------
    write : bool
        Carry out the actions; otherwise only list them.
    cut_damage : bool
        Truncate at the first damaged batch, whatever follows it, as Kafka does.
    rebuild : bool
        Read every segment, including those that a broker does not check: in a log directory that was closed cleanly,
        and before the recovery point.
    interval_bytes : int
        Kafka's ``index.interval.bytes`` of the topic.
    """

    write: bool = False
    cut_damage: bool = False
    rebuild: bool = False
    interval_bytes: int = INDEX_INTERVAL_BYTES


@dataclass(frozen=True)
class Action:
    """An action on one file.

    Attributes
    ----------
    action : {"cut", "write", "remove", "rename", "keep", "refuse"}
        ``rename``: a ``.swap`` file loses this suffix. ``refuse``: the file is damaged but kept.
    size_before, size_after : int or None
        In bytes; None when there is no file.
    data : bytes
        The new content.
    pieces : tuple of Segment
        The new content of a log file, as segments or stretches of them.
    is_trusted : bool
        Whether it is a log file that neither a starting broker nor this recovery reads.
    """

    path: Path
    action: str
    size_before: int | None
    size_after: int | None
    reason: str
    data: bytes = field(default=b"", repr=False)
    pieces: tuple[Segment, ...] = field(default=(), repr=False)
    is_trusted: bool = False

    @property
    def is_refusal(self) -> bool:
        """Whether a damaged file is kept."""
        return self.action == "refuse"


def keep(path: Path, size: int, reason: str) -> Action:
    """Leave a file as it is."""
    return Action(path, "keep", size, size, reason)


def trust(path: Path, size: int, reason: str) -> Action:
    """Leave a log file as it is, without reading it."""
    return Action(path, "keep", size, size, reason, is_trusted=True)


def write(path: Path, there: bytes | None, data: bytes, reason: str = "does not match the log") -> Action:
    """Write a file, unless it has these bytes."""
    if there is None:
        return Action(path, "write", None, len(data), "missing", data=data)
    if there == data:
        return keep(path, len(there), "matches the log")
    return Action(path, "write", len(there), len(data), reason, data=data)


def remove(path: Path, size: int, reason: str) -> Action:
    """Remove a file."""
    return Action(path, "remove", size, None, reason)


def refuse(path: Path, size: int, reason: str) -> Action:
    """Leave a damaged file as it is."""
    return Action(path, "refuse", size, size, reason)
