"""The yardsticks of ``native/floors.c``, compiled when they are first needed."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

SOURCE = Path(__file__).resolve().parent / "native" / "floors.c"
LIBRARY = SOURCE.parent.parent.parent / "build" / "bench" / "floors.so"

Bytes = npt.NDArray[np.uint8]


def memcpy(to: Bytes, source: Bytes) -> int:
    """Copy all of ``source`` and return its size."""
    assert to.nbytes >= source.nbytes
    _library().floor_memcpy(to.ctypes.data, source.ctypes.data, source.nbytes)
    return source.nbytes


def scan(log: Bytes) -> int:
    """Return the sum of ``records_count`` over all batch headers, by a plain loop."""
    touched = ctypes.c_uint64()
    return int(_library().floor_scan(log.ctypes.data, log.nbytes, ctypes.byref(touched)))


def decompress(
    compression: str,
    function: object,
    context: ctypes.c_void_p,
    log: Bytes,
    starts: npt.NDArray[np.int64],
    target: Bytes,
) -> int:
    """Decompress all batches with a function of a library; returns the plain bytes.

    Payloads start at ``starts``, which has where one more would start behind the log.
    """
    run = getattr(_library(), f"floor_{compression}")
    pointers = (log.ctypes.data, starts.ctypes.data, len(starts) - 1, target.ctypes.data, target.nbytes)
    found = int(run(ctypes.cast(function, ctypes.c_void_p), context, *pointers))
    assert found >= 0, f"{compression} refused a batch"
    return found


@cache
def _library() -> ctypes.CDLL:
    if not LIBRARY.exists() or LIBRARY.stat().st_mtime < SOURCE.stat().st_mtime:
        LIBRARY.parent.mkdir(parents=True, exist_ok=True)
        compiler = shlex.split(os.environ.get("CC", "cc"))
        subprocess.run([*compiler, "-O3", "-shared", "-fPIC", "-o", LIBRARY, SOURCE], check=True)
    library = ctypes.CDLL(str(LIBRARY))
    library.floor_memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    library.floor_memcpy.restype = None
    library.floor_scan.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
    library.floor_scan.restype = ctypes.c_int64
    for run in (library.floor_lz4, library.floor_zstd):
        kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        run.argtypes = [*kinds, ctypes.c_void_p, ctypes.c_int64]
        run.restype = ctypes.c_int64
    return library
