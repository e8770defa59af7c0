"""Timing side by side: every contender has its turn in a round, so that other load on the machine meets all of them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, process_time

import numpy as np

COLD_BYTES = 96 << 20  # more than the last-level cache of the usual machines


@dataclass
class Contender:
    """One way to do a piece of work.

    Attributes
    ----------
    run : callable
        Does the work once; returns how many records it met, or None when it does not know of records.
    check : callable
        Does it once more, before anything is timed, and raises when the answer is wrong.
    cpu_clock : callable, optional
        Seconds that the process that does it has run; None when several threads run and wall time is what counts.
    records, size : int
        What one run covers: records, and bytes of them before compression.
    seconds : list of float
        One time for each round.
    """

    name: str
    run: Callable[[], int | None]
    records: int
    size: int
    check: Callable[[], None] = lambda: None
    cpu_clock: Callable[[], float] | None = process_time
    seconds: list[float] = field(default_factory=list)

    @property
    def records_per_second(self) -> float:
        """Median over the rounds."""
        return self.records / median(self.seconds)

    @property
    def bytes_per_second(self) -> float:
        """Median over the rounds."""
        return self.size / median(self.seconds)

    def speed_against(self, other: Contender) -> float:
        """Return the median of the rounds' ratios of records a second."""
        pairs = zip(self.seconds, other.seconds, strict=True)
        return median(theirs / own for own, theirs in pairs) * self.records / other.records


def interleave(contenders: Sequence[Contender], rounds: int, on_cpu: bool = False, least_seconds: float = 0.0) -> None:
    """Fill in ``seconds`` of each contender, behind a first round that only checks answers.

    A single round is that first one: it says whether a contender works, and little of how fast it is.

    Parameters
    ----------
    contenders : sequence of Contender
    rounds : int
    on_cpu : bool
        Count what its process ran instead of wall time: less noise on a machine that does other work, too.
    least_seconds : float
        A contender does its work again in a round until it has run for so long: else one that takes 30 ms is measured
        with a processor that has just woken up, and one that takes 300 ms is not.
    """
    for contender in contenders:
        first = _run(contender, on_cpu)
        contender.check()
        if rounds == 1:
            contender.seconds.append(first)
    if rounds == 1:
        return
    cold = np.ones(COLD_BYTES // 8)
    gc.collect()
    gc.freeze()
    for number in range(rounds):
        shift = number % len(contenders)
        for contender in [*contenders[shift:], *contenders[:shift]]:
            cold.sum()  # what the contender before left in the caches helps nobody
            times = [_run(contender, on_cpu)]
            while sum(times) < least_seconds:
                times.append(_run(contender, on_cpu))
            contender.seconds.append(sum(times) / len(times))
            gc.collect()
    gc.unfreeze()


def _run(contender: Contender, on_cpu: bool) -> float:
    clock = (contender.cpu_clock if on_cpu else None) or perf_counter
    start = clock()
    met = contender.run()
    seconds = clock() - start
    if met not in (None, contender.records):
        raise AssertionError(f"{contender.name} met {met} records of {contender.records}")
    return seconds
