"""What all tests share: no deadlines, the same examples in each run, and sweeps of which a run takes a sample."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

T = TypeVar("T")
# the files that take longest: one of them begun last would keep the others waiting
FIRST = [
    "interop/test_sink_killed.py",
    "interop/test_random_images.py",
    "interop/test_get_offsets.py",
    "interop/test_replay.py",
    "interop/test_log_store.py",
    "interop/test_spark_moves.py",
    "interop/test_dump.py",
    "interop/test_sink.py",
    "interop/test_image_snapshot.py",
    "spark/test_sink.py",
    "spark/test_stream.py",
    "spark/test_datasource.py",
    "spark/test_udf.py",
    "spark/test_export.py",
    "broker/test_replay.py",
    "simulation/test_every_sync.py",
    "read/test_remote.py",
    "log_store/test_interrupts.py",
]
LEAST, PART = 10, 3  # a test of Hypothesis takes one of three of the examples that it asks for
_SETTINGS = "_hypothesis_internal_use_settings"

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
    group.addoption("--most-cases", type=int, help="run at most so many cases of each test, and few random examples")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of sweeps."""
    config.addinivalue_line("markers", "sweep(cases): a run takes so many of its cases; --all-cases takes all")


def pytest_report_header(config: pytest.Config) -> str:
    """Say how a run is repeated."""
    if config.getoption("--all-cases"):
        return "sweeps: all cases"
    return f"sweeps: a sample, --sample-seed={config.getoption('--sample-seed')}"


@pytest.fixture
def sampled(request: pytest.FixtureRequest) -> Callable[[Iterable[T], int], list[T]]:
    """Return what takes so many of the cases of a loop, in their order; with --all-cases it takes all."""

    def take(cases: Iterable[T], keep: int) -> list[T]:
        every = list(cases)
        if request.config.getoption("--all-cases") or len(every) <= keep:
            return every
        dice = random.Random(f"{request.config.getoption('--sample-seed')} {request.node.nodeid}")
        return [every[at] for at in sorted(dice.sample(range(len(every)), keep))]

    return take


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the longest files, and leave out the cases of sweeps that are not in the sample."""
    order = {Path(__file__).parent / name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))
    if config.getoption("--all-cases"):
        return
    most = config.getoption("--most-cases")
    _take_fewer_examples(items, most)
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if most or item.get_closest_marker("sweep"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for name, cases in tests.items():
        sweep = cases[0].get_closest_marker("sweep")
        keep = min(each for each in (sweep and sweep.args[0], most) if each is not None)
        if len(cases) > keep:  # one that was asked for by its name is run
            dice = random.Random(f"{config.getoption('--sample-seed')} {name}")
            left_out |= set(cases) - set(dice.sample(cases, keep))
    if left_out:
        config.hook.pytest_deselected(items=sorted(left_out, key=lambda item: item.nodeid))
        items[:] = [item for item in items if item not in left_out]


def _take_fewer_examples(items: list[pytest.Item], most: int | None) -> None:
    """Run a part of the examples that tests of Hypothesis ask for: they are the same ones in each run."""
    tests = {item.obj for item in items if hasattr(getattr(item, "obj", None), _SETTINGS)}
    for test in tests:
        own = getattr(test, _SETTINGS)
        few = LEAST if most else max(LEAST, own.max_examples // PART)
        setattr(test, _SETTINGS, settings(own, max_examples=min(own.max_examples, few)))
