"""Drivers that die at a chosen moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from faulty_disk import WRITES, FaultyDisk, Step
from kraftlog.disk.disk import use_disk


class Crash(BaseException):
    """Nothing is done any more; no handler of errors gets to see it."""


@contextmanager
def crash_after(changes: int) -> Iterator[None]:
    """Die after so many changes besides writes to files, if the block makes as many."""
    left = changes

    def fails(step: Step) -> BaseException | None:
        nonlocal left
        left -= step.name not in WRITES
        return Crash() if left < 0 else None

    with use_disk(FaultyDisk(fails)), suppress(Crash):
        yield
