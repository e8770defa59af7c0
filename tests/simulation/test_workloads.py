"""A seeded part of ``make simulate``: no schedule violates what the oracles say."""

from __future__ import annotations

import pytest
from runner import Simulation
from workloads import WORKLOADS


@pytest.mark.parametrize("make", WORKLOADS, ids=[make().name for make in WORKLOADS])
def test_nothing_is_violated(make):
    simulation = Simulation(make(), seed=1)
    counts = simulation.explore(120)
    assert counts.schedules >= 120
    assert counts.states > 10
