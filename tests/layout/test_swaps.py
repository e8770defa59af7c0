"""Folders in which a log cleaner is at work, or was stopped: every step of it shows the same records."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.disk.entries import Entry, local_entries
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.partition_folder import LISTINGS, PartitionFolder
from kraftlog.write.recover import recover
from kraftlog.write.recovery_action import RecoverOptions

Step = Callable[[], object]
Rows = list[tuple[int, bytes, bytes]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a partition of five segments, each with a value of the same three keys."""
    with LogStore(tmp_path / "log") as store:
        store.create_topic("t", configs={"cleanup.policy": "compact", "internal.segment.bytes": 1024})
        for number in range(5):
            with store.producer() as producer:
                for key in ("a", "b", "c"):
                    producer.send("t", key=key, value=f"{number} " + "x" * 240)
                    producer.flush()
    assert len(PartitionFolder.of(tmp_path / "log/t-0").segments) == 5
    return tmp_path / "log/t-0"


def rows(folder: Path) -> Rows:
    table = kraftlog.open(folder).records(["offset", "key", "value"], strict=True).to_table()
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def last_values(rows: Rows) -> dict[bytes, bytes]:
    assert all(before[0] < after[0] for before, after in pairwise(rows)), "offsets that do not rise"
    return {key: value for _, key, value in rows}


def merged(folder: Path, segments: int) -> bytes:
    """Return what a cleaner makes of the first segments when their last one holds a value of each key."""
    return [folder / segment.file_name for segment in PartitionFolder.of(folder).segments][segments - 1].read_bytes()


def files_of(folder: Path, base_offset: int) -> list[Path]:
    return [folder / f"{base_offset:020d}.{kind}" for kind in ("log", "index", "timeindex")]


def suffixed(paths: list[Path], old: str, new: str) -> Iterator[Step]:
    """Return the renames of the files of a segment, the log first, as ``LogSegment.changeFileSuffixes``."""
    for path in paths:
        yield lambda path=path: path.with_name(path.name + old).rename(path.with_name(path.name + new))


def steps_of_kafka(folder: Path, old: list[int], new: dict[int, bytes]) -> list[Step]:
    """Return the steps of ``LocalLog.replaceSegments``, from ``.cleaned`` files on."""
    made = {base: files_of(folder, base) for base in new}
    for base, data in new.items():
        for path in made[base]:
            path.with_name(path.name + ".cleaned").write_bytes(data if path.suffix == ".log" else b"")
    steps: list[Step] = []
    for base in sorted(new, reverse=True):
        steps += suffixed(made[base], ".cleaned", ".swap")
    for base in old:
        steps += suffixed(files_of(folder, base), "", ".deleted")
    for base in sorted(new):
        steps += suffixed(made[base], ".swap", "")
    return steps


def merge_of_kafka(folder: Path) -> list[Step]:
    bases = [segment.base_offset or 0 for segment in PartitionFolder.of(folder).segments]
    return steps_of_kafka(folder, bases[:3], {bases[0]: merged(folder, 3)})


def split_of_kafka(folder: Path) -> list[Step]:
    """Return the steps of a segment that is split, as its offsets no longer fit an index (KAFKA-6264)."""
    (first, *_) = PartitionFolder.of(folder).segments
    data, base = first.local_path.read_bytes(), first.base_offset or 0
    headers = kraftlog.open(first.local_path).batches(["position", "base_offset"]).to_pylist()
    cut = headers[1]
    return steps_of_kafka(folder, [base], {base: data[: cut["position"]], cut["base_offset"]: data[cut["position"] :]})


def merge_of_ours(folder: Path) -> list[Step]:
    """Return the steps of ``replace_segments``: the first segment is replaced by the rename."""
    bases = [segment.base_offset or 0 for segment in PartitionFolder.of(folder).segments]
    (log, *beside), swap = files_of(folder, bases[0]), folder / f"{bases[0]:020d}.log.swap"
    data = merged(folder, 3)
    others = [path for base in bases[1:3] for path in files_of(folder, base)]
    return [
        lambda: swap.write_bytes(data),
        *(path.unlink for path in others),
        *(path.unlink for path in beside),
        lambda: swap.rename(log),
    ]


WAYS = [merge_of_kafka, split_of_kafka, merge_of_ours]


@pytest.mark.parametrize("way", WAYS)
def test_each_step_shows_the_last_values(folder: Path, way: Callable[[Path], list[Step]]) -> None:
    before = last_values(rows(folder))
    for step in way(folder):
        assert last_values(rows(folder)) == before
        assert list(kraftlog.open(folder).verify()) == []
        step()
    assert last_values(rows(folder)) == before


