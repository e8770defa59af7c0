"""Threads of a simulated process: what they are given is done later, in an order that a seed decides."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from random import Random
from typing import Any

from sim_disk import SimDisk


class SimExecutor(Executor):
    """Does what it is given when somebody waits for it, or at a time that is drawn; one task is done at a time.

    Parameters
    ----------
    disk : SimDisk
        Which is told that its steps are those of a thread: no signal interrupts these.
    dice : Random
    """

    def __init__(self, disk: SimDisk, dice: Random) -> None:
        self._disk, self._dice = disk, dice
        self._waiting: list[tuple[_Task, Callable[[], Any]]] = []
        self._is_shut = False

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Take a task."""
        if self._is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        task = _Task(self)
        self._waiting.append((task, lambda: call(*arguments, **options)))
        return task

    def run_some(self) -> None:
        """Do some tasks."""
        while self._waiting and self._dice.random() < 0.5:
            self._run_one()

    def run_until(self, task: Future[Any]) -> None:
        """Do tasks in any order until one is done."""
        while not task.done():
            self._run_one()

    def _run_one(self) -> None:
        task, call = self._waiting.pop(self._dice.randrange(len(self._waiting)))
        self._disk.is_in_thread = True
        try:
            task.set_result(call())
        except Exception as error:
            task.set_exception(error)
        finally:
            self._disk.is_in_thread = False

    def shutdown(self, wait: bool = True, *, drops_waiting: bool = False) -> None:
        """Do the rest, or drop it."""
        self._is_shut = True
        while self._waiting and not drops_waiting:
            self._run_one()
        for task, _ in self._waiting:
            task.cancel()
        self._waiting.clear()


class _Task(Future[Any]):
    def __init__(self, executor: SimExecutor) -> None:
        super().__init__()
        self._executor = executor

    def result(self, timeout: float | None = None) -> Any:
        """Return what came out of it."""
        self._executor.run_until(self)
        return super().result(timeout)
