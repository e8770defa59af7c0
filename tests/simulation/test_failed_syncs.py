"""A sync fails, the process ends, and the next one opens what is left without a reboot; then the power fails.

What the sync should have written is in the page cache and counts as written: see ``File.sync_failed``.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from faults import Fault
from runner import KILL, Simulation, ViolationError, Workload
from workloads import WORKLOADS

from kraftlog.disk.disk import disk

KIND = "EIO at a sync"


def killed_behind(workload: Workload, most: int) -> Simulation:
    """Let syncs of a run fail, one at a time, kill the process behind each, recover, and crash the recovery."""
    simulation, dice = Simulation(workload, seed=3), Random(3)
    syncs = [step.number for step in simulation._run(0, None).steps if step.name in ("sync", "sync_file")]
    for number in dice.sample(syncs, min(most, len(syncs))):
        fault = Fault(KIND, number)
        moments = simulation._run(0, fault).moments
        simulation._try(0, fault, len(moments) - 1, KILL, dice)
    return simulation


@pytest.mark.sweep(2)
@pytest.mark.parametrize("make", WORKLOADS, ids=[make().name for make in WORKLOADS])
def test_what_a_recovery_has_shown_stays(make):
    simulation = killed_behind(make(), 15)
    assert simulation.counts.kinds[f"during recovery: {KILL}"] + simulation.counts.states > 5


def test_without_writing_it_again(monkeypatch: pytest.MonkeyPatch):
    """The simulation notices when the tail is synced, and not written again."""

    def sync_alone(path: Path, start: int, size: int | None = None) -> None:
        with disk().open_update(path) as file:
            if size is not None:
                file.truncate(size)
            file.sync()

    monkeypatch.setattr("kraftlog.write.log_repair.write_again", sync_alone)
    names = {make().name: make for make in WORKLOADS}
    with pytest.raises(ViolationError):
        killed_behind(names["PartitionWorkload(commit)"](), 40)
