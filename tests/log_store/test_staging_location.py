"""Staged files that go through an object store: the driver commits them, and nothing of any attempt stays there."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from written import SMALL, assert_sound, rows, visible

from faulty_disk import FaultyDisk, Step, no_space
from kraftlog.disk.disk import disk, use_disk
from kraftlog.log_store.errors import StorageError
from kraftlog.log_store.placing import LARGE_BYTES
from kraftlog.log_store.staged_write import abort, begin, commit
from kraftlog.log_store.staging import StagedFile, Stager, StagingOptions, WriteEndedError
from kraftlog.log_store.staging_location import StagingLocation
from kraftlog.log_store.write_id import WriteId, new_write, write_of_batch
from object_store import BUCKET, ObjectStore, object_store


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


Left = Callable[[], list[str]]


@pytest.fixture(params=["s3", "folder"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> StagingLocation:
    if request.param == "folder":
        return StagingLocation.of(str(tmp_path / "a folder"), {})
    server: ObjectStore = request.getfixturevalue("server")
    return StagingLocation.of(f"s3://{BUCKET}/{tmp_path.name}", server.options)


def left(location: StagingLocation) -> list[str]:
    """Return the files in a location, without the empty objects that stand for folders."""
    try:
        tree = disk().tree(location.folder)
    except FileNotFoundError:
        return []
    return [str(folder / entry.name) for folder, entries in tree.items() for entry in entries if entry.is_file]


def staged(
    tmp_path: Path, task: int, values: list[str], options: StagingOptions = SMALL
) -> tuple[Path, list[StagedFile]]:
    """Stage rows in a folder of a task that nobody else sees."""
    folder = tmp_path / f"executor-{len(list(tmp_path.glob('executor-*')))}"
    folder.mkdir()
    stager = Stager(folder, options, task=task)
    for partition in range(2):
        stager.write("t", partition, rows(values))
    return folder, stager.finish()


def sent(location: StagingLocation, write: WriteId, tmp_path: Path, task: int, values: list[str]) -> list[StagedFile]:
    folder, files = staged(tmp_path, task, values)
    location.send(write, folder)
    return files


def test_each_row_once_of_the_attempts_that_won(tmp_path: Path, location: StagingLocation):
    log_directory = tmp_path / "log"
    for number in range(2):
        write = write_of_batch("etl", number)
        begin(log_directory, write, location)
        files = sent(location, write, tmp_path, 0, [f"{number}a"] * 30)
        files += sent(location, write, tmp_path, 1, [f"{number}b"] * 30)
        sent(location, write, tmp_path, 1, [f"{number}b"] * 30)  # a twin that came second
        commit(log_directory, write, files, location=location)
        assert left(location) == []
    expected = [f"{number}{task}" for number in range(2) for task in "ab" for _ in range(30)]
    assert visible(log_directory) == {("t", 0): expected, ("t", 1): expected}
    assert_sound(log_directory)
    assert not (log_directory / ".kraftlog").exists()


def test_large_files_become_segments(tmp_path: Path, location: StagingLocation):
    write, log_directory = new_write(), tmp_path / "log"
    begin(log_directory, write, location)
    folder, files = staged(tmp_path, 0, ["x" * 100_000] * 60, StagingOptions())
    assert max(file.size_in_bytes for file in files) > LARGE_BYTES
    location.send(write, folder)
    with use_disk(FaultyDisk(waits=True)) as seen:
        commit(log_directory, write, files, location=location)
    synced = [step.path.name for step in seen.steps if step.name == "sync_file" and ".kraftlog" in step.path.parts]
    assert sorted(synced) == ["0-0.log", "1-0.log"]
    assert [len(values) for values in visible(log_directory).values()] == [60, 60]
    assert_sound(log_directory)


def test_a_batch_that_was_committed_before_is_not_fetched(tmp_path: Path, location: StagingLocation):
    write, log_directory = write_of_batch("etl", 0), tmp_path / "log"
    for value in ("once", "twice"):
        begin(log_directory, write, location)
        commit(log_directory, write, sent(location, write, tmp_path, 0, [value]), location=location)
        assert left(location) == []
    assert visible(log_directory) == {("t", 0): ["once"], ("t", 1): ["once"]}


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_an_attempt_that_goes_on_after_the_end_leaves_nothing(tmp_path: Path, location: StagingLocation, ends: str):
    """Whether it notices before it sends its files, or has sent some of them."""
    write, log_directory = new_write(), tmp_path / "log"
    begin(log_directory, write, location)
    files = sent(location, write, tmp_path, 0, ["a"])
    folder, _ = staged(tmp_path, 0, ["a"])

    class EndsMeanwhile(type(disk())):  # type: ignore[misc]
        def send(self, source, target):
            super().send(source, target)
            if ends and begun:
                begun.pop()()

    def end() -> None:
        if ends == "commit":
            commit(log_directory, write, files, location=location)
        else:
            abort(log_directory, write, location)

    begun = [end]
    with use_disk(EndsMeanwhile()), pytest.raises(WriteEndedError, match="has ended while its files were sent"):
        location.send(write, folder)
    assert left(location) == []
    with pytest.raises(WriteEndedError, match=r"the write was aborted or has ended$"):
        location.send(write, folder)
    assert left(location) == []
    assert visible(log_directory) == ({("t", 0): ["a"], ("t", 1): ["a"]} if ends == "commit" else {})


def test_what_dead_tasks_left_is_removed_by_the_next_write(tmp_path: Path, location: StagingLocation):
    """And nothing of a write that is under way, or of a later batch."""
    log_directory = tmp_path / "log"
    under_way, dead, own, later = new_write(), new_write(), write_of_batch("etl", 1), write_of_batch("etl", 2)
    for write in (under_way, own, later, write_of_batch("etl", 0)):
        begin(log_directory, write, location)
        sent(location, write, tmp_path, 0, ["left"])
    location.begin(dead)
    sent(location, dead, tmp_path, 0, ["dead"])
    disk().remove(location.folder / dead.name / "begun")  # the driver ended it before the task sent the rest
    before = [path for path in left(location) if under_way.name in path or later.name in path]
    commit(log_directory, own, sent(location, own, tmp_path, 1, ["a"]), location=location)
    assert left(location) == before
    assert len(before) == 2 * 5


def test_a_file_that_is_gone(tmp_path: Path, location: StagingLocation):
    write, log_directory = new_write(), tmp_path / "log"
    begin(log_directory, write, location)
    files = sent(location, write, tmp_path, 0, ["a"])
    disk().remove(location.folder / write.name / files[0].path)
    with pytest.raises(WriteEndedError, match=r"0-0\.log: the write was aborted or has ended; its file is gone"):
        commit(log_directory, write, files, location=location)
    abort(log_directory, write, location)
    assert left(location) == []
    assert visible(log_directory) == {}
    assert not (log_directory / ".kraftlog").exists()


def test_a_full_disk_of_the_driver(tmp_path: Path, location: StagingLocation):
    """The write fails before anything is visible, and a rerun completes it."""
    write, log_directory = write_of_batch("etl", 0), tmp_path / "log"

    def full(step: Step) -> OSError | None:
        return no_space() if step.name == "append" and step.path.suffix == ".log" else None

    begin(log_directory, write, location)
    files = sent(location, write, tmp_path, 0, ["a"])
    with use_disk(FaultyDisk(full)), pytest.raises((OSError, StorageError), match="No space left on device"):
        commit(log_directory, write, files, location=location)
    abort(log_directory, write, location)
    assert left(location) == []
    begin(log_directory, write, location)
    commit(log_directory, write, sent(location, write, tmp_path, 0, ["a"]), location=location)
    assert visible(log_directory) == {("t", 0): ["a"], ("t", 1): ["a"]}
    assert left(location) == []


def test_files_that_cannot_be_removed(tmp_path: Path, location: StagingLocation, caplog: pytest.LogCaptureFixture):
    """The commit stands; the next one removes them."""

    class KeepsFiles(type(disk())):  # type: ignore[misc]
        def remove_remote_tree(self, folder):
            raise OSError(errno.EACCES, "access denied")

    log_directory = tmp_path / "log"
    for number in range(2):
        write = write_of_batch("etl", number)
        begin(log_directory, write, location)
        files = sent(location, write, tmp_path, 0, [str(number)])
        with use_disk(KeepsFiles() if number == 0 else disk()), caplog.at_level(logging.WARNING):
            commit(log_directory, write, files, location=location)
        assert bool(left(location)) == (number == 0)
    assert visible(log_directory) == {("t", 0): ["0", "1"], ("t", 1): ["0", "1"]}
    assert "staged files could not be removed" in caplog.text
    assert "secret" not in caplog.text


def test_locations_that_are_refused():
    with pytest.raises(ValueError, match="'staging' is neither a URI such as s3://bucket/staging nor an absolute path"):
        StagingLocation.of("staging", {})
