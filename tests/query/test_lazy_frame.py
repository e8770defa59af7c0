"""Lazy frames of Polars, against frames of all rows."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import kraftlog
from golden_files import GOLDEN
from kraftlog import schema
from kraftlog.tables.log import Log

TRANSACTIONS = GOLDEN / "transactions" / "log"
DAMAGED = GOLDEN / "damaged" / "garbage_between_batches"


@pytest.fixture(scope="module")
def eager() -> pl.DataFrame:
    columns = [*schema.RECORDS.shown, *schema.RECORDS.on_request]
    frame: pl.DataFrame = pl.from_arrow(kraftlog.open(TRANSACTIONS).records(columns).to_table())  # type: ignore[assignment]
    return frame


def some_predicate(chance: random.Random, frame: pl.DataFrame, depth: int = 2) -> pl.Expr:
    if depth and chance.random() < 0.6:
        left, right = (some_predicate(chance, frame, depth - 1) for _ in range(2))
        return chance.choice([left & right, left | right, ~left])
    name = chance.choice(["partition", "offset", "timestamp", "topic", "key", "transaction_state", "producer_id"])
    value = chance.choice(frame[name].drop_nulls().to_list())
    column = pl.col(name)
    return chance.choice(
        [
            column == value,
            column != value,
            column < value,
            column >= value,
            column.is_null(),
            column.is_not_null(),
            column.is_in([value]),
        ]
    )


@pytest.mark.sweep(20)
@pytest.mark.parametrize("seed", range(60))
def test_filters(eager: pl.DataFrame, seed: int) -> None:
    chance = random.Random(seed)
    predicate = some_predicate(chance, eager)
    names = chance.sample(eager.columns, 4)
    found = kraftlog.scan(TRANSACTIONS).filter(predicate).select(names).collect()
    assert_frame_equal(found, eager.filter(predicate).select(names))


@pytest.mark.parametrize("rows", [0, 1, 100, 10_000])
def test_first_rows(eager: pl.DataFrame, rows: int) -> None:
    assert_frame_equal(kraftlog.scan(TRANSACTIONS).head(rows).collect(), eager.head(rows))
    of_one = pl.col("partition") == 1
    assert_frame_equal(kraftlog.scan(TRANSACTIONS).filter(of_one).head(rows).collect(), eager.filter(of_one).head(rows))


def test_groups_and_joins(eager: pl.DataFrame) -> None:
    lazy = kraftlog.scan(TRANSACTIONS)

    def counted(frame: pl.LazyFrame) -> pl.DataFrame:
        each = frame.group_by("topic", "partition").agg(pl.len(), pl.col("offset").max().alias("last"))
        found: pl.DataFrame = frame.join(each, on=["topic", "partition"]).sort("topic", "partition", "offset").collect()
        return found

    assert_frame_equal(counted(lazy), counted(eager.lazy()))


def test_what_reaches_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[Sequence[str] | None, bool]] = []
    scan = Log.scan

    def noted(log: Log, table: str, columns: Sequence[str] | None = None, *options: Any, **more: Any) -> Any:
        read.append((columns, more.get("filter") is not None))
        return scan(log, table, columns, *options, **more)

    monkeypatch.setattr(Log, "scan", noted)
    kraftlog.scan(TRANSACTIONS).filter(pl.col("offset") > 5).select("value").collect()
    assert [(sorted(columns or []), is_filtered) for columns, is_filtered in read] == [(["offset", "value"], True)]


def test_a_fault_is_raised_or_a_warning() -> None:
    faults = kraftlog.open(DAMAGED.rglob("*.log")).errors()["message"].to_pylist()
    assert len(faults) == 1
    with pytest.raises((pl.exceptions.ComputeError, kraftlog.RecordError), match="batch"):
        kraftlog.scan(DAMAGED.rglob("*.log")).collect()
    with pytest.warns(UserWarning, match="batch") as noted:
        frame = kraftlog.scan(DAMAGED.rglob("*.log"), strict=False).collect()
    assert [str(one.message) for one in noted] == faults
    assert frame.height == kraftlog.open(DAMAGED.rglob("*.log")).records().to_table().num_rows > 0


def test_other_tables() -> None:
    offsets = kraftlog.scan(GOLDEN / "groups" / "log", "offsets").filter(pl.col("state") == "pending")
    assert sorted(offsets.select("offset").collect()["offset"]) == [777, 778]
    with pytest.raises(ValueError, match="is not one of topic_summary, segments"):
        kraftlog.scan(TRANSACTIONS, "nothing")


def test_without_polars(tmp_path: Path) -> None:
    program = f"import sys; sys.modules['polars'] = None; import kraftlog; kraftlog.scan({str(TRANSACTIONS)!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "kraftlog[polars]" in done.stderr.splitlines()[-1]
