"""Streaming queries on a busy machine.

Spark waits ten seconds for the Python worker of a streaming source, whatever its settings say. A query whose worker
took longer has read nothing yet, so it can be started again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from kraftlog.spark.stream import HAS_READ_LIMITS

STARTS = 10
TOO_LATE = "Python worker failed to connect back"

Result = TypeVar("Result")

limits_rows = pytest.mark.skipif(
    not HAS_READ_LIMITS, reason="this PySpark tells Python data sources neither limits nor availableNow"
)


def until_its_worker_starts(run: Callable[[], Result]) -> Result:
    """Call a function that starts a query and waits for it; again, while its worker starts too late."""
    from pyspark.errors import StreamingQueryException

    for _ in range(STARTS - 1):
        try:
            return run()
        except StreamingQueryException as error:
            if TOO_LATE not in str(error):
                raise
    return run()


def run_to_its_end(start: Callable[[], Any]) -> Any:
    """Start a query, wait for its end and return it."""

    def run() -> Any:
        query = start()
        query.awaitTermination()
        return query

    return until_its_worker_starts(run)
