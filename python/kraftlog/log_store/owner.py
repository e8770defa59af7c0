"""Which process a store belongs to: a child that inherits it by ``fork`` must leave it alone."""

from __future__ import annotations

import os
from pathlib import Path

from kraftlog.log_store.errors import ForkedStoreError

_here = os.getpid()


def _forked() -> None:
    global _here
    _here = os.getpid()


os.register_at_fork(after_in_child=_forked)


class Owner:
    """The process that has opened a store; its producers, consumers and the store itself ask it at each call.

    A child has the same files, positions and sequences, and its parent writes on: two would write one log. The lock of
    the log directory does not keep it out, as it is the parent's, nor does a lock in memory tell the two apart.

    Parameters
    ----------
    path : Path
        Of the store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.pid = _here

    @property
    def is_here(self) -> bool:
        """Whether this is the process."""
        return self.pid == _here

    def check(self) -> None:
        """Raise in another process.

        Raises
        ------
        ForkedStoreError
        """
        if self.pid != _here:
            raise ForkedStoreError(
                f"{self._path}: process {self.pid} has opened the store, and this is process {_here}, a fork of it; it "
                "can use nothing of the store, and open it only when that process has closed it"
            )
