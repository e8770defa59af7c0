"""Bounds how many partitions keep their log file open."""

from __future__ import annotations

import threading
from typing import Protocol

from kraftlog.disk.waiting import about_to_wait


class Resting(Protocol):
    """An object that can close its file and reopens it when it is used."""

    def rest(self) -> None:
        """Close the file."""


class OpenFiles:
    """The partitions whose log files are open; the least recently used ones close them. Thread-safe.

    Parameters
    ----------
    most : int
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._used: dict[Resting, None] = {}  # least recently used first
        self._lock = threading.Lock()

    def use(self, partition: Resting) -> None:
        """Note that a partition is about to be written; the caller holds no lock that ``rest`` of another one takes."""
        with self._lock:
            self._used.pop(partition, None)
            self._used[partition] = None
            oldest = next(iter(self._used))
            if len(self._used) <= self._most or oldest is partition:
                return
            about_to_wait()
            del self._used[oldest]
        oldest.rest()

    def forget(self, partition: Resting) -> None:
        """Remove a closed partition."""
        with self._lock:
            self._used.pop(partition, None)
