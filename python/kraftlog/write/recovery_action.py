"""What recovery does with a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kraftlog.layout.build_index import INDEX_INTERVAL_BYTES
from kraftlog.layout.segment import Segment


@dataclass(frozen=True)
class RecoverOptions:
    """How to recover.

    Attributes
    ----------
    write : bool
        Act; otherwise only say what would be done.
    cut_damage : bool
        Cut at the first batch that is not sound, whatever lies behind it, as Kafka does.
    rebuild : bool
        Read every segment, also those that a broker takes as they are: of a log directory that was closed cleanly, and
        before the recovery point.
    interval_bytes : int
        Kafka's ``index.interval.bytes`` of the topic.
    """

    write: bool = False
    cut_damage: bool = False
    rebuild: bool = False
    interval_bytes: int = INDEX_INTERVAL_BYTES


@dataclass(frozen=True)
class Action:
    """What is done with one file.

    Attributes
    ----------
    action : {"cut", "write", "remove", "rename", "keep", "refuse"}
        ``rename``: a ``.swap`` file loses this suffix. ``refuse``: the file is damaged, and kept all the same.
    size_before, size_after : int or None
        In bytes; None when there is no file.
    data : bytes
        What is written.
    pieces : tuple of Segment
        The same of a log file: the segments, or stretches of them, that it is made of.
    is_trusted : bool
        Whether it is a log file that a broker does not read when it starts, and that was not read here.
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
    """Leave a log file as it is, and unread."""
    return Action(path, "keep", size, size, reason, is_trusted=True)


def write(path: Path, there: bytes | None, data: bytes, reason: str = "not what the log says") -> Action:
    """Write a file, unless it has these bytes."""
    if there is None:
        return Action(path, "write", None, len(data), "missing", data=data)
    if there == data:
        return keep(path, len(there), "what the log says")
    return Action(path, "write", len(there), len(data), reason, data=data)


def remove(path: Path, size: int, reason: str) -> Action:
    """Remove a file."""
    return Action(path, "remove", size, None, reason)


def refuse(path: Path, size: int, reason: str) -> Action:
    """Leave a damaged file as it is."""
    return Action(path, "refuse", size, size, reason)
