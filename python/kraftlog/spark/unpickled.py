"""The objects that Spark sends to tasks, pickled so that a worker without kraftlog can report what is missing.

The functions here are pickled by value, so that they run there. They use no name of this module or of kraftlog.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def called(function: Callable[..., Any], title: str) -> Callable[..., Any]:
    """Return a function of one argument for Spark to send, under a name that EXPLAIN shows."""
    task = _caller(_by_value(function))
    task.__name__ = title
    return task


def reduced(value: object) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the result of ``__reduce__`` for an object that Spark sends to tasks; its attributes are its state."""
    return _made, (_by_value((type(value), vars(value))),)


def _by_value(value: object) -> Callable[[], Any]:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return _unpickler(cloudpickle.dumps(value))


def _unpickler(data: bytes) -> Callable[[], Any]:
    def unpickled() -> Any:
        import pickle
        import sys

        try:
            return pickle.loads(data)
        except ImportError as error:
            name = error.name or ""
            if name.startswith("kraftlog._native"):
                missing = "No compiled modules of kraftlog, which a zip file of --py-files cannot have,"
            elif name == "kraftlog" and isinstance(error, ModuleNotFoundError):
                missing = "No module named 'kraftlog'"
            else:
                raise
            raise ModuleNotFoundError(
                f"{missing} in the Python of this worker, {sys.executable}: install it there, or set "
                "PYSPARK_PYTHON (spark.pyspark.python) to a Python that has it",
                name=name,
            ) from None

    return unpickled


def _caller(function: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    def task(argument: Any) -> Any:
        return function()(argument)

    return task


def _made(state: Callable[[], tuple[type, dict[str, Any]]]) -> object:
    kind, attributes = state()
    made: Any = object.__new__(kind)
    vars(made).update(attributes)
    return made
