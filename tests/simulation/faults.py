"""What fails on a ``SimDisk``."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim_disk import SimDisk, Step

_SYNCS = ("sync", "sync_file", "sync_folder")
_GROWS = ("create", "append", "pwrite", "make_folder")
_OPENS = ("open", "create")

KINDS = {
    "EIO at a sync": (_SYNCS, errno.EIO),
    "EIO at a write": (("append", "pwrite", "truncate", "rename", "unlink"), errno.EIO),
    "ENOSPC": (_GROWS, errno.ENOSPC),
    "EMFILE": (_OPENS, errno.EMFILE),
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
        Whether all steps of the kind fail from then on, or one.
    """

    kind: str
    number: int
    lasts: bool = False

    def hits(self, step: Step) -> bool:
        """Whether a step fails."""
        names, _ = KINDS[self.kind]
        return step.name in names and (step.number >= self.number if self.lasts else step.number == self.number)

    def before(self, disk: SimDisk, step: Step) -> None:
        """Fail."""
        number = KINDS[self.kind][1]
        raise OSError(number, os.strerror(number), str(step.path))
