"""What a Python worker of Spark does once, when it reads its first part."""

from __future__ import annotations

import atexit
import gc
from functools import cache


@cache
def settle() -> None:
    """Leave what is imported out of the garbage collection that Spark runs after each task.

    That would go over all objects of PySpark, pandas and pyarrow: 15 ms, where offsets out of 128 MiB take 50. At exit
    they are collected as ever: extension modules complain of what is left.
    """
    gc.freeze()
    atexit.register(gc.unfreeze)
