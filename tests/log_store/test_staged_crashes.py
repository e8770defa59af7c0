"""Whenever a driver dies: the rows of a write are there once, or not at all; a rerun brings them there once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from crashes import crash_after
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from written import Values, assert_sound, stage, states, visible

from faulty_disk import FaultyDisk, only
from kraftlog.disk.disk import use_disk
from kraftlog.log_store.errors import StoreError
from kraftlog.log_store.staged_write import CommitUnfinishedError, abort_unfinished, commit, recover
from kraftlog.log_store.write_id import WriteId, write_of_batch

BEFORE: list[Values] = [
    {("t", 0): [f"before {n}" for n in range(20)], ("t", 1): ["a", "b"], ("u", 0): ["stays"]},
]
AFTER: list[Values] = [
    {("t", 0): [f"task 0, row {n}" for n in range(24)], ("new", 1): ["x"]},
    {("t", 0): ["task 1"]},
]


@pytest.fixture(autouse=True)
def without_waiting() -> Iterator[None]:
    with use_disk(FaultyDisk()):
        yield


def merged(before: Values, tasks: list[Values], *, overwrite: bool) -> Values:
    topics = {topic for task in tasks for topic, _ in task}
    result = {at: list(values) for at, values in before.items() if not (overwrite and at[0] in topics)}
    for task in tasks:
        for at, values in task.items():
            result.setdefault(at, []).extend(values)
    return {at: values for at, values in result.items() if values}


@pytest.mark.parametrize("overwrite", [False, True])
def test_at_every_step(tmp_path: Path, overwrite: bool):
    source = tmp_path / "source"
    first = write_of_batch("row", 1)
    commit(source, first, stage(source, first, BEFORE), topics={"t": 3})
    before = visible(source)
    after = merged(before, AFTER, overwrite=overwrite)
    write = write_of_batch("row", 2)
    staged = stage(source, write, AFTER)
    outcomes = set()
    for moment in range(5 * overwrite, 1000, 13):  # the two take different moments
        directory = tmp_path / f"crash-{moment}"
        shutil.copytree(source, directory)
        with crash_after(moment):
            commit(directory, write, staged, overwrite=overwrite, topics={"new": 2})
            break
        recover(directory)
        shown = visible(directory)
        assert shown in (before, after)
        again = stage(directory, write, AFTER)
        commit(directory, write, again, overwrite=overwrite, topics={"new": 2})
        assert visible(directory) == after
        assert_sound(directory)
        assert states(directory) <= {"committed", "aborted"}
        outcomes.add(shown == after)
        shutil.rmtree(directory)
    assert moment > 40
    assert outcomes == {False, True}  # died before the decision, and behind it
    assert visible(directory) == after
    assert_sound(directory)


@pytest.mark.parametrize("overwrite", [False, True])
def test_steps_that_fail(tmp_path: Path, overwrite: bool):
    """A disk that fails once: the write is there, or is there after a recovery, or nothing of it is."""
    source = tmp_path / "source"
    first, write = write_of_batch("row", 1), write_of_batch("row", 2)
    commit(source, first, stage(source, first, BEFORE))
    before, after = visible(source), merged(visible(source), AFTER, overwrite=overwrite)
    staged = stage(source, write, AFTER)
    for moment in range(8 * overwrite, 1000, 17):
        directory = tmp_path / f"failed-{moment}"
        shutil.copytree(source, directory)
        with use_disk(FaultyDisk(only(moment))) as disk, suppress(OSError, StoreError, CommitUnfinishedError):
            commit(directory, write, staged, overwrite=overwrite)
        if len(disk.steps) <= moment:
            break
        recover(directory)
        assert visible(directory) in (before, after), disk.steps[moment]
        commit(directory, write, stage(directory, write, AFTER), overwrite=overwrite)
        assert visible(directory) == after, disk.steps[moment]
        assert_sound(directory)
        shutil.rmtree(directory)
    assert moment > 60


@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_of_it_is_visible_halfway(tmp_path: Path, overwrite: bool):
    """Each partition shows the old rows, nothing, or the new ones; never both, and never a part."""
    source = tmp_path / "source"
    first = write_of_batch("row", 1)
    commit(source, first, stage(source, first, BEFORE))
    before, after = visible(source), merged(visible(source), AFTER, overwrite=overwrite)
    write = write_of_batch("row", 2)
    staged = stage(source, write, AFTER)
    for moment in range(8 * overwrite, 1000, 17):
        directory = tmp_path / f"crash-{moment}"
        shutil.copytree(source, directory)
        with crash_after(moment):
            commit(directory, write, staged, overwrite=overwrite)
            break
        shown = visible(directory)
        for at in before.keys() | after.keys():
            allowed = [before.get(at, []), after.get(at, [])]
            if overwrite and at[0] == "t":  # old segments go one by one, the oldest first
                allowed += [before.get(at, [])[n:] for n in range(len(before.get(at, [])) + 1)]
            assert shown.get(at, []) in allowed, (moment, at)
        shutil.rmtree(directory)


PARTITIONS = st.sampled_from([("t", 0), ("t", 1), ("u", 0), ("new", 3)])
COUNTS = {"t": 2, "u": 1, "new": 4}
TASKS = st.lists(st.dictionaries(PARTITIONS, st.integers(1, 30), max_size=3), max_size=3)
TRY = st.tuples(st.integers(0, 60) | st.integers(0, 400), st.sampled_from(["recover", "abort_unfinished", "nothing"]))
WRITE = st.tuples(TASKS, st.booleans(), st.lists(TRY, max_size=3))


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(WRITE, min_size=1, max_size=4))
def test_rows_of_many_tries(writes: list[tuple[list[dict[tuple[str, int], int]], bool, list[tuple[int, str]]]]):
    """A write is tried, dies, is perhaps recovered, and tried again; all of it is a rerun after a restart."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        expected: Values = {}
        for batch_id, (shape, overwrite, tries) in enumerate(writes):
            write = write_of_batch("row", batch_id)
            tasks = [
                {at: [f"{batch_id}/{task}/{n}" for n in range(count)] for at, count in partitions.items()}
                for task, partitions in enumerate(shape)
            ]
            for moment, afterwards in tries:
                with crash_after(moment):
                    write_once(directory, write, tasks, overwrite)
                if directory.exists() and afterwards != "nothing":
                    {"recover": recover, "abort_unfinished": abort_unfinished}[afterwards](directory)
            write_once(directory, write, tasks, overwrite)
            expected = merged(expected, tasks, overwrite=overwrite)
            assert visible(directory) == expected
        if expected:
            assert_sound(directory)
            assert states(directory) <= {"committed", "aborted"}


def write_once(directory: Path, write: WriteId, tasks: list[Values], overwrite: bool) -> None:
    counts = {topic: COUNTS[topic] for task in tasks for topic, _ in task}
    commit(directory, write, stage(directory, write, tasks), overwrite=overwrite, topics=counts)
