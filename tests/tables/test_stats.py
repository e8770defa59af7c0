"""Sums over batches, by partition and by producer, against the same sums over the table ``batches``."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.header_columns import timestamps
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.layout.discover import discover
from kraftlog.tables.stats import collect

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LARGEST = (1 << 63) - 1
Row = dict[str, Any]
Key = tuple[str | None, int | None, int | None]
LOGS = ["transactions", "transactions_live", "legacy", "codecs", "compaction", "deleted_records"]


def log_of(folder: Path, producer_ids: Iterable[int]) -> Path:
    """Write a log with a batch of each producer, in this order."""
    rnd, data, offset = random.Random(3), b"", 0
    for producer_id in producer_ids:
        count = rnd.randint(1, 3)
        stamps = [rnd.choice([-1, 0, 5, 1_700_000_000_000 + rnd.randint(0, 9), LARGEST]) for _ in range(count)]
        rows = pa.table({"value": [b"v" * rnd.randint(0, 99)] * count, "timestamp_ms": pa.array(stamps, pa.int64())})
        producer = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0} if producer_id >= 0 else {}
        data += kraftlog.encode(rows, base_offset=offset, compression=rnd.choice(CODECS), **producer).to_pybytes()
        offset += count
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(data)
    return folder


def sums(path: Path, *, by_producer: bool) -> list[Row]:
    table = collect(discover(path).segments, [], by_producer=by_producer, decompress=False, on_progress=None)
    names = ["topic", "partition", "producer_id", "batches", "records", "size_in_bytes", "compression"]
    return table.select([*names, "first_timestamp", "max_timestamp"]).to_pylist()


def plain(path: Path, *, by_producer: bool) -> list[Row]:
    """Return the same, of the rows of the table ``batches`` one by one."""
    columns = ["topic", "partition", "producer_id", "compression", "records_count", "size_in_bytes", "timestamp_type"]
    columns += ["base_timestamp_ms", "max_timestamp_ms", "delete_horizon_ms"]
    groups: dict[Key, list[Row]] = {}
    for row in kraftlog.open(path).batches(columns, strict=False, faults=[]).to_pylist():
        groups.setdefault((row["topic"], row["partition"], row["producer_id"] if by_producer else None), []).append(row)
    found = []
    for key in sorted(groups, key=lambda key: (key[0] or "", key[1] or 0, -1 if key[2] is None else key[2])):
        rows = groups[key]
        counts, codecs = [row["records_count"] for row in rows], {row["compression"] for row in rows}
        first = [one for row in rows if (one := _first(row)) != NO_TIMESTAMP]
        stamps = min(first, default=NO_TIMESTAMP), max(row["max_timestamp_ms"] for row in rows)
        first_timestamp, max_timestamp = (timestamps(np.array([one], np.int64))[0].as_py() for one in stamps)
        found.append(
            {
                **dict(zip(("topic", "partition", "producer_id"), key, strict=True)),
                "batches": len(rows),
                "records": None if None in counts else sum(counts),
                "size_in_bytes": sum(row["size_in_bytes"] for row in rows),
                "compression": "+".join(name for name in CODECS if name in codecs),
                "first_timestamp": first_timestamp,
                "max_timestamp": max_timestamp,
            }
        )
    return found


def _first(row: Row) -> int:
    is_of_all = row["timestamp_type"] == "LogAppendTime" or row["delete_horizon_ms"] is not None
    return int(row["max_timestamp_ms" if is_of_all else "base_timestamp_ms"])


@pytest.mark.parametrize("by_producer", [False, True])
@pytest.mark.parametrize("name", LOGS)
def test_golden_logs(name: str, by_producer: bool) -> None:
    found = sums(GOLDEN / name / "log", by_producer=by_producer)
    assert found == plain(GOLDEN / name / "log", by_producer=by_producer)
    assert found


@pytest.mark.parametrize("by_producer", [False, True])
def test_random_producers(tmp_path: Path, by_producer: bool) -> None:
    """Of which some have a batch, others many, among those of no producer; ids reach to the largest."""
    rnd = random.Random(8)
    ids = [rnd.choice([-1, 0, 1, LARGEST, rnd.randrange(1 << 62), rnd.randrange(20)]) for _ in range(600)]
    path = log_of(tmp_path / "t-0", ids)
    assert sums(path, by_producer=by_producer) == plain(path, by_producer=by_producer)
    assert len(sums(path, by_producer=True)) == len(set(ids)) > 100


def calls(path: Path) -> int:
    """Return how many functions are called, of Python and of C, while the sums of producers are made."""
    counted: Counter[str] = Counter()
    segments = discover(path).segments
    before = sys.getprofile()
    sys.setprofile(lambda _frame, event, _of: counted.update([event]))
    try:
        collect(segments, [], by_producer=True, decompress=False, on_progress=None)
    finally:
        sys.setprofile(before)
    return counted["call"] + counted["c_call"]


def test_a_producer_costs_a_few_calls(tmp_path: Path) -> None:
    """However many others have batches beside it."""
    counted = {count: calls(log_of(tmp_path / f"t-{count}", range(count))) for count in (100, 200, 1_600)}
    each = (counted[200] - counted[100]) / 100
    assert each < 40
    assert counted[1_600] - counted[200] <= 1_400 * each * 1.05
