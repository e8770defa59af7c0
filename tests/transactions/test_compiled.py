"""Kernels run where their machine code cannot be kept."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from kraftlog.compiled import compiled

SOURCE = "def total(values):\n    found = 0\n    for value in values:\n        found += value\n    return found\n"


def test_kernel_without_a_place_for_its_code() -> None:
    """Code that is in no file has none, as code in a folder that nobody may write to."""
    names: dict[str, object] = {}
    exec(compile(SOURCE, "<nowhere>", "exec"), names)
    with pytest.raises(RuntimeError, match="cannot cache function"):
        njit(cache=True)(names["total"])
    assert compiled(names["total"])(np.arange(5)) == 10
