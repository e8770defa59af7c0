"""Work by threads that run ahead, with results in the order of the items."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Generic, TypeVar

SEGMENTS_AT_ONCE = 16  # for reading headers, where the disk or network takes most of the time
READS_AT_ONCE = 8  # requests to an object store

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, *, ahead: int = 0
) -> Iterator[Result]:
    """Return a function's result for each item; results are small, so their number is bounded.

    Parameters
    ----------
    work : callable
        Called by threads. Its exception is raised in its turn.
    items : iterable
        Iterated by the caller's thread, as far as needed. Its exception is raised after the results of earlier items.
    threads : int
        Maximum number, and of items in work at the same time.
    ahead : int
        Number of further results that may wait for their turn.

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
) -> Generator[Result]:
    """Return the results of each item, which may be many and large.

    Parameters
    ----------
    work : callable
        Returns an iterator that a thread runs; its exception is raised in its turn.
    items : iterable
        Iterated by the caller's thread, as far as needed. Its exception is raised after the results of earlier items.
    threads : int
        Maximum number, and of items in work at the same time.
    size_of : callable
        Returns the size of a result.
    most_bytes : int
        Maximum bytes of results that wait for their turn, plus one result for each thread.

    Examples
    --------
    >>> from kraftlog.disk.in_order import streams_in_order
    >>> list(streams_in_order(iter, [[b"a", b"b"], [], [b"c"]], threads=2, size_of=len, most_bytes=1))
    [b'a', b'b', b'c']
    """
    waiting = _Waiting(size_of, most_bytes)
    pending: deque[tuple[_Results[Result], Future[None]]] = deque()
    todo = iter(items)
    failed: Exception | None = None
    with ThreadPoolExecutor(threads) as pool:
        try:
            while True:
                try:
                    for item in islice(todo, threads + 1 - len(pending)):  # one item that waits for a thread
                        results: _Results[Result] = _Results()
                        pending.append((results, pool.submit(waiting.fill, results, work, item)))
                except Exception as error:
                    failed, todo = error, iter(())
                if not pending and failed is not None:
                    raise failed
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
    """Results of one item that wait for the caller."""

    def __init__(self) -> None:
        self.waiting: deque[Result] = deque()
        self.has_turn = False
        self.is_complete = False


class _Waiting(Generic[Result]):
    """Blocks threads while too many bytes of results wait, except the thread whose turn it is and that has none."""

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
                del result  # release the result while producing the next
        finally:
            with self._changed:
                results.is_complete = True
                self._changed.notify_all()

    def _has_room(self, results: _Results[Result]) -> bool:
        is_needed = results.has_turn and not results.waiting
        return self._is_stopped or is_needed or self._bytes < self._most_bytes

    def take(self, results: _Results[Result]) -> Iterator[Result]:
        """Return the results of the current item as they come."""
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
        """Let blocked threads end: nobody takes their results."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
