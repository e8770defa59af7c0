"""The same rows when executors are processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlog.spark import read_ranges
from spark_rows import comparable, expected_rows, log_directories, rows_of


@pytest.mark.parametrize("folder", log_directories()[:2], ids=lambda path: path.parent.name)
def test_rows(cluster, folder: Path):
    for table in ("records", "batches"):
        expected = comparable(expected_rows(table, folder))
        source = cluster.read.format("kraftlog").option("table", table).options(rangeBytes="16k", includeHeaders="true").load(str(folder))
        assert comparable(rows_of(source)) == expected
        assert comparable(rows_of(read_ranges(cluster, str(folder), table=table, includeHeaders=True))) == expected
