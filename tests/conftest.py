"""What all tests share: no deadlines, the same examples in each run, and sweeps of which a run takes a sample."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# A busy machine is no reason to fail, and a commit that passed passes again: new examples are drawn with --all-cases.
settings.register_profile("fixed", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("random", settings.get_profile("fixed"), derandomize=False, print_blob=True)
settings.load_profile("random" if "--all-cases" in sys.argv else "fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what says how much of a sweep is run."""
    group = parser.getgroup("sweeps")
    group.addoption("--all-cases", action="store_true", help="run every case of the tests that are marked as sweeps")
    group.addoption("--sample-seed", default="0", help="which sample of the cases of a sweep is run")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of sweeps."""
    config.addinivalue_line("markers", "sweep(cases): a run takes so many of its cases; --all-cases takes all")


def pytest_report_header(config: pytest.Config) -> str:
    """Say how a run is repeated."""
    if config.getoption("--all-cases"):
        return "sweeps: all cases"
    return f"sweeps: a sample, --sample-seed={config.getoption('--sample-seed')}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of sweeps that are not in the sample."""
    if config.getoption("--all-cases"):
        return
    sweeps: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sweep"):
            sweeps.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for name, cases in sweeps.items():
        keep = cases[0].get_closest_marker("sweep").args[0]
        if len(cases) > keep:  # one that was asked for by its name is run
            dice = random.Random(f"{config.getoption('--sample-seed')} {name}")
            left_out |= set(cases) - set(dice.sample(cases, keep))
    if left_out:
        config.hook.pytest_deselected(items=sorted(left_out, key=lambda item: item.nodeid))
        items[:] = [item for item in items if item not in left_out]
