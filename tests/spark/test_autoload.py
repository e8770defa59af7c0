"""Spark finds the format by itself where the package is installed."""

from __future__ import annotations

from golden_files import GOLDEN


def test_format_without_register(spark):
    session = spark.newSession()  # what register() did to the other one is not seen here
    folder = str(GOLDEN / "codecs" / "log")
    assert session.read.format("kraftlog").option("columns", "offset").load(folder).count() == 5219
    session.sql(f"CREATE TEMPORARY VIEW records USING kraftlog OPTIONS (path '{folder}', subscribe 'codec-lz4')")
    assert session.sql("SELECT count(*) AS n FROM records").collect()[0].n == 751
