"""The memory of responses of all connections together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UnreadBytes:
    """Bounds what responses take until their clients have read them.

    Kafka sends records from its files. Here what a client does not read at once is in memory, and clients that do not
    read would fill it. Above the bound a fetch therefore returns its first batch only: it waits for nobody, and its
    client goes on. Other responses are counted and not cut: a connection has one at a time, as in Kafka.

    Parameters
    ----------
    most : int
        Bytes. Each connection can exceed them by one batch.
    """

    def __init__(self, most: int) -> None:
        self._left = most

    @property
    def left(self) -> int:
        """How many bytes a fetch may return now; at least 1, for which it returns one batch."""
        return max(self._left, 1)

    @contextmanager
    def held(self, size: int) -> Iterator[None]:
        """Count bytes inside ``with``, while they are read from a file, or sent."""
        self._left -= size
        try:
            yield
        finally:
            self._left += size
