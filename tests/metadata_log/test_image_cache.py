"""Images from the cache, against the same images replayed from the start of the log."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from change_logs import LOG, write
from hypothesis import given
from hypothesis import strategies as st

from golden_files import GOLDEN
from kraftlog.errors import Fault
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_cache import MOST_KEPT, ImageCache, default_folder

SCENARIOS = ("metadata", "metadata_dynamic")


def what_it_is(at: ImageAt) -> tuple[dict[str, pa.Table], ImageAt]:
    return at.image.tables(), replace(at, image=None)  # type: ignore[arg-type]


def copied(scenario: str, folder: Path) -> Path:
    """Copy a log without its snapshots, with the file that names the cluster."""
    (folder / "__cluster_metadata-0").mkdir(parents=True)
    source = GOLDEN / scenario / "log"
    for path in (source / "__cluster_metadata-0").glob("*.log"):
        shutil.copy(path, folder / "__cluster_metadata-0")
    if (source / "meta.properties").exists():
        shutil.copy(source / "meta.properties", folder)
    return folder


def segments(log: Path) -> list[Path]:
    return sorted((log / "__cluster_metadata-0").glob("*.log"))


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.checkpoint"))


def replayed(log: Path, offset: int | None = None) -> ImageAt:
    faults: list[Fault] = []
    at = image_at(MetadataLog.open(log), offset, faults)
    assert faults == []
    return at


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cache(folder: Path) -> ImageCache:
    return ImageCache(folder, least_records=1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return copied("metadata", tmp_path / "log")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_from_each_offset_to_each_later_one(scenario: str, tmp_path: Path) -> None:
    log = copied(scenario, tmp_path / "log")
    end = replayed(log).offset
    cuts = range(0, end + 1, 11)
    offsets = {end, *cuts, *(min(cut + 1, end) for cut in cuts)}
    expected = {offset: what_it_is(replayed(log, offset)) for offset in offsets}
    kept = 0
    for cut in cuts:
        cache = ImageCache(tmp_path / f"cache {cut}", least_records=1)
        assert what_it_is(image_at(MetadataLog.open(log), cut, [], cache=cache)) == expected[cut]
        kept += len(entries(tmp_path / f"cache {cut}"))
        for offset in (min(cut + 1, end), end):
            faults: list[Fault] = []
            assert what_it_is(image_at(MetadataLog.open(log), offset, faults, cache=cache)) == expected[offset]
            assert faults == []
    assert kept > 2  # none inside of a batch or of a transaction


@given(LOG, st.data())
def test_random_logs(tmp_path_factory: pytest.TempPathFactory, log: list, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("random")
    write(folder / "__cluster_metadata-0", log, 1000, ends_open=data.draw(st.booleans()))
    opened = MetadataLog.open(folder)
    cut = data.draw(st.integers(0, opened.end_offset - 1))
    cache = ImageCache(folder / "cache", least_records=1)
    image_at(opened, cut, [], cache=cache)
    expected, found = [], []
    at = image_at(opened, None, expected)
    assert what_it_is(image_at(opened, None, found, cache=cache)) == what_it_is(at)
    assert found == expected


def test_the_second_look_does_not_read_the_start(log: Path, cache: ImageCache) -> None:
    expected = what_it_is(replayed(log))
    image_at(MetadataLog.open(log), None, [], cache=cache)
    first = segments(log)[0]
    data = bytearray(first.read_bytes())
    data[200] ^= 1  # in the first batch
    first.write_bytes(data)
    faults: list[Fault] = []
    assert what_it_is(image_at(MetadataLog.open(log), None, faults, cache=cache)) == expected
    assert faults == []
    image_at(MetadataLog.open(log), None, faults)
    assert faults != []


def test_an_image_with_faults_is_not_kept(log: Path, folder: Path, cache: ImageCache) -> None:
    first = segments(log)[0]
    data = bytearray(first.read_bytes())
    data[200] ^= 1
    first.write_bytes(data)
    for _ in range(2):
        faults: list[Fault] = []
        image_at(MetadataLog.open(log), None, faults, cache=cache)
        assert faults != []
    assert entries(folder) == []


def test_an_entry_of_another_history_is_passed_over(log: Path, folder: Path, cache: ImageCache) -> None:
    image_at(MetadataLog.open(log), None, [], cache=cache)
    (entry,) = entries(folder)
    other = entry.parent.with_name("00000000")  # the CRC of another batch at this offset
    entry.parent.rename(other)
    assert cache.snapshots(MetadataLog.open(log)) == []
    assert what_it_is(image_at(MetadataLog.open(log), None, [], cache=cache)) == what_it_is(replayed(log))
    assert [path.parent for path in entries(folder)] == [entry.parent]


def test_a_shorter_log_does_not_take_it(log: Path, cache: ImageCache) -> None:
    image_at(MetadataLog.open(log), None, [], cache=cache)
    last = segments(log)[-1]
    last.write_bytes(last.read_bytes()[:-1])
    faults: list[Fault] = []
    expected: list[Fault] = []
    at = image_at(MetadataLog.open(log), None, expected)
    assert what_it_is(image_at(MetadataLog.open(log), None, faults, cache=cache)) == what_it_is(at)
    assert faults == expected


@pytest.mark.parametrize("damage", ["byte", "end", "empty"])
def test_a_damaged_entry_is_removed(log: Path, folder: Path, cache: ImageCache, damage: str) -> None:
    at = image_at(MetadataLog.open(log), None, [], cache=cache)
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    broken = bytearray(whole)
    broken[len(broken) // 2] ^= 1
    entry.write_bytes({"byte": bytes(broken), "end": whole[:-1], "empty": b""}[damage])
    faults: list[Fault] = []
    again = image_at(MetadataLog.open(log), None, faults, cache=cache)
    assert (what_it_is(again), faults) == (what_it_is(at), [])
    assert entry.read_bytes() == whole  # it was made anew


def test_a_cache_that_cannot_be_written(log: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = ImageCache(tmp_path / "file" / "below", least_records=1)
    for _ in range(2):
        assert what_it_is(image_at(MetadataLog.open(log), None, [], cache=cache)) == what_it_is(replayed(log))


def test_only_some_are_kept(log: Path, folder: Path, cache: ImageCache) -> None:
    opened = MetadataLog.open(log)
    end = replayed(log).offset
    for offset in [*range(0, end, 5), end]:
        image_at(opened, offset, [], cache=cache)
    ends = [int(path.name.split("-")[0]) for path in entries(folder)]
    assert len(ends) == MOST_KEPT
    assert max(ends) == end + 1


def test_others_cannot_read_it(log: Path, folder: Path, cache: ImageCache) -> None:
    image_at(MetadataLog.open(log), None, [], cache=cache)
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o700]


def test_short_logs_are_not_kept(log: Path, folder: Path) -> None:
    image_at(MetadataLog.open(log), None, [], cache=ImageCache(folder))
    assert not folder.exists()


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "kraftlog" / "images"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # as the XDG Base Directory Specification has it: ignored
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_folder() == tmp_path / "home" / ".cache" / "kraftlog" / "images"
