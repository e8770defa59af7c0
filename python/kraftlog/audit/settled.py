"""Checks of files that a running broker replaces and deletes meanwhile: their findings are made again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from kraftlog.audit.finding import Finding
from kraftlog.errors import Fault
from kraftlog.layout.discover import READINGS
from kraftlog.read.log_pass import Pass

UNREADABLE_FILE = "unreadable_file"
Of: TypeAlias = tuple[str | None, int | None]
NOWHERE: Of = (None, None)

Files = TypeVar("Files")


class Subject(Protocol[Files]):
    """Files of one cluster or of two, as they were listed."""

    @property
    def read(self) -> Pass:
        """Receives the faults of these files only."""

    @property
    def notes(self) -> Sequence[str]:
        """What cannot be known of these files."""

    def listed_again(self) -> Files | None:
        """Return the files that are there now; None if they cannot be listed."""

    def stale(self, again: Files) -> set[Of]:
        """Return the partitions of which files were deleted or replaced while they were read."""

    def only(self, files: Files, partitions: Collection[Of]) -> Self:
        """Return some partitions as they are now, with faults of their own."""


Checked = TypeVar("Checked", bound=Subject[Any])


def settled(subject: Checked, checks: Sequence[Callable[[Checked], Iterable[Finding]]], read: Pass) -> list[Finding]:
    """Return the findings of checks, the worst first.

    A broker that runs replaces and deletes files while they are read. What was found in partitions to which that
    happened is dropped, and they are listed and read again.

    Parameters
    ----------
    subject : Evidence or Comparison
        With faults of its own.
    checks : sequence of callable
    read : Pass
        Receives the faults that remain, and notes.
    """
    found: list[Finding] = []
    now = subject
    for left in reversed(range(READINGS)):
        some, has_faults = _checked(now, checks), bool(now.read.faults)
        again = now.listed_again() if some or has_faults else None
        stale = set() if again is None else now.stale(again)
        if left:
            some = [one for one in some if (one.topic, one.partition) not in stale]
            now.read.faults[:] = [one for one in now.read.faults if (one.topic, one.partition) not in stale]
        found += [one for one in some if one not in found]
        known = {(one, one.replica) for one in read.faults}
        faults = dict.fromkeys((one, one.replica) for one in now.read.faults)
        read.add(*(one for one, replica in faults if (one, replica) not in known))
        if again is None or not stale or not left:
            read.notes.extend(now.notes)
            break
        now = now.only(again, stale)
    return sorted(found, key=lambda one: one.order)


def _checked(subject: Checked, checks: Sequence[Callable[[Checked], Iterable[Finding]]]) -> list[Finding]:
    """Return the findings of all checks; a check that cannot read a file is a fault."""
    found: list[Finding] = []
    for check in checks:
        try:
            found += check(subject)
        except OSError as error:
            subject.read.add(Fault(UNREADABLE_FILE, str(error)))
    return found
