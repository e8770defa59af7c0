"""The process that owns a store: a child that inherits it by ``fork`` must not use it."""

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
    """The process that has opened a store; the store, its producers and consumers check it at each call.

    A child has the same files, positions and sequences, and its parent writes on: two would write one log. The lock of
    the log directory does not exclude the child, which inherits it, and neither does a lock in memory.

    Parameters
    ----------
    path : Path
        Path of the store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.pid = _here

    @property
    def is_here(self) -> bool:
        """Whether the current process is the owner."""
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
