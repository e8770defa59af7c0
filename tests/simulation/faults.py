"""What fails on a ``SimDisk``."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sim_disk import Step

_SYNCS = ("sync", "sync_file", "sync_folder")
_GROWS = ("create", "append", "pwrite", "make_folder")
_OPENS = ("open", "create")

_CHANGES = (*_SYNCS, *_GROWS, "truncate", "rename", "unlink", "empty", "remove_folder")


class InterruptError(BaseException):
    """What the handler of a signal raises, such as that of Ctrl-C."""


class Kind(NamedTuple):
    """What fails.

    Attributes
    ----------
    steps : tuple of str
        Names of the steps that it hits.
    number : int
        Of the OSError; 0 of an interrupt.
    comes_behind : bool
        Whether the step is done when the exception comes.
    """

    steps: tuple[str, ...]
    number: int = 0
    comes_behind: bool = False


INTERRUPTS = ("interrupt before a step", "interrupt behind a step")
KINDS = {
    "EIO at a sync": Kind(_SYNCS, errno.EIO),
    "EIO at a write": Kind(("append", "pwrite", "truncate", "rename", "unlink"), errno.EIO),
    "ENOSPC": Kind(_GROWS, errno.ENOSPC),
    "EMFILE": Kind(_OPENS, errno.EMFILE),
    INTERRUPTS[0]: Kind((*_CHANGES, "open")),
    INTERRUPTS[1]: Kind(_CHANGES, comes_behind=True),
}


@dataclass(frozen=True)
class Fault:
    """A kind of fault from a step on.

    Attributes
    ----------
    kind : str
        One of ``KINDS``.
    number : int
        Of the first step that may fail.
    lasts : bool
        Whether all steps of the kind fail from then on, or one; there is one interrupt.
    """

    kind: str
    number: int
    lasts: bool = False

    def hits(self, step: Step, *, is_in_thread: bool = False) -> bool:
        """Whether a step fails; a signal interrupts the main thread alone."""
        if self.kind in INTERRUPTS and (is_in_thread or step.number > self.number):
            return False
        at = step.number >= self.number if self.lasts else step.number == self.number
        return at and step.name in KINDS[self.kind].steps

    def before(self, step: Step) -> None:
        """Fail, unless that comes behind the step."""
        if not KINDS[self.kind].comes_behind:
            self._raise(step)

    def behind(self, step: Step) -> None:
        """Fail, if that comes behind the step."""
        if KINDS[self.kind].comes_behind:
            self._raise(step)

    def _raise(self, step: Step) -> None:
        number = KINDS[self.kind].number
        if not number:
            raise InterruptError(str(step))
        raise OSError(number, os.strerror(number), str(step.path))
