"""Threads that must not wait read cached bytes, take free locks, and refuse everything else before it has begun."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftlog.disk import local_file
from kraftlog.disk.disk import disk
from kraftlog.disk.local_file import LocalFile, ShortReadError
from kraftlog.disk.remote_path import RemotePath
from kraftlog.disk.waiting import Lock, WouldWait, about_to_wait, slow_property, without_waiting

CONTENT = bytes(range(100))

needs_cached_reads = pytest.mark.skipif(
    not hasattr(os, "RWF_NOWAIT"), reason="without the flag of Linux each read could wait"
)


@pytest.fixture
def file(tmp_path: Path) -> LocalFile:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    return LocalFile(path)


def test_a_thread_may_wait_outside_of_a_block_and_after_it_has_failed():
    about_to_wait()
    with pytest.raises(WouldWait), without_waiting(10):
        about_to_wait()
    about_to_wait()


def test_other_threads_may_wait():
    done = list[bool]()

    def wait() -> None:
        about_to_wait()
        done.append(True)

    with without_waiting(10):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert done


@needs_cached_reads
def test_cached_bytes_are_read_up_to_a_number(file: LocalFile):
    target = memoryview(bytearray(20))
    with without_waiting(50):
        assert file.read(10, 40) == CONTENT[10:40]
        file.read_into(target, 80)
        assert target == CONTENT[80:]
        with pytest.raises(WouldWait):
            file.read(0, 1)
        with pytest.raises(WouldWait):
            file.read_into(target[:1], 0)
    assert file.read(0, 100) == CONTENT


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.EOPNOTSUPP])
@pytest.mark.parametrize("way", ["read", "read_into"])
def test_bytes_that_are_not_cached(code: int, way: str, file: LocalFile, monkeypatch: pytest.MonkeyPatch):
    def refused(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch, without_waiting(100):
        patch.setattr(os, "preadv", refused)
        with pytest.raises(WouldWait):
            read(file, way)
    assert read(file, way) == CONTENT


@pytest.mark.parametrize("way", ["read", "read_into"])
def test_bytes_of_which_some_are_cached(way: str, file: LocalFile, monkeypatch: pytest.MonkeyPatch):
    with without_waiting(100):
        monkeypatch.setattr(os, "preadv", lambda *_: 99)
        with pytest.raises(WouldWait):
            read(file, way)


def test_bytes_that_are_in_memory_need_not_be_read(file: LocalFile, monkeypatch: pytest.MonkeyPatch):
    asked = list[tuple[int, int]]()
    monkeypatch.setattr(local_file, "is_cached", lambda _, start, end: asked.append((start, end)) is None)
    monkeypatch.setattr(os, "preadv", None)
    with without_waiting(50):
        file.check_cached(10, 50)
        with pytest.raises(WouldWait):
            file.check_cached(50, 61)
    file.check_cached(0, 100)
    assert asked == [(10, 50)]


@needs_cached_reads
def test_bytes_of_which_the_system_does_not_tell_are_read(file: LocalFile, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local_file, "is_cached", lambda *_: False)
    with without_waiting(50):
        file.check_cached(10, 50)
        monkeypatch.setattr(os, "preadv", lambda *_: 5)
        with pytest.raises(WouldWait):
            file.check_cached(50, 60)


@needs_cached_reads
def test_an_error_of_the_file_is_none_of_waiting(file: LocalFile, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "preadv", broken)
    with without_waiting(100), pytest.raises(OSError, match=os.strerror(errno.EIO)):
        file.read(0, 10)


def test_a_file_that_was_truncated_is_told_by_who_may_wait(file: LocalFile):
    with without_waiting(200), pytest.raises(WouldWait):
        file.read(90, 110)
    with pytest.raises(ShortReadError):
        file.read(90, 110)


def read(file: LocalFile, way: str) -> bytes:
    if way == "read":
        return file.read(0, 100)
    target = bytearray(100)
    file.read_into(memoryview(target), 0)
    return bytes(target)


@pytest.mark.parametrize("step", [LocalFile.fileno, lambda _: disk().open(RemotePath("memory://there/file"))])
def test_what_may_always_wait(step: Callable[[LocalFile], object], file: LocalFile):
    with without_waiting(100), pytest.raises(WouldWait):
        step(file)
    assert file.fileno() >= 0


def test_a_lock_that_another_thread_has():
    lock = Lock()
    with without_waiting(0), lock, lock:
        pass
    taken, done = threading.Event(), threading.Event()

    def take() -> None:
        with lock:
            taken.set()
            done.wait(30)

    thread = threading.Thread(target=take)
    thread.start()
    assert taken.wait(30)
    with without_waiting(0), pytest.raises(WouldWait), lock:
        pass
    threading.Timer(0.01, done.set).start()
    with lock:
        assert done.is_set()
    thread.join()
    with without_waiting(0), lock:
        pass


def test_a_slow_property():
    class Slow:
        computed = 0

        @slow_property
        def value(self) -> int:
            self.computed += 1
            return 7

    slow = Slow()
    with without_waiting(0), pytest.raises(WouldWait):
        _ = slow.value
    assert slow.value == 7
    with without_waiting(0):
        assert slow.value == 7
    assert slow.computed == 1
