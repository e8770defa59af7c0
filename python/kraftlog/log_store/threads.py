"""Threads of a store, and how others wait for them so that an exception such as that of Ctrl-C does no harm."""

from __future__ import annotations

from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TypeAlias


class Task:
    """What a thread does."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._error: BaseException | None = None
        self._is_under_way = _taken()

    def run(self) -> None:
        """Do it, and keep what it raises for who waits."""
        try:
            self._call()
        except BaseException as error:
            self._error = error
        finally:
            self._is_under_way.release()

    def result(self) -> None:
        """Wait until it is done, and raise what it has raised."""
        with self._is_under_way:
            pass
        if self._error is not None:
            raise self._error


_Given: TypeAlias = "SimpleQueue[Task | None]"


class Threads:
    """Threads that do what they are given, in its order.

    An exception such as that of Ctrl-C may come between any two instructions of the caller. The locks of
    ``concurrent.futures`` and ``threading.Thread`` are taken in Python code (``threading.Condition``), and one that is
    taken just then is never given back: the thread that waits for it does no more, and closing waits for that thread.
    Locks, queues and threads of C have no such place.

    Parameters
    ----------
    count : int
        How many there are at most; they begin when there is something to do.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._given: _Given = SimpleQueue()
        self._running: list[LockType] = []  # a lock for each, which it gives back at its end
        self._is_shut = False
        self._guard = allocate_lock()

    def submit(self, call: Callable[..., object], *arguments: object) -> Task:
        """Let a thread call something.

        Raises
        ------
        RuntimeError
            Behind ``shutdown``.
        """
        task = Task(lambda: call(*arguments))
        with self._guard:
            if self._is_shut:
                raise RuntimeError("these threads do nothing more")
            if len(self._running) < self._count:
                # a process that ends without closing its store leaves what a crash leaves, and waits for none of them
                running = _taken()
                start_new_thread(_work, (self._given, running))
                self._running.append(running)
            self._given.put(task)
        return task

    def shutdown(self, *, drops_waiting: bool = False) -> None:
        """End the threads when all is done that they were given; it can be called again.

        Parameters
        ----------
        drops_waiting : bool
            Leave out what none of them has begun, for which nobody may wait.
        """
        with self._guard:
            self._is_shut = True
        with suppress(Empty):
            while drops_waiting:
                self._given.get_nowait()
        self._given.put(None)
        for running in self._running:
            with running:
                pass

    def __del__(self) -> None:
        self._given.put(None)  # a store that nobody has closed leaves no threads


def _taken() -> LockType:
    lock = allocate_lock()
    lock.acquire()
    return lock


def _work(given: _Given, running: LockType) -> None:
    """Do tasks until there is none: a thread holds nothing of a store while it waits, so that the store can go."""
    while True:
        task = given.get()
        if task is None:
            break
        task.run()
        del task
    given.put(None)  # for the others
    running.release()
