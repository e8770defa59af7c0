"""Random cases for a time: 2 seconds each test in a run, hours with ``--random-seconds``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

EVERY = 60.0
"""Seconds between two lines of counts."""
LEAST = 10
"""How many cases there are on the slowest machine."""


class Rounds:
    """Counts what is drawn and what is found.

    Parameters
    ----------
    seconds : float
    seed : int
        Of the first case.
    counts : Path or None
        A file to which counts are added while the cases run.
    """

    def __init__(self, seconds: float, seed: int, counts: Path | None) -> None:
        self._seconds, self._seed, self._counts = seconds, seed, counts
        self._began = time.monotonic()
        self._told = self._began
        self._at = seed
        self._kinds: Counter[str] = Counter()
        self._differences: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self.cases = 0

    def __iter__(self) -> Iterator[int]:
        """Return seeds while there is time, and those of the first cases."""
        while self.cases < LEAST or time.monotonic() < self._began + self._seconds:
            yield self._at
            self._at += 1
            self.cases += 1
            if time.monotonic() > self._told + EVERY:
                self._tell()
        self._tell()

    def drawn(self, *kinds: str) -> None:
        """Count what a case has."""
        self._kinds.update(kinds)

    def found(self, where: str, differences: list[str], about: object = "") -> None:
        """Count the differences of a case, by what stands before a colon."""
        self._kinds[f"compared: {where}"] += 1
        for one in differences:
            kind = f"{where}: {one.partition(':')[0]}"
            self._differences[kind] += 1
            self._examples.setdefault(kind, f"seed {self._at}: {one} {about}"[:700])

    def check(self, at_least: dict[str, int]) -> None:
        """Fail when anything was found, or too little was drawn."""
        few = {kind: self._kinds[kind] for kind, count in at_least.items() if self._kinds[kind] < count}
        assert not few, f"{self.cases} cases, {dict(self._kinds)}"
        assert not self._differences, "\n".join([self._line(), *self._examples.values()])

    def _tell(self) -> None:
        self._told = time.monotonic()
        if self._counts is not None:
            with self._counts.open("a") as file:
                file.write("\n".join([self._line(), *self._examples.values(), ""]))

    def _line(self) -> str:
        seconds = time.monotonic() - self._began
        what = f"{self.cases} cases, {dict(sorted(self._kinds.items()))}; differences: {dict(self._differences)}"
        return f"{seconds:.0f} s, seeds {self._seed} to {self._at}: {what}"
