"""Numba kernels that are compiled once, and kept where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when it is first called; it runs without the interpreter lock.

    The machine code is kept beside the package, or in the user's cache. Where neither can be written to it is compiled
    anew in each process.
    """
    try:
        kernel: Callable[..., Any] = njit(cache=True, nogil=True)(function)
    except RuntimeError:
        kernel = njit(nogil=True)(function)
    return kernel
