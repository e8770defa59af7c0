"""Threads of a store, and waiting for them that an exception such as KeyboardInterrupt cannot break."""

from __future__ import annotations

from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TypeAlias


class Task:
    """A task of a thread."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._error: BaseException | None = None
        self._is_under_way = _taken()

    def run(self) -> None:
        """Run it, and keep its exception for the waiting caller."""
        try:
            self._call()
        except BaseException as error:
            self._error = error
        finally:
            self._is_under_way.release()

    def result(self) -> None:
        """Wait until it is done, and raise its exception."""
        with self._is_under_way:
            pass
        if self._error is not None:
            raise self._error


_Given: TypeAlias = "SimpleQueue[Task | None]"


class Threads:
    """Threads that run tasks in order of submission.

    An exception such as that of Ctrl-C may come between any two instructions of the caller. The locks of
    ``concurrent.futures`` and ``threading.Thread`` are taken in Python code (``threading.Condition``), and one that is
    taken at that moment is never released: the thread that waits for it hangs, and so does closing. Locks, queues and
    threads in C do not have this problem.

    Parameters
    ----------
    count : int
        Maximum number; they start when there is work.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._given: _Given = SimpleQueue()
        self._running: list[LockType] = []  # a lock for each, which it gives back at its end
        self._is_shut = False
        self._guard = allocate_lock()

    def submit(self, call: Callable[..., object], *arguments: object) -> Task:
        """Submit a call to a thread.

        Raises
        ------
        RuntimeError
            After ``shutdown``.
        """
        task = Task(lambda: call(*arguments))
        with self._guard:
            if self._is_shut:
                raise RuntimeError("the threads were shut down")
            if len(self._running) < self._count:
                # a process that ends without closing its store does not wait for threads, as after a crash
                running = _taken()
                start_new_thread(_work, (self._given, running))
                self._running.append(running)
            self._given.put(task)
        return task

    def shutdown(self, *, drops_waiting: bool = False) -> None:
        """End the threads once all submitted tasks are done; it can be called again.

        Parameters
        ----------
        drops_waiting : bool
            Drop tasks that have not started; nobody may wait for them.
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
    """Run tasks until there is none. A waiting thread holds no reference to a store, so that it can be collected."""
    while True:
        task = given.get()
        if task is None:
            break
        task.run()
        del task
    given.put(None)  # for the others
    running.release()
