"""The memory of large requests of all connections together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Resume: TypeAlias = Callable[[], None]


class ReceivedBytes:
    """Bounds what requests take from the time they arrive until they are answered (``queued.max.request.bytes``).

    Above the bound, connections stop to read, except the one whose request began first: one request can always be
    completed, and gives its memory back.

    Parameters
    ----------
    most : int
        Bytes. The first request can exceed them by its own size.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[Resume, int] = {}  # in the order in which the requests began
        self._waiting: set[Resume] = set()

    def begin(self, request: Resume) -> None:
        """Take a request, by the function that lets its connection read again."""
        self._sizes[request] = 0

    def grow(self, request: Resume, size: int) -> bool:
        """Whether a request can have memory of a new size now; if not, it is resumed when it can ask again."""
        is_first = request == next(iter(self._sizes))
        others = sum(self._sizes.values()) - self._sizes[request]
        if not is_first and others + size > self._most:
            self._waiting.add(request)
            return False
        self._sizes[request] = size
        return True

    def end(self, request: Resume) -> None:
        """Give the memory of a request back; one that has ended is ignored."""
        self._waiting.discard(request)
        if not self._sizes.pop(request, 0):
            return
        waiting, self._waiting = self._waiting, set()
        for resume in (one for one in self._sizes if one in waiting):
            resume()
