"""Decompression of the batches of a log by the libraries alone: those inside of the packages that kraftlog uses."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable

import numpy as np

import floors

HEADER_BYTES = 61
ZSTD = "_zstd" if sys.version_info >= (3, 14) else "backports.zstd._zstd"
LZ4F_VERSION = 100


def lz4() -> tuple[object, ctypes.c_void_p]:
    """Return LZ4F_decompress and a context for it."""
    library = ctypes.CDLL(importlib.import_module("lz4.frame._frame").__file__)
    context = ctypes.c_void_p()
    assert library.LZ4F_createDecompressionContext(ctypes.byref(context), LZ4F_VERSION) == 0
    return library.LZ4F_decompress, context


def zstd() -> tuple[object, ctypes.c_void_p]:
    """Return ZSTD_decompressDCtx and a context for it."""
    library = ctypes.CDLL(importlib.import_module(ZSTD).__file__)
    library.ZSTD_createDCtx.restype = ctypes.c_void_p
    return library.ZSTD_decompressDCtx, ctypes.c_void_p(library.ZSTD_createDCtx())


CODECS = {"lz4": lz4, "zstd": zstd}


def decompressor(compression: str, log: np.ndarray, headers: np.ndarray, most: int) -> Callable[[], int]:
    """Return what decompresses the records of each batch into the same memory, and returns how many bytes they have."""
    function, context = CODECS[compression]()
    starts = np.append(headers["position"], log.nbytes) + HEADER_BYTES
    target = np.ones(most, np.uint8)
    return lambda: floors.decompress(compression, function, context, log, starts, target)
