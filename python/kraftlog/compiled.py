"""Loops over columns that Numba compiles; without Numba they run as plain Python, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

njit: Any = None
with suppress(ModuleNotFoundError):
    njit = import_module("numba").njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when it is first called; it runs without the interpreter lock.

    The machine code is kept beside the package, or in the user's cache. Where neither can be written to it is compiled
    anew in each process.
    """
    if njit is None:
        return function
    try:
        kernel: Callable[..., Any] = njit(cache=True, nogil=True)(function)
    except RuntimeError:
        kernel = njit(nogil=True)(function)
    return kernel


def inlined(function: Function) -> Function:
    """Compile a function into each place where compiled ones call it."""
    return function if njit is None else njit(inline="always")(function)
