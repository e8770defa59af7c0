"""Views and tables in SQL, and paths as Hadoop writes them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk.remote_path import RemotePath, log_path
from spark_rows import comparable, plain_rows, rows_of

COLUMNS = ["topic", "partition", "offset", "value"]


@pytest.mark.parametrize("prefix", ["", "file:", "FILE://"])
def test_a_view(spark, tmp_path: Path, prefix: str):
    path = shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / "a log")
    expected = kraftlog.open(path, topics=["orders"]).records(COLUMNS).to_table()
    options = f"path '{prefix}{path}', subscribe 'orders', rangeBytes '4k'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW backup USING kraftlog OPTIONS ({options})")
    found = spark.sql(f"SELECT {', '.join(COLUMNS)} FROM backup")
    assert comparable(rows_of(found)) == comparable(plain_rows(expected))


@pytest.mark.parametrize("options", ["LOCATION '{path}'", "OPTIONS (path '{path}', subscribe 'orders')"])
def test_a_table_of_the_catalog_is_refused(spark, options: str):
    """Spark would create it, and read it without its path."""
    with pytest.raises(PySparkException, match="use CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE backup USING kraftlog {options.format(path=GOLDEN / 'transactions' / 'log')}")


def test_local_paths_of_hadoop():
    assert log_path("file:/logs/a%20b") == Path("/logs/a%20b")
    assert log_path("FILE:/logs/*-0") == Path("/logs/*-0")
    assert log_path("file:///logs/a%20b") == Path("/logs/a b")
    assert log_path("file:logs") == Path("file:logs")
    assert isinstance(log_path("s3://file:/logs"), RemotePath)
