"""Pages of many partitions are small, and memory is bounded by their number."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.log_report.facts import Facts
from kraftlog.log_report.findings import findings
from kraftlog.log_report.group_lags import GroupFacts, GroupLags
from kraftlog.log_report.page import pieces
from report_pages import Page

NOW = 1_800_000_000_000
MOST = 5_000_000
MANY = 10_000
LONGEST_NAME = 249


def many(facts: Facts, partitions: int, per_topic: int, name: str) -> Facts:
    """Return facts of many partitions, which are those of a few with other names."""
    found = []
    for number in range(partitions):
        one = facts.partitions[number % len(facts.partitions)]
        topic = f"{name}{number // per_topic:05d}"
        full = f"{topic}-{number % per_topic}"
        segments = [dataclasses.replace(each, name=f"{full}/{each.name.rpartition('/')[2]}") for each in one.segments]
        found.append(dataclasses.replace(one, topic=topic, partition=number % per_topic, name=full, segments=segments))
    return dataclasses.replace(facts, partitions=found)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", ["orders-", "x" * (LONGEST_NAME - 5)], ids=["short", "long"])
@pytest.mark.parametrize("per_topic", [1, 2, 50, MANY])
@pytest.mark.parametrize("paths", ["codecs/log", "damaged/*/log"], ids=["sound", "damaged"])
def test_ten_thousand_partitions(paths: str, per_topic: int, name: str):
    """Whether they are sound or all damaged, in one topic or in many, with names as long as Kafka allows."""
    made = kraftlog.report(sorted(GOLDEN.glob(paths)), now=NOW)
    facts = many(made.facts, MANY, per_topic, name)
    size = sum(len(piece.encode()) for piece in pieces(facts, findings(facts)))
    assert size < MOST


def test_every_partition_stands_in_a_large_page():
    made = kraftlog.report(GOLDEN / "codecs" / "log", now=NOW)
    facts = many(made.facts, 3000, 7, "orders")
    page = Page("".join(pieces(facts, findings(facts))))
    rows = page.sections["partitions"].rows("#") + page.sections["partitions"].rows("topic")
    assert len(rows) == 3000
    assert sum(int(row["segments"]) for row in rows) == sum(len(one.segments) for one in facts.partitions)


def test_many_groups():
    groups = {f"group-{number}": GroupFacts(f"group-{number}", lag=number, partitions=1) for number in range(5000)}
    made = kraftlog.report(GOLDEN / "codecs" / "log", now=NOW)
    facts = dataclasses.replace(made.facts, groups=GroupLags(groups))
    html = "".join(pieces(facts, findings(facts)))
    rows = Page(html).sections["groups"].rows("group")
    assert [row["group"] for row in rows[:2]] == ["group-4999", "group-4998"]
    assert "and 4,800 more" in html


def test_a_real_directory_of_many_partitions(tmp_path: Path):
    source = GOLDEN / "codecs" / "log" / "codec-lz4-0"
    for number in range(200):
        shutil.copytree(source, tmp_path / f"orders-{number}")
    page = Page(kraftlog.report(tmp_path, now=NOW).html)
    (one,) = kraftlog.open(source).stats([]).to_pylist()
    rows = page.sections["partitions"].rows("#")
    assert [row["#"] for row in rows] == [str(number) for number in range(200)]
    assert {row["records"] for row in rows} == {str(one["records"])}
    assert f"{200 * one['records']:,}" in page.text
