"""The option ``cut``: tasks read the log up to a cut at which no transaction is torn."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import kraftlog
from accounts import ACCOUNTS, ORDERS, history
from kraftlog.spark.options import parse_request

COLUMNS = ("topic", "partition", "offset", "value")


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_rows_up_to_a_cut(spark: SparkSession, tmp_path: Path, level: str):
    begin, end = history(tmp_path / "store", Random(4))
    folder = str(tmp_path / "store")
    cut = f"at-or-before:{datetime.fromtimestamp((begin + end) / 2000, UTC).isoformat()}"
    options = {"isolationLevel": level, "columns": ",".join(COLUMNS), "rangeBytes": "500"}
    frame = spark.read.format("kraftlog").options(**options).option("cut", cut).load(folder)
    log = kraftlog.open(folder, cut=cut)
    rows = log.records(COLUMNS, isolation_level=level).to_table().to_pylist()  # type: ignore[arg-type]
    assert {row["topic"] for row in rows} >= {ACCOUNTS, ORDERS}
    assert len(rows) < kraftlog.open(folder).records(["offset"], isolation_level=level).to_table().num_rows  # type: ignore[arg-type]
    assert sorted(map(tuple, frame.collect())) == sorted(tuple(row.values()) for row in rows)


def test_a_stream_has_no_cut():
    with pytest.raises(ValueError, match="option cut: a stream has no end"):
        parse_request({"path": "logs", "cut": "end"}, is_streaming=True)
    with pytest.raises(ValueError, match="cut 'before:1' is not end, at-or-before:TIME or at-or-after:TIME"):
        parse_request({"path": "logs", "cut": "before:1"})
