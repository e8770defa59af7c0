"""The object that files are listed and read through."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk.disk import Disk, disk, use_disk
from kraftlog.disk.local_file import ShortReadError
from kraftlog.disk.remote_path import LogPath

FOLDER = GOLDEN / "codecs" / "log" / "codec-lz4-0"


def copied(folder: Path) -> Path:
    folder.mkdir()
    for file in FOLDER.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


class Asked:
    """An entry of ``os.scandir``; says when its size is asked for."""

    def __init__(self, entry: os.DirEntry[str], asked: Callable[[os.DirEntry[str]], None]) -> None:
        self._entry, self._asked = entry, asked
        self.name, self.is_file, self.is_dir = entry.name, entry.is_file, entry.is_dir

    def stat(self) -> os.stat_result:
        self._asked(self._entry)
        return self._entry.stat()


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch, asked: Callable[[os.DirEntry[str]], None]) -> Iterator[None]:
    scandir = os.scandir

    @contextmanager
    def wrapped(path: Path) -> Iterator[list[Asked]]:
        with scandir(path) as found:
            yield [Asked(entry, asked) for entry in found]

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", wrapped)
        yield


def test_a_log_file_that_vanishes_after_it_was_listed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = copied(tmp_path / FOLDER.name)
    gone = folder / "00000000000000000000.log"

    def delete(entry: os.DirEntry[str]) -> None:
        if entry.name == gone.name:
            gone.unlink()

    with watched(monkeypatch, delete):
        log = kraftlog.open(folder)
    assert not gone.exists()
    assert [segment.file_name for segment in log.found.segments] == ["00000000000000000341.log"]
    assert [fault.error for fault in log.unreadable()] == []


def test_opening_asks_for_the_sizes_of_log_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = copied(tmp_path / FOLDER.name)
    (folder / "notes.txt").write_bytes(b"hello")
    asked: list[str] = []
    with watched(monkeypatch, lambda entry: asked.append(entry.name)):
        log = kraftlog.open(folder)
    assert asked == ["00000000000000000000.log", "00000000000000000341.log", "notes.txt"]
    assert [sorted(segment.beside) for segment in log.found.segments] == [
        ["index", "timeindex"],
        ["index", "snapshot", "timeindex"],
    ]


def test_entries(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    assert [(each.name, each.is_dir, each.is_file, each.size) for each in disk().entries(tmp_path)] == [
        ("dangling", False, False, 0),
        ("file", False, True, 3),
        ("folder", True, False, 0),
    ]
    file = disk().entry(tmp_path / "file")
    assert file is not None
    assert (file.name, file.is_dir, file.is_file, file.size) == ("file", False, True, 3)
    assert disk().entry(tmp_path / "nothing") is None
    assert disk().entry(tmp_path / "file" / "below") is None
    assert [path.name for path in disk().matches(tmp_path, "f*")] == ["file", "folder"]
    assert disk().matches(tmp_path / "nothing", "*") == []


def test_a_file_that_was_truncated(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    file = disk().open(path)
    os.truncate(path, 60)
    assert (file.size, file.read(50, 60)) == (100, bytes(range(50, 60)))
    with pytest.raises(ShortReadError, match="expected 70 bytes, found 60: the file was truncated") as caught:
        file.read(50, 70)
    assert (caught.value.expected, caught.value.found) == (70, 60)
    file.close()
    file.close()


def test_another_disk_is_used_in_all_threads():
    class Refusing(Disk):
        def entries(self, folder: LogPath) -> list[Any]:
            raise PermissionError(13, "no", str(folder))

    with use_disk(Refusing()), ThreadPoolExecutor(1) as pool, pytest.raises(PermissionError):
        pool.submit(kraftlog.open, FOLDER).result()
    assert kraftlog.open(FOLDER).found.segments


def test_a_failed_write_names_the_file():
    with (
        disk().open_update(Path("/dev/full")) as file,
        pytest.raises(OSError, match="No space left on device: '/dev/full'"),
    ):
        file.append(b"1")


def test_the_kernel_copies_ranges_of_files_where_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data = bytes(range(256)) * 5000
    (tmp_path / "source").write_bytes(data)
    counts: list[int] = []
    copy_file_range = os.copy_file_range

    def copied_by_kernel(source: int, target: int, count: int, start: int) -> int:
        counts.append(
            copy_file_range(source, target, min(count, 100_000), start)
        )  # it may copy less than was asked for
        return counts[-1]

    monkeypatch.setattr(os, "copy_file_range", copied_by_kernel)
    source = disk().open(tmp_path / "source")
    with disk().create(tmp_path / "target") as target:
        target.append(b"before")
        target.append_range(source, 7, 300_000)
        target.append(b"behind")
        target.append_range(source, 9, 9)
    source.close()
    assert (tmp_path / "target").read_bytes() == b"before" + data[7:300_000] + b"behind"
    assert sum(counts) == 300_000 - 7


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS])
def test_where_the_kernel_copies_nothing_the_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int):
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "copy_file_range", refuse)
    (tmp_path / "source").write_bytes(b"0123456789")
    source = disk().open(tmp_path / "source")
    with disk().create(tmp_path / "target") as target:
        target.append_range(source, 2, 9)
    source.close()
    assert (tmp_path / "target").read_bytes() == b"2345678"


def test_a_range_that_cannot_be_copied_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "source").write_bytes(b"0123456789")
    source = disk().open(tmp_path / "source")
    (tmp_path / "source").write_bytes(b"01234")
    with disk().create(tmp_path / "target") as target, pytest.raises(ShortReadError):
        target.append_range(source, 2, 9)

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "copy_file_range", fail)
    with disk().create(tmp_path / "target") as target, pytest.raises(OSError, match="No space left"):
        target.append_range(source, 2, 5)
    source.close()
