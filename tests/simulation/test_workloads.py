"""A seeded part of ``make simulate``: no schedule violates what the oracles say, and each kind of them is drawn."""

from __future__ import annotations

import pytest
from runner import RANDOM, SIMPLE, Simulation
from workloads import WORKLOADS

MOST = 300  # schedules within which each kind comes up


@pytest.mark.sweep(1)
@pytest.mark.parametrize("make", WORKLOADS, ids=[make().name for make in WORKLOADS])
def test_nothing_is_violated(make):
    simulation = Simulation(make(), seed=1)
    counts = simulation.explore(100, variants=2)
    wanted = {*SIMPLE, RANDOM, *simulation.workload.faults}
    wanted |= {f"actor: {name}" for name in simulation.workload.actors}
    while missing := {kind for kind in wanted if not counts.kinds[kind]}:
        assert counts.schedules < MOST, f"never drawn: {missing}"
        simulation.explore(counts.schedules + 10, variants=2)
    assert counts.schedules >= 100
    assert counts.states > 10
