"""One core for a Spark that has two: its threads, and those of its Python workers, are kept on it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Set
from pathlib import Path

AVAILABLE = hasattr(os, "sched_setaffinity")  # Linux


@contextlib.contextmanager
def one_core(root: int) -> Iterator[None]:
    """Keep a process, and all that it started or starts, on the first core inside ``with``."""
    every = os.sched_getaffinity(root)
    _keep(root, {min(every)})
    try:
        yield
    finally:
        _keep(root, every)


def _keep(root: int, cores: Set[int]) -> None:
    for process in _tree(root):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)


def _tree(root: int) -> list[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    tree = [root]
    for process in tree:
        tree += [child for child, parent in parents.items() if parent == process]
    return tree
