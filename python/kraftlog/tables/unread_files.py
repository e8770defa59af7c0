"""Files of a log that are not read: faults, and ignored files."""

from __future__ import annotations

from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.replica_directory import replica_of_unread
from kraftlog.layout.unread import NOTHING_LOST, Unread


def left_alone(found: Discovery) -> list[Fault]:
    """Return the ignored files and folders, as rows of the ``errors`` table with error ``not_read``."""
    return [_as_row(item) for item in found.unread if not item.is_fault]


def not_needed(found: Discovery) -> list[Fault]:
    """Return problems that affect no reader: orphans and duplicates of a remote tier, folders that stop a broker."""
    return [_as_row(item) for item in found.unread if item.error in NOTHING_LOST]


def note_unreadable(found: Discovery, faults: list[Fault], *, strict: bool) -> None:
    """Add the folders that could not be listed to the faults, or raise for the first."""
    for fault in unreadable(found):
        if strict:
            raise error_from_fault(fault)
        faults.append(fault)


def unreadable(found: Discovery) -> list[Fault]:
    """Return the folders that could not be listed, and faults outside the files that may have changed their choice."""
    return [*found.faults, *(_as_row(item) for item in found.unread if item.is_fault)]


def _as_row(item: Unread) -> Fault:
    return Fault(
        item.error,
        f"{item.name}: {item.reason}" if item.is_fault else f"{item.name}: not read: {item.reason}",
        size_in_bytes=item.size,
        topic=item.topic,
        partition=item.partition,
        segment_base_offset=item.base_offset,
        replica=replica_of_unread(item),
    )
