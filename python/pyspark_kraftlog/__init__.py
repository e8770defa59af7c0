"""Spark looks into modules whose names start with ``pyspark_`` for data sources.

One that raises on import hides every other, so this one never does.
"""

import contextlib

with contextlib.suppress(ImportError):
    from kraftlog.spark.datasource import KraftlogSource as DefaultSource  # noqa: F401
