"""Stores without random numbers and without a real clock."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faulty_disk import FaultyDisk
from kraftlog import LogStore
from kraftlog.disk.disk import use_disk
from standing_clock import StandingClock

sys.path.insert(0, str(Path(__file__).parent))  # modules of this folder are found by their names


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def opened(tmp_path: Path, clock: StandingClock) -> Callable[..., LogStore]:
    """Return a function that opens the store of the test."""
    numbers = iter(range(1, 1000))

    def open_store(**options: object) -> LogStore:
        return LogStore(
            tmp_path / "store",
            **{"clock": clock, "new_uuid": lambda: next(numbers).to_bytes(16), "sync_threads": 0, **options},
        )

    return open_store


@pytest.fixture(autouse=True)
def without_waiting() -> Iterator[FaultyDisk]:
    with use_disk(FaultyDisk()) as disk:
        yield disk