@pytest.mark.parametrize("way", WAYS)
def test_a_recovery_at_each_step_finishes_it(folder: Path, tmp_path: Path, way: Callable[[Path], list[Step]]) -> None:
    before, epochs = last_values(rows(folder)), (folder / "leader-epoch-checkpoint").read_bytes()
    for number, step in enumerate(way(folder)):
        copy = tmp_path / f"copy-{number}/t-0"
        shutil.copytree(folder, copy)
        read = rows(copy)
        assert not [action for _, action in recover([copy], RecoverOptions(write=True)) if action.is_refusal]
        assert rows(copy) == read
        assert last_values(read) == before
        assert (copy / "leader-epoch-checkpoint").read_bytes() == epochs
        assert not list(copy.glob("*.swap"))
        assert [action.action for _, action in recover([copy], RecoverOptions()) if action.action != "keep"] == []
        step()


@pytest.mark.parametrize("way", WAYS)
def test_a_store_that_opens_at_each_step_finishes_it(
    folder: Path, tmp_path: Path, way: Callable[[Path], list[Step]]
) -> None:
    before = last_values(rows(folder))
    for number, step in enumerate(way(folder)):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(folder.parent, copy)
        with LogStore(copy) as store, store.producer() as producer:
            producer.send("t", key="later", value="new")
        assert last_values(rows(copy / "t-0")) == before | {b"later": b"new"}
        assert not [path for path in (copy / "t-0").iterdir() if path.suffix in (".swap", ".cleaned")]
        step()


class ChangingDisk(Disk):
    """While a folder is listed, the next step happens: the first names are from before, the others from after it."""

    def __init__(self, folder: Path, steps: list[Step], cut: int) -> None:
        self.folder, self.steps, self.cut = folder, steps, cut

    def entries(self, folder: Path) -> list[Entry]:  # type: ignore[override]
        before = local_entries(folder)
        if folder != self.folder or not self.steps:
            return before
        names = [entry.name for entry in before][: self.cut]
        self.steps.pop(0)()
        after = {entry.name: entry for entry in local_entries(folder)}
        seen = [entry for entry in before if entry.name in names]
        return sorted([*seen, *(after[name] for name in after if name > max(names, default=""))], key=lambda e: e.name)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cut", range(0, 24, 2))
def test_a_folder_that_changes_while_it_is_listed(folder: Path, way: Callable[[Path], list[Step]], cut: int) -> None:
    """A file that is renamed after the folder was listed is an error; no record is missing without one."""
    before, steps = last_values(rows(folder)), way(folder)
    with use_disk(ChangingDisk(folder, steps, cut)):
        while steps:
            with suppress(CorruptRecordError):
                assert last_values(rows(folder)) == before
    assert last_values(rows(folder)) == before


def test_a_folder_that_never_stays_the_same_is_refused(folder: Path) -> None:
    other = folder / "other"
    steps: list[Step] = [step for _ in range(LISTINGS) for step in (other.touch, other.unlink)]
    with use_disk(ChangingDisk(folder, steps, 0)), pytest.raises(OSError, match="each of 20 times"):
        PartitionFolder.of(folder)


class RenamingDisk(Disk):
    """When a ``.swap`` file is opened, it has just got its name."""

    def open(self, path: Path, size: int | None = None) -> ReadableFile:  # type: ignore[override]
        if path.suffix == ".swap" and path.exists():
            path.rename(path.with_suffix(""))
        return super().open(path, size)


def test_a_swap_that_gets_its_name_before_it_is_opened(folder: Path) -> None:
    before, steps = last_values(rows(folder)), merge_of_kafka(folder)
    for step in steps[:-3]:
        step()
    with use_disk(RenamingDisk()):
        assert last_values(rows(folder)) == before


@pytest.mark.parametrize("left", ["nothing", "the first segment"])
@pytest.mark.parametrize("unlinked", range(4))
def test_what_was_cleaned_may_end_before_the_last_segment_that_it_replaces(
    folder: Path, left: str, unlinked: int
) -> None:
    """Index files whose log file is gone already belong to it; they are no sign of a segment that is missing."""
    bases = [segment.base_offset or 0 for segment in PartitionFolder.of(folder).segments]
    swap = folder / f"{bases[0]:020d}.log.swap"
    swap.write_bytes(b"" if left == "nothing" else files_of(folder, bases[0])[0].read_bytes())
    for path in files_of(folder, bases[1])[:unlinked]:
        path.unlink()
    (folder.parent / ".kafka_cleanshutdown").unlink(missing_ok=True)
    values = last_values(rows(folder))
    with LogStore(folder.parent):
        pass
    assert last_values(rows(folder)) == values
    assert not swap.exists()
    assert PartitionFolder.of(folder).without_log == []
    assert kraftlog.open(folder).errors().num_rows == 0
