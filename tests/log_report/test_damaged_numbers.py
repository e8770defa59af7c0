"""Of logs that are damaged anywhere the page still says what the tables say."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from kraftlog.log_report import cluster_facts
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.timeline import timeline
from report_pages import Page

NOW = 1_800_000_000_000
SOURCE = GOLDEN / "transactions" / "log" / "orders-0"
SEGMENTS = sorted(path.name for path in SOURCE.glob("*.log"))
SHORT = {"size_in_bytes": "size"}
KINDS = st.sampled_from(("flip", "cut", "zero"))
DAMAGE = st.tuples(st.sampled_from(SEGMENTS), st.floats(0, 1, exclude_max=True), st.integers(1, 255), KINDS)


@settings(max_examples=60)
@given(st.lists(DAMAGE, min_size=1, max_size=4))
def test_damage_anywhere(damage: list[tuple[str, float, int, str]]):
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        shutil.copytree(SOURCE, logs / "orders-0")
        for name, where, number, kind in damage:
            path = logs / "orders-0" / name
            data = bytearray(path.read_bytes())
            at = int(where * len(data))
            if kind == "flip":
                data[at : at + 1] = bytes(byte ^ number for byte in data[at : at + 1])
            elif kind == "zero":
                data[at : at + number] = bytes(len(data[at : at + number]))
            path.write_bytes(data[:at] if kind == "cut" else data)
        check(logs)


def check(logs: Path) -> None:
    log = kraftlog.open(logs)
    made = kraftlog.report(logs, now=NOW)
    (one,) = made.facts.partitions
    assert {error: found.count for error, found in one.faults.items()} == Counter(fault.error for fault in log.verify())
    columns = ["base_offset", "next_offset", "size_in_bytes", "batches", "records", "torn_bytes"]
    shown = [{name: getattr(each, SHORT.get(name, name)) for name in columns} for each in one.segments]
    assert shown == log.segments(columns, faults=[]).to_pylist()
    stats = log.stats([])
    names = {"batches": "batches", "records": "records", "size_in_bytes": "size"}
    expected = stats.select(list(names)).to_pylist() or [dict.fromkeys(names, 0)]
    assert [{name: getattr(one.totals, attribute) for name, attribute in names.items()}] == expected
    newest = stats["max_timestamp"].cast(pa.int64()).to_pylist()  # of damaged headers, too: not all of them are dates
    if newest and newest[0] is not None:
        assert one.totals.max_timestamp == newest[0] // 1000
    assert one.largest_batch == max(log.batches(["size_in_bytes"], faults=[])["size_in_bytes"].to_pylist(), default=0)
    states = Counter(log.partition_transactions(["state"], strict=False, faults=[])["state"].to_pylist())
    assert {state: count for state, count in one.transactions.items() if count} == states
    assert one.batch_sizes.sum() == one.totals.batches
    page = Page(made.html)
    assert len(page.findings) == len(made.findings)
    if one.faults:
        assert page.sections["damage"].text


@pytest.mark.parametrize("recent", [0, 5, 100, 10_000])
def test_only_what_happened_last(recent: int, monkeypatch: pytest.MonkeyPatch):
    """Of a long metadata log only the end is read for the timeline, and the page says so."""
    monkeypatch.setattr(cluster_facts, "RECENT", recent)
    path = GOLDEN / "metadata" / "log"
    made = kraftlog.report(path, now=NOW)
    log = MetadataLog.open(path)
    begin = max(made.facts.cluster.offset - recent, -1)  # type: ignore[union-attr]
    expected = list(timeline(log, image_at(log, begin, []), None, []))
    assert list(made.facts.cluster.events) == expected  # type: ignore[union-attr]
    text = Page(made.html).sections["cluster"].text
    assert (f"From offset {begin + 1} on" in text) == (begin >= 0)
