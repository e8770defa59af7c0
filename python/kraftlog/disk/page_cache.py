"""Which bytes of a file are in memory, as Linux 6.5 and later tell."""

from __future__ import annotations

import ctypes
import mmap
import sys

_CACHESTAT = 451  # the number of the system call on all processors but Alpha


class _Range(ctypes.Structure):
    """``struct cachestat_range``: bytes of a file."""

    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class _Pages(ctypes.Structure):
    """``struct cachestat``: numbers of pages."""

    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("nr_cache", "nr_dirty", "nr_writeback", "nr_evicted", "nr_recently_evicted")
    )


_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def is_cached(descriptor: int, start: int, end: int) -> bool:
    """Return whether all of the bytes [start, end) of a file are in memory; False if the system does not tell."""
    if _libc is None:
        return False
    found = _Pages()
    asked = _Range(start, end - start)
    if _libc.syscall(_CACHESTAT, descriptor, ctypes.byref(asked), ctypes.byref(found), 0) != 0:
        return False
    return bool(found.nr_cache >= (end - 1) // mmap.PAGESIZE - start // mmap.PAGESIZE + 1)
