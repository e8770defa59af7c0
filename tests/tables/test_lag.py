"""What groups have committed is what Admin said of them; where a log is missing, a row says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.errors import CorruptRecordError

GROUPS = GOLDEN / "groups"
OFFSETS: dict[str, dict[str, Any]] = json.loads((GROUPS / "expected" / "broker_state.json").read_text())["offsets"]


def test_committed_offsets_are_those_of_admin():
    stream = kraftlog.open(GROUPS / "log").lag()
    rows = stream.to_table().to_pylist()
    found = {(row["group"], f"{row['topic']}-{row['partition']}"): row["current_offset"] for row in rows}
    expected = {(group, name): answer["offset"] for group, of in OFFSETS.items() for name, answer in of.items()}
    assert found == expected
    assert len(rows) == len(expected) > 10
    assert stream.faults == []
    for row in rows:
        assert row["reason"] == f"no log of {row['topic']}-{row['partition']} among the files"
        assert row["lag"] is row["log_end_offset"] is row["read_committed_lag"] is row["last_stable_offset"] is None


def test_groups_and_topics():
    log = kraftlog.open(GROUPS / "log")
    one = log.lag(["group", "topic"], groups=["grp-modern", "none"]).to_table().to_pylist()
    assert one == [{"group": "grp-modern", "topic": "grp-a"}] * len(OFFSETS["grp-modern"])
    assert log.lag(groups=["grp-modern"], topics=["grp-b"]).to_table().num_rows == 0
    assert set(log.lag(topics=["grp-b"]).to_table()["topic"].to_pylist()) == {"grp-b"}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Copy the commits, and as the logs of grp-a those of a topic of which a broker has told the offsets."""
    for folder in (GROUPS / "log").glob("__consumer_offsets-*"):
        shutil.copytree(folder, tmp_path / folder.name)
    for partition in range(3):
        shutil.copytree(GOLDEN / "transactions" / "log" / f"orders-{partition}", tmp_path / f"grp-a-{partition}")
    return tmp_path


def test_ends_are_those_of_the_broker(copied: Path):
    told = json.loads((GOLDEN / "transactions" / "expected" / "broker_state.json").read_text())["partitions"]
    rows = kraftlog.open(copied).lag(groups=["grp-modern"]).to_table().to_pylist()
    assert [row["partition"] for row in rows] == [0, 1, 2]
    for row in rows:
        answer = told[f"orders-{row['partition']}"]
        end, stable, current = answer["high_watermark"], answer["last_stable_offset"], row["current_offset"]
        assert (row["log_end_offset"], row["lag"]) == (end, end - current)
        assert (row["last_stable_offset"], row["read_committed_lag"]) == (stable, stable - current)
        assert row["reason"] is None


def test_a_log_that_cannot_be_read(copied: Path):
    max((copied / "grp-a-0").glob("*.log")).write_bytes(b"\xff" * 100)
    stream = kraftlog.open(copied).lag(groups=["grp-modern"], strict=False)
    rows = stream.to_table().to_pylist()
    assert len(rows) == 3
    assert [row["lag"] for row in rows[1:]] == [69 - rows[1]["current_offset"], 38 - rows[2]["current_offset"]]
    assert {(fault.topic, fault.partition) for fault in stream.faults} == {("grp-a", 0)}
    with pytest.raises(CorruptRecordError):
        kraftlog.open(copied).lag(groups=["grp-modern"]).to_table()
