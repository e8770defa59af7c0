"""What is said to be in memory is, compared with ``mincore``."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import pytest

from kraftlog.disk import page_cache
from kraftlog.disk.page_cache import is_cached

PAGE = mmap.PAGESIZE
PAGES = 64


def in_memory(descriptor: int) -> list[bool]:
    """Return for each page of a file whether it is in memory, as ``mincore`` does."""
    found = (ctypes.c_ubyte * PAGES)()
    with mmap.mmap(descriptor, PAGES * PAGE, flags=mmap.MAP_PRIVATE) as mapped:
        view = (ctypes.c_ubyte * (PAGES * PAGE)).from_buffer(mapped)
        failed = ctypes.CDLL(None).mincore(ctypes.byref(view), ctypes.c_size_t(PAGES * PAGE), found)
        del view
    assert not failed
    return [bool(one & 1) for one in found]


@pytest.fixture
def half(tmp_path: Path) -> int:
    """Return the descriptor of a file of which about a half is in memory."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(PAGES * PAGE))
    descriptor = os.open(path, os.O_RDWR)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead
    for first, last in [(0, PAGES // 3), (PAGES // 2, PAGES // 2 + 5)]:
        os.pread(descriptor, (last - first) * PAGE, first * PAGE)
    if not is_cached(descriptor, 0, PAGE):
        pytest.skip("this system does not tell what is in memory")
    if all(in_memory(descriptor)):
        pytest.skip("this file system keeps all of a file in memory")
    return descriptor


def test_each_range(half: int):
    pages = in_memory(half)
    for first in range(0, PAGES, 3):
        for last in range(first, PAGES, 5):
            expected = all(pages[first : last + 1])
            for start, end in [
                (first * PAGE, (last + 1) * PAGE),
                (first * PAGE + PAGE - 1, (last + 1) * PAGE),
                (first * PAGE, last * PAGE + 1),
            ]:
                assert is_cached(half, start, end) == expected, (start, end)
    assert 0 < sum(pages) < PAGES


def test_a_system_that_does_not_tell(half: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page_cache, "_CACHESTAT", 100_000)
    assert not is_cached(half, 0, PAGE)
    monkeypatch.setattr(page_cache, "_libc", None)
    assert not is_cached(half, 0, PAGE)
