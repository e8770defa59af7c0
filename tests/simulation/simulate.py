"""Runs many schedules of all workloads; a violation is printed with its seed, its operations and what was lost."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from multiprocessing import Pool
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

from runner import Counts, Simulation, ViolationError  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

PIECE = 2500  # schedules of a workload with one seed, by one process


def explore(task: tuple[int, int, int]) -> tuple[str, int, Counts, float, str]:
    """Explore one workload; return its name and seed, what was tried, seconds and the violation."""
    number, seed, schedules = task
    logging.disable(logging.CRITICAL)
    simulation = Simulation(WORKLOADS[number](), seed)
    begin, violation = time.monotonic(), ""
    try:
        simulation.explore(schedules, variants=2)
    except ViolationError as found:
        violation = str(found)
    return simulation.workload.name, seed, simulation.counts, time.monotonic() - begin, violation


def kinds_of(counts: Counts) -> str:
    """Return what was drawn, the most frequent first."""
    return ", ".join(f"{kind} {number:,}" for kind, number in counts.kinds.most_common())


def main() -> int:
    """Print counts of each workload and of all; 1 when something was violated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--workload", default="", help="only those whose name holds this")
    options = parser.parse_args()
    chosen = [number for number, make in enumerate(WORKLOADS) if options.workload in make().name]
    share = -(-options.schedules // len(chosen))
    begin, totals, violations = time.monotonic(), [0, 0], 0
    drawn: dict[str, Counts] = {}
    with Pool(options.processes) as pool:
        pieces = -(-share // PIECE)
        seeds = [options.seed * 1000 + piece for piece in range(pieces)]
        tasks = [(number, seed, -(-share // pieces)) for seed in seeds for number in reversed(chosen)]
        for name, seed, counts, seconds, violation in pool.imap_unordered(explore, tasks):
            found = f"{counts.schedules:9,} schedules {counts.states:8,} states {seconds:7.1f} s"
            print(f"{f'{name} {seed}':50} {found}", flush=True)
            totals = [totals[0] + counts.schedules, totals[1] + counts.states]
            drawn.setdefault(name, Counts()).kinds.update(counts.kinds)
            if violation:
                violations += 1
                print(violation, flush=True)
    seconds = time.monotonic() - begin
    for name, counts in sorted(drawn.items()):
        print(f"{name}: {kinds_of(counts)}")
    print(
        f"seed {options.seed}: {totals[0]:,} schedules, {totals[1]:,} different states, "
        f"{violations} violations, {seconds:.1f} s"
    )
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
