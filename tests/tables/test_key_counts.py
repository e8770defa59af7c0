"""Keys and times of records against counters in plain Python."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from kraftlog.errors import Fault
from kraftlog.tables import key_counts
from kraftlog.tables.key_counts import KeyCounts

LOGS = ("codecs", "transactions", "compaction", "deleted_records", "legacy")
Row = dict[str, Any]


def by_partition(name: str, columns: list[str]) -> dict[tuple[str, int], list[Row]]:
    found: dict[tuple[str, int], list[Row]] = {}
    log = kraftlog.open(GOLDEN / name / "log")
    for partition in log.partitions:
        found[partition.topic or "", partition.partition or 0] = []
    for row in log.records(["topic", "partition", *columns]).to_table().to_pylist():
        found[row["topic"], row["partition"]].append(row)
    return found


@pytest.mark.parametrize("name", LOGS)
def test_keys_of_logs(name: str):
    log, faults = kraftlog.open(GOLDEN / name / "log"), list[Fault]()
    expected, every = [], []
    for (topic, partition), rows in by_partition(name, ["key", "value"]).items():
        keys = Counter(row["key"] for row in rows if row["key"] is not None)
        expected.append(
            {
                "topic": topic,
                "partition": partition,
                "records": len(rows),
                "null_keys": sum(row["key"] is None for row in rows),
                "tombstones": sum(row["value"] is None and row["key"] is not None for row in rows),
                "distinct_keys": len(keys),
                "duplicates": sum(keys.values()) - len(keys),
                "is_estimate": False,
            }
        )
        for key, count in keys.items():
            of_key = [row for row in rows if row["key"] == key]
            every.append(
                {
                    "topic": topic,
                    "partition": partition,
                    "key": key,
                    "records": count,
                    "size_in_bytes": sum(len(key) + len(row["value"] or b"") for row in of_key),
                    "tombstones": sum(row["value"] is None for row in of_key),
                    "is_estimate": False,
                }
            )
    assert log.key_stats(faults).to_pylist() == expected
    every.sort(key=lambda row: (-row["records"], row["topic"], row["partition"], row["key"]))
    assert log.top_keys(20, []).to_pylist() == every[:20]
    assert [fault.error for fault in faults] == [fault.error for fault in log_faults(log)]


def log_faults(log: kraftlog.Log) -> list[Fault]:
    stream = log.records(["key", "value"])
    stream.to_table()
    return stream.faults


@given(st.lists(st.lists(st.tuples(st.none() | st.binary(max_size=2), st.none() | st.binary(max_size=3)), max_size=30)))
def test_counts_in_pieces(pieces: list[list[tuple[bytes | None, bytes | None]]]):
    counts, least = KeyCounts(), key_counts.LEAST_ROWS
    key_counts.LEAST_ROWS = 5
    try:
        for rows in pieces:
            keys, values = [key for key, _ in rows], [value for _, value in rows]
            counts.add(pa.record_batch({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}))
    finally:
        key_counts.LEAST_ROWS = least
    every = Counter(key for rows in pieces for key, _ in rows if key is not None)
    assert counts.distinct_keys == len(every)
    top = [(row["key"], row["records"]) for row in counts.top(3).to_pylist()]
    assert top == sorted(every.items(), key=lambda item: (-item[1], item[0]))[:3]
    assert counts.null_keys == sum(key is None for rows in pieces for key, _ in rows)
    assert not counts.is_estimate


def test_estimates_of_more_keys_than_are_kept():
    counts = KeyCounts(most_bytes=100_000)
    for piece in range(20):
        keys = [b"key-%d" % number for number in range(piece * 5000, piece * 5000 + 5000)]
        keys += [b"often"] * 300 + [b"\xff\x00"] * 200 + [b""] * 100
        counts.add(pa.record_batch({"key": keys, "value": [b"v"] * len(keys)}))
    assert counts.is_estimate
    assert counts.records == 20 * 5600
    assert abs(counts.distinct_keys - 100_003) < 0.03 * 100_003
    top = counts.top(3).to_pylist()
    assert [row["key"] for row in top] == [b"often", b"\xff\x00", b""]
    for row, exact in zip(top, (6000, 4000, 2000), strict=True):
        assert exact <= row["records"] <= exact + 20
        assert row["size_in_bytes"] is None


def test_estimates_of_a_log_are_labelled():
    log = kraftlog.open(GOLDEN / "transactions" / "log", topics=["orders"])
    exact, estimated = log.key_stats([]).to_pylist(), log.key_stats([], most_bytes=1).to_pylist()
    assert [row | {"is_estimate": True} for row in exact] == estimated  # so few keys are counted exactly all the same
    assert {row["is_estimate"] for row in log.top_keys(5, [], most_bytes=1).to_pylist()} == {True}


def test_without_the_package(monkeypatch: pytest.MonkeyPatch):
    import sys

    monkeypatch.setitem(sys.modules, "datasketches", None)
    log = kraftlog.open(GOLDEN / "transactions" / "log", topics=["orders"])
    assert log.key_stats([]).num_rows == 3
    with pytest.raises(ImportError, match=r"pip install 'kraftlog\[sketches\]'"):
        log.key_stats([], most_bytes=1)


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize(("unit", "form"), [("minute", "%Y%m%d%H%M"), ("hour", "%Y%m%d%H"), ("day", "%Y%m%d")])
def test_writes(name: str, unit: str, form: str):
    expected = []
    for (topic, partition), rows in by_partition(name, ["key", "value", "timestamp"]).items():
        found: dict[datetime | None, list[Row]] = {}
        for row in rows:
            stamp = row["timestamp"]
            start = None if stamp is None else datetime.strptime(stamp.strftime(form), form).replace(tzinfo=UTC)
            found.setdefault(start, []).append(row)
        for start in sorted(found, key=lambda at: (at is not None, at)):
            sizes = [len(row["key"] or b"") + len(row["value"] or b"") for row in found[start]]
            expected.append((topic, partition, start, len(sizes), sum(sizes)))
    table = kraftlog.open(GOLDEN / name / "log").writes(unit, [])
    assert [tuple(row.values()) for row in table.to_pylist()] == expected
    with pytest.raises(ValueError, match="unit 'week' is not one of"):
        kraftlog.open(GOLDEN / name / "log").writes("week", [])
