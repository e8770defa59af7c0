"""What a Python worker of Spark does once, when it reads its first part."""

from __future__ import annotations

import atexit
import gc
from functools import cache


@cache
def settle() -> None:
    """Exclude imported modules from the garbage collection that Spark runs after each task.

    A collection of all objects of PySpark, pandas and pyarrow takes 15 ms, while reading offsets from 128 MiB takes 50.
    At exit they are collected as usual: extension modules report leaks otherwise.
    """
    gc.freeze()
    atexit.register(gc.unfreeze)
