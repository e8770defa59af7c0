"""Work by threads that run ahead, with results in the order of the items that they are made of."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Generic, TypeVar

SEGMENTS_AT_ONCE = 16  # whose headers are looked at: what takes long is the disk, or the network

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, *, ahead: int = 0
) -> Iterator[Result]:
    """Return what a function makes of each item; results are small, so that their number is bounded.

    Parameters
    ----------
    work : callable
        Is called by threads. What it raises is raised when its turn comes.
    items : iterable
        Gone over by the caller's thread, as far as is needed. What it raises is raised behind the results of the items
        before.
    threads : int
        How many there are at most; so many items are worked on at the same time.
    ahead : int
        How many more results may wait for their turn.

    Examples
    --------
    >>> from kraftlog.disk.in_order import in_order
    >>> list(in_order(len, ["a", "bcd", ""], threads=2))
    [1, 3, 0]
    """
    pending: deque[Future[Result]] = deque()
    todo = iter(items)
    failed: Exception | None = None
    with ThreadPoolExecutor(threads) as pool:
        try:
            while True:
                try:
                    pending.extend(pool.submit(work, item) for item in islice(todo, threads + ahead - len(pending)))
                except Exception as error:
                    failed, todo = error, iter(())
                if pending:
                    yield pending.popleft().result()
                elif failed is not None:
                    raise failed
                else:
                    return
        finally:
            for future in pending:
                future.cancel()


def streams_in_order(
    work: Callable[[Item], Iterator[Result]],
    items: Iterable[Item],
    threads: int,
    *,
    size_of: Callable[[Result], int],
    most_bytes: int,
) -> Iterator[Result]:
    """Return the results of each item, of which there may be many large ones.

    Parameters
    ----------
    work : callable
        Returns an iterator that a thread runs; what it raises is raised when its turn comes.
    items : iterable
        Gone over by the caller's thread, as far as is needed.
    threads : int
        How many there are at most; so many items are worked on at the same time.
    size_of : callable
        Returns the bytes of a result.
    most_bytes : int
        Results of so many bytes may wait for their turn, and one result more for each thread.

    Examples
    --------
    >>> from kraftlog.disk.in_order import streams_in_order
    >>> list(streams_in_order(iter, [[b"a", b"b"], [], [b"c"]], threads=2, size_of=len, most_bytes=1))
    [b'a', b'b', b'c']
    """
    waiting = _Waiting(size_of, most_bytes)
    pending: deque[tuple[_Results[Result], Future[None]]] = deque()
    todo = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        try:
            while True:
                for item in islice(todo, threads + 1 - len(pending)):  # one that waits for a thread
                    results: _Results[Result] = _Results()
                    pending.append((results, pool.submit(waiting.fill, results, work, item)))
                if not pending:
                    return
                results, future = pending[0]
                yield from waiting.take(results)
                pending.popleft()
                future.result()
        finally:
            waiting.stop()
            for _, future in pending:
                future.cancel()


class _Results(Generic[Result]):
    """Results of one item that nobody has taken yet."""

    def __init__(self) -> None:
        self.waiting: deque[Result] = deque()
        self.has_turn = False
        self.is_complete = False


class _Waiting(Generic[Result]):
    """Holds threads back while results of too many bytes wait; never the one whose turn it is and that has none."""

    def __init__(self, size_of: Callable[[Result], int], most_bytes: int) -> None:
        self._size_of = size_of
        self._most_bytes = most_bytes
        self._bytes = 0
        self._is_stopped = False
        self._changed = threading.Condition()

    def fill(self, results: _Results[Result], work: Callable[[Item], Iterator[Result]], item: Item) -> None:
        """Run the work for an item."""
        try:
            for result in work(item):
                size = self._size_of(result)
                with self._changed:
                    self._changed.wait_for(lambda: self._has_room(results))
                    if self._is_stopped:
                        return
                    results.waiting.append(result)
                    self._bytes += size
                    self._changed.notify_all()
                del result  # the thread holds none while it makes the next
        finally:
            with self._changed:
                results.is_complete = True
                self._changed.notify_all()

    def _has_room(self, results: _Results[Result]) -> bool:
        is_needed = results.has_turn and not results.waiting
        return self._is_stopped or is_needed or self._bytes < self._most_bytes

    def take(self, results: _Results[Result]) -> Iterator[Result]:
        """Return the results of the item whose turn it is, as they come."""
        with self._changed:
            results.has_turn = True
            self._changed.notify_all()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(results.waiting) or results.is_complete)
                if not results.waiting:
                    return
                result = results.waiting.popleft()
                self._bytes -= self._size_of(result)
                self._changed.notify_all()
            yield result

    def stop(self) -> None:
        """Let threads end that are held back: nobody takes their results."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
