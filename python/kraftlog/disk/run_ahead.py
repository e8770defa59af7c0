"""A thread that iterates ahead of its caller and shares the work on the items with it."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

_MOST_WAITING = 2  # items that wait for the caller

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_ahead(work: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Result]:
    """Return a function's result for each item; on a single processor without a thread.

    A thread iterates over the items while the caller uses a result. If enough items wait, it also does the work on
    them, the last one first; the caller does the work on an item that the thread has not started.

    Parameters
    ----------
    work : callable
        Called by the thread and by the caller with one item. Its exception is raised in its turn.
    items : iterator
        The thread runs it; its exception is raised after earlier results.

    Examples
    --------
    >>> from kraftlog.disk.run_ahead import run_ahead
    >>> list(run_ahead(len, iter(["a", "bcd", ""])))
    [1, 3, 0]
    """
    return map(work, items) if _processors() < 2 else _shared(work, items)


def _shared(work: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Result]:
    shared = _Shared(work)
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(shared.run, items)
        try:
            while (piece := shared.next_piece()) is not None:
                piece.do(work)
                result = piece.result()
                del piece  # drop the reference to the used result
                yield result
                del result
            ended.result()
        finally:
            shared.stop()


def _processors() -> int:
    """Return the number of processors available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Piece(Generic[Item, Result]):
    """An item and its result."""

    def __init__(self, item: Item) -> None:
        self._item: list[Item] = [item]
        self._made: Future[Result] = Future()

    @property
    def is_begun(self) -> bool:
        """Whether a thread has started it."""
        return not self._item

    def do(self, work: Callable[[Item], Result]) -> None:
        """Do the work, unless another thread has started it."""
        try:
            item = self._item.pop()
        except IndexError:
            return
        try:
            self._made.set_result(work(item))
        except BaseException as error:
            self._made.set_exception(error)

    def result(self) -> Result:
        """Return the result, or raise the exception of the work; wait for the thread that does it."""
        return self._made.result()


class _Shared(Generic[Item, Result]):
    """The items that wait for the caller."""

    def __init__(self, work: Callable[[Item], Result]) -> None:
        self._work = work
        self._waiting: deque[_Piece[Item, Result]] = deque()
        self._is_ended = False
        self._is_stopped = False
        self._changed = threading.Condition()

    def run(self, items: Iterator[Item]) -> None:
        """Iterate over the items, in the thread."""
        try:
            for item in items:
                with self._changed:
                    self._waiting.append(_Piece(item))
                    self._changed.notify_all()
                del item
                if not self._work_until(_MOST_WAITING):
                    return
            self._work_until(1)
        finally:
            with self._changed:
                self._is_ended = True
                self._changed.notify_all()

    def _work_until(self, most: int) -> bool:
        """Do work until fewer items wait; return False if the caller has stopped."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopped or len(self._waiting) < most or self._todo())
                if self._is_stopped or len(self._waiting) < most:
                    return not self._is_stopped
                piece = self._todo()[-1]
            piece.do(self._work)
            del piece

    def _todo(self) -> list[_Piece[Item, Result]]:
        return [piece for piece in self._waiting if not piece.is_begun]

    def next_piece(self) -> _Piece[Item, Result] | None:
        """Return the next item in order; None after the last one."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting) or self._is_ended)
            piece = self._waiting.popleft() if self._waiting else None
            self._changed.notify_all()
            return piece

    def stop(self) -> None:
        """Let the thread end: nobody takes more results."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
