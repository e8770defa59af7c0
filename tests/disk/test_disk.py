"""The object that files are listed and read through."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk.disk import Disk, disk, use_disk
from kraftlog.disk.entries import Entry
from kraftlog.disk.local_file import ShortReadError
from kraftlog.disk.remote_path import LogPath

FOLDER = GOLDEN / "codecs" / "log" / "codec-lz4-0"


class _Vanishing:
    """Entries of ``os.scandir``, some of which are gone when their size is asked for."""

    def __init__(self, found: Any, gone: str) -> None:
        self._found, self._gone = found, gone

    def __enter__(self) -> _Vanishing:
        return self

    def __exit__(self, *_: object) -> None:
        self._found.close()

    def __iter__(self) -> Any:
        for entry in self._found:
            if entry.name.endswith(self._gone):
                Path(entry.path).unlink()
            yield entry


def test_entries_that_vanish_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / FOLDER.name
    folder.mkdir()
    for file in FOLDER.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    scandir = os.scandir
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", lambda path: _Vanishing(scandir(path), "0.index"))
        log = kraftlog.open(folder)
    assert not (folder / "00000000000000000000.index").exists()
    assert log.records().to_table().equals(kraftlog.open(FOLDER).records().to_table())
    assert log.errors().num_rows == 0


def test_entries(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    assert disk().entries(tmp_path) == [
        Entry("dangling", False, False),
        Entry("file", False, True, 3),
        Entry("folder", True, False),
    ]
    assert disk().entry(tmp_path / "file") == Entry("file", False, True, 3)
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
    with pytest.raises(ShortReadError, match="70 bytes expected, 60 found: the file was truncated") as caught:
        file.read(50, 70)
    assert (caught.value.expected, caught.value.found) == (70, 60)
    file.close()
    file.close()


def test_another_disk_is_used_in_all_threads():
    class Refusing(Disk):
        def entries(self, folder: LogPath) -> list[Entry]:
            raise PermissionError(13, "no", str(folder))

    with use_disk(Refusing()), ThreadPoolExecutor(1) as pool, pytest.raises(PermissionError):
        pool.submit(kraftlog.open, FOLDER).result()
    assert kraftlog.open(FOLDER).found.segments
