"""Forks Spark's Python workers once what they import is loaded: tests use many of them, each for a moment."""

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import daemon

import kraftlog.spark.datasource
import kraftlog.spark.worker

__all__ = ["kraftlog", "pa", "pc", "pd"]

if __name__ == "__main__":
    daemon.manager()
