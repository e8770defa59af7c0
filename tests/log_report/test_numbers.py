"""The numbers of a page are those of the tables."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog import schema
from kraftlog.log_report.report import Report
from kraftlog.log_report.texts import duration, minute, size
from kraftlog.metadata.health import health
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.timeline import timeline
from report_pages import Page

NOW = 1_800_000_000_000
LOGS = sorted(path.relative_to(GOLDEN) for path in GOLDEN.glob("**/log") if path.is_dir() and any(path.rglob("*.log")))


@cache
def reported(path: Path) -> tuple[Report, Page]:
    made = kraftlog.report(GOLDEN / path, now=NOW)
    return made, Page(made.html)


def opened(path: Path) -> tuple[kraftlog.Log, Page]:
    return kraftlog.open(GOLDEN / path), reported(path)[1]


def by_partition(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(f"{row['topic']}-{row['partition']}", []).append(row)
    return found


def shown_partitions(page: Page) -> list[dict[str, str]]:
    """Return the rows of partitions in the order of the page; titles have the exact size."""
    found, section = [], page.sections["partitions"]
    for (header, *rows), titles in zip(section.tables, section.titles, strict=True):
        for row, title in zip(rows, titles[1:], strict=True):
            exact = title[header.index("size")].removesuffix(" bytes").replace(",", "")
            found.append(dict(zip(header, row, strict=True)) | {"bytes": exact, "label": row[0]})
    return found


def number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


@pytest.mark.sweep(20)
@pytest.mark.parametrize("path", LOGS, ids=str)
def test_partitions(path: Path):
    log, page = opened(path)
    segments, batches = by_partition(log.segments(faults=[])), by_partition(log.batches(faults=[]))
    stats = {name: rows[0] for name, rows in by_partition(log.stats([])).items()}
    columns = ["topic", "partition", "log_start_offset", "last_stable_offset", "log_end_offset"]
    ends = {
        name: rows[0]
        for name, rows in by_partition(log.partition_offsets(columns=columns, strict=False).to_table()).items()
    }
    live = {name: [row for row in rows if row["state"] == "live"] for name, rows in segments.items()}
    expected, multiple = [], Counter(name.rpartition("-")[0] for name, rows in live.items() if rows)
    for name in sorted(live, key=lambda one: (one.rpartition("-")[0], int(one.rpartition("-")[2]))):
        rows = live[name]
        if not rows:
            continue
        topic, _, partition = name.rpartition("-")
        total = stats.get(name)
        end, stable = ends[name]["log_end_offset"], ends[name]["last_stable_offset"]
        one = {
            "label": partition if multiple[topic] > 1 else name,
            "bytes": str(sum(row["size_in_bytes"] for row in rows)),
            "size": size(sum(row["size_in_bytes"] for row in rows)),
            "segments": str(len(rows)),
            "records": number(total["records"] if total else 0),
            "batches": number(sum(row["batches"] for row in rows)),
            "mean batch": size(total["size_in_bytes"] / total["batches"]) if total else "-",
            "largest": size(max((row["size_in_bytes"] for row in batches.get(name, [])), default=0)),
            "codecs": total["compression"].replace("+", " ") if total else "-",
            "oldest": stamp(total["first_timestamp"]) if total else "-",
            "newest": stamp(total["max_timestamp"]) if total else "-",
            "offsets": f"{ends[name]['log_start_offset']} \u2013 {end}",
            "LSO lag": number(None if stable is None else end - stable),
        }
        expected.append(one)
    expected.sort(key=lambda row: not row["label"].isdigit())  # topics of one partition stand last
    found = [{name: row[name] for name in expected[0]} for row in shown_partitions(page)]
    assert found == expected


def stamp(moment: Any) -> str:
    return "-" if moment is None else minute(int(moment.timestamp() * 1000))


@pytest.mark.sweep(20)
@pytest.mark.parametrize("path", LOGS, ids=str)
def test_errors(path: Path):
    log, page = opened(path)
    # messages that cannot be read are told with the groups and the image that are made of them
    found = [fault for fault in log.verify() if fault.error != "bad_message"]
    counts = Counter(fault.error for fault in found)
    made, _ = reported(path)
    assert {error: one.count for error, one in made.facts.faults.items()} == counts
    assert {one["kind"] for one in page.findings if one["kind"] in counts} == counts.keys()
    assert made.has_faults == bool(counts or made.facts.other_faults)
    for error, count in counts.items():
        title = next(one for one in made.findings if one.kind == error).title
        lost = sum(fault.size_in_bytes or 0 for fault in found if fault.error == error)
        assert title.startswith(f"{count:,} ")
        assert (f"{lost:,} byte" in title) == bool(lost)
    rows = page.sections["damage"].rows("byte") if counts else []
    expected = [(number(fault.position), number(fault.size_in_bytes), fault.error, fault.message) for fault in found]
    shown = {(row["byte"], row["not read"], row["error"], row["what"]) for row in rows}
    assert shown <= set(expected)
    assert len(rows) == len(expected) or len(expected) > 12
    torn = sum(row["torn_bytes"] for row in log.segments(faults=[]).to_pylist() if row["torn_bytes"])
    notes: list[str] = []
    list(log.verify(notes=notes))
    assert sum(one.torn_bytes for one in made.facts.partitions) == (torn if notes else 0)


@pytest.mark.sweep(20)
@pytest.mark.parametrize("path", LOGS, ids=str)
def test_transactions(path: Path):
    log, page = opened(path)
    rows = log.partition_transactions(strict=False, faults=[]).to_pylist()
    counts = Counter(row["state"] for row in rows)
    made, _ = reported(path)
    sums = made.facts.transactions
    assert {state: count for state, count in sums.counts.items() if count} == counts
    if not rows:
        assert "transactions" not in page.sections
        return
    text = page.sections["transactions"].text
    assert all(f"{count:,} {state}" in text for state, count in counts.items())
    ended = [row for row in rows if row["state"] != "open" and row["end_timestamp"] is not None]
    columns = list(sums.bins.counts.values())
    assert sum(one for one, _ in columns) == sum(row["state"] == "committed" for row in ended)
    assert sum(other for _, other in columns) == sum(row["state"] == "aborted" for row in ended)
    shown = page.sections["transactions"].rows("partition")
    expected = [
        (
            f"{row['topic']}-{row['partition']}",
            str(row["producer_id"]),
            number(row["first_offset"]),
            number(row["records_count"]),
        )
        for row in rows
        if row["state"] == "open"
    ]
    opened_rows = [row for row in shown if "producer" in row]
    assert [(row["partition"], row["producer"], row["first offset"], row["records"]) for row in opened_rows] == expected
    spans = [row["end_timestamp"] - row["start_timestamp"] for row in ended if row["start_timestamp"] is not None]
    longest = max((int(span.total_seconds() * 1000) for span in spans), default=None)
    if longest is not None and longest >= 0:
        assert max(one.duration or 0 for one in sums.longest) == longest
        assert duration(longest) in text
    columns = [*schema.HANGING_TRANSACTIONS.shown, "sentence"]
    hanging = log.hanging_transactions(columns, strict=False, faults=[]).to_pylist()
    assert made.facts.hanging == hanging
    commands = [row["command"] for row in hanging if row["command"] is not None]
    assert [line for line in page.commands if " abort " in line] == commands


@pytest.mark.parametrize("path", [path for path in LOGS if any((GOLDEN / path).glob("__consumer_offsets-*"))], ids=str)
def test_groups(path: Path):
    log, page = opened(path)
    groups = {row["group"]: row for row in log.groups(strict=False, faults=[]).to_pylist()}
    lags: dict[str, list[dict[str, Any]]] = {name: [] for name in groups}
    for row in log.lag([*kraftlog.schema.LAG.shown, "log_start_offset"], strict=False).to_table().to_pylist():
        lags.setdefault(row["group"], []).append(row)
    shown = {row["group"]: row for row in page.sections["groups"].rows("group")}
    assert shown.keys() == lags.keys()
    for name, rows in lags.items():
        known = [row for row in rows if row["lag"] is not None]
        row = shown[name]
        assert row["state"] == (groups[name]["state"] if name in groups else "-")
        assert row["members"] == number(len(groups[name]["members"] or ()) if name in groups else 0)
        assert row["partitions"] == number(len(rows))
        assert row["lag"] == (number(sum(one["lag"] for one in known)) if known else "-")
        assert row["read_committed lag"] == (number(sum(one["read_committed_lag"] for one in known)) if known else "-")


@pytest.mark.parametrize(
    "path", [path for path in LOGS if any((GOLDEN / path).glob("__cluster_metadata-0/*.log"))], ids=str
)
def test_cluster(path: Path):
    log, page = opened(path)
    at = log.image(strict=False)
    counts = Counter(health(at.image).column("check").to_pylist())
    section = page.sections["cluster"]
    assert {row["check"]: row["count"] for row in section.rows("check")} == {
        one: number(n) for one, n in counts.items()
    }
    assert f"{at.image.partitions_count:,} partition" in section.text
    assert f"offset {at.offset:,}" in section.text
    metadata = MetadataLog.open(GOLDEN / path)
    happened = list(timeline(metadata, image_at(metadata, metadata.start_offset - 1, []), None, []))
    assert all(one.what.message in section.text for one in happened[-200:])
    assert page.elements.get("li", 0) >= min(len(happened), 200)


def test_a_partition_in_two_directories(tmp_path: Path):
    """Its numbers are those of one replica; damage of the other one is found as well."""
    for number_of_broker, name in ((1, "good"), (2, "bit_flip_payload")):
        (tmp_path / f"broker-{number_of_broker}").symlink_to(GOLDEN / "damaged" / name / "log")
    made = kraftlog.report([tmp_path / "broker-1", tmp_path / "broker-2"], now=NOW)
    alone = kraftlog.report(tmp_path / "broker-1", now=NOW)
    rows = [Page(report.html).sections["partitions"].rows("topic") for report in (made, alone)]
    assert rows[0] == rows[1]
    assert [(row["topic"], row["health"]) for row in rows[0]] == [("t-0", "ok")]
    assert [finding.title for finding in made.findings] == ["1 batch with a wrong checksum, 96 bytes not read"]
