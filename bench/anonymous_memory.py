"""Memory of this process that no file stands behind."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import Self

SECONDS_BETWEEN_LOOKS = 0.001


def anonymous_memory() -> int:
    """Return it in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise OSError("no RssAnon in /proc/self/status")


class PeakMemory:
    """Looks at the anonymous memory again and again during a ``with`` block.

    Attributes
    ----------
    bytes : int
        The most that was seen.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._done = Event()
        self._watcher = Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._done.wait(SECONDS_BETWEEN_LOOKS):
            self.bytes = max(self.bytes, anonymous_memory())
