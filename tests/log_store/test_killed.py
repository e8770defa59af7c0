"""Processes that are killed, most of them behind the decision of a commit: no record is lost, none is there alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from killed_writer import MOMENTS, PARTITIONS, write

import kraftlog
from kraftlog import LogStore

ROUNDS = int(os.environ.get("ROUNDS", len(MOMENTS)))
DECIDED = ("behind the decision", "between the markers", "behind the markers")


@pytest.fixture(autouse=True)
def without_waiting() -> None:
    """Use the real disk, in place of the one of this folder's tests."""


def test_killed_writers(tmp_path: Path):
    path, acknowledged = tmp_path / "store", tmp_path / "acknowledged"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["killed_writer"])
    moments: Counter[str] = Counter()
    for seed in range(ROUNDS):
        moment = MOMENTS[seed % len(MOMENTS)]
        process = context.Process(target=write, args=(path, acknowledged, seed, moment))
        process.start()
        process.join(timeout=60)
        assert process.exitcode == -signal.SIGKILL
        moments[moment] += 1
        with LogStore(path) as store:
            assert not any(state.is_pending for state in store.transactional_ids())
        check(path, acknowledged)
    assert sum(moments[moment] for moment in DECIDED) >= ROUNDS // 2


def check(path: Path, acknowledged: Path) -> None:
    log = kraftlog.open(path, topics=["t"])
    shown = log.records(["value"], isolation_level="read_committed", strict=True).to_table()["value"].to_pylist()
    found = Counter(value.decode().split()[0] for value in shown)
    states = dict(line.split(maxsplit=1) for line in acknowledged.read_text().splitlines())
    expected = {name for name, state in states.items() if state == "committed" or state in DECIDED}
    assert found == dict.fromkeys(expected, PARTITIONS)
    assert len(set(shown)) == len(shown)
    assert kraftlog.open(path).errors().num_rows == 0
