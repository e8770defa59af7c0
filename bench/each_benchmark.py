"""Runs each benchmark of asv once, on little data, with the first of its parameters, in one process: whether they work.

``asv run --quick`` starts a process for each benchmark and each choice of parameters, which takes minutes.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import benchmarks
from benchmarks import common, spark_functions

KINDS = ("time_", "track_", "peakmem_", "mem_")
common.MEGABYTES, common.REPEATS = 1, 1
spark_functions.RECORDS = 6_000


def classes() -> Iterator[type]:
    """Return the classes that asv finds."""
    for module in pkgutil.iter_modules(benchmarks.__path__):
        found = vars(importlib.import_module(f"benchmarks.{module.name}"))
        for name, value in found.items():
            if inspect.isclass(value) and not name.startswith("_") and value.__module__ == f"benchmarks.{module.name}":
                yield value


def run(case: type) -> int:
    """Run the benchmarks of a class; return how many there are."""
    params = getattr(case, "params", [])
    nested = params if params and isinstance(params[0], (list, tuple)) else [params] if params else []
    first = [choices[0] for choices in nested]
    names = [name for name in dir(case) if name.startswith(KINDS)]
    for name in names:
        made = case()
        if hasattr(made, "setup"):
            made.setup(*first)
        getattr(made, name)(*first)
    return len(names)


def main() -> None:
    """Run them all."""
    count = sum(run(case) for case in classes())
    if not count:
        sys.exit("no benchmark was found")
    print(f"{count} benchmarks ran")


if __name__ == "__main__":
    main()
