"""Rows of Spark and of the library in one form, so that they can be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import kraftlog
from golden_files import GOLDEN, name_of, scenarios

NUMBERS = {"CreateTime": 0, "LogAppendTime": 1, "NoTimestampType": -1}


def folders() -> list[Path]:
    """Return the golden folders that hold undamaged logs."""
    return [folder / "log" for folder in scenarios() if name_of(folder) != "legacy"]


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows as sorted text: Spark gives partitions in no fixed order."""
    return sorted(repr(sorted(row.items())) for row in rows)


def expected_rows(table: str, folder: Path) -> list[dict[str, Any]]:
    """Return what the library reads, with Spark's column for the timestamp type."""
    rows = kraftlog.open(folder).scan(table).to_table().to_pylist()
    for row in rows:
        if table == "records":
            row["timestampType"] = NUMBERS[row.pop("timestamp_type")]
    return rows


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a DataFrame."""
    table: pa.Table = frame.toArrow()
    return table.to_pylist()


def log_directories() -> list[Path]:
    """Return one folder of each kind, for the slower sessions."""
    return [GOLDEN / name / "log" for name in ("codecs", "transactions", "metadata", "compaction")]
