"""What groups have committed and been assigned is what Admin said of them; where a log is missing, a row says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN
from kraftlog import schema
from kraftlog.errors import CorruptRecordError
from kraftlog.query.session import SqlSession
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read

GROUPS = GOLDEN / "groups"
STATE: dict[str, Any] = json.loads((GROUPS / "expected" / "broker_state.json").read_text())
OFFSETS: dict[str, dict[str, Any]] = STATE["offsets"]


def assigned() -> dict[tuple[str, str], tuple[str, str, str]]:
    """Return the partitions of members as Admin said: member, client and host of each."""
    return {
        (group, name): (member["member_id"], member["client_id"], member["client_host"])
        for group, answer in STATE["describe"].items()
        for member in answer.get("members", [])
        for name in member["assignment"]
    }


def test_rows_are_those_of_kafka_consumer_groups():
    """A partition that is committed, or that a member has, with the member; what it says of both is Admin's."""
    stream = kraftlog.open(GROUPS / "log").lag([*schema.LAG.shown, "client_id", "client_host"])
    rows = stream.to_table().to_pylist()
    found = {(row["group"], f"{row['topic']}-{row['partition']}"): row for row in rows}
    committed = {(group, name): answer["offset"] for group, of in OFFSETS.items() for name, answer in of.items()}
    assert found.keys() == committed.keys() | assigned().keys()
    assert len(rows) == len(found) > len(committed) + 4
    assert stream.faults == []
    members = ("member_id", "client_id", "client_host")
    for place, row in found.items():
        assert row["current_offset"] == committed.get(place)
        assert tuple(row[name] for name in members) == assigned().get(place, (None, None, None))
        nothing = "" if place in committed else "no offset is committed; "
        assert row["reason"] == f"{nothing}no log of {place[1]} among the files"
        assert row["lag"] is row["log_end_offset"] is row["read_committed_lag"] is row["last_stable_offset"] is None


def test_groups_and_topics():
    log = kraftlog.open(GROUPS / "log")
    one = log.lag(["group", "topic"], groups=["grp-modern", "none"]).to_table().to_pylist()
    topics = ["grp-a"] * 4 + ["grp-b"] * 2
    assert one == [{"group": "grp-modern", "topic": topic} for topic in topics]
    assert log.lag(groups=["grp-manual"], topics=["grp-b"]).to_table().num_rows == 0
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
    of = {"groups": ["grp-modern"], "topics": ["grp-a"]}
    *rows, last = kraftlog.open(copied).lag(**of).to_table().to_pylist()
    assert [row["partition"] for row in rows] == [0, 1, 2]
    assert (last["partition"], last["current_offset"], last["log_end_offset"]) == (3, None, None)
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
    assert len(rows) == 6
    assert [row["lag"] for row in rows[1:3]] == [69 - rows[1]["current_offset"], 38 - rows[2]["current_offset"]]
    assert {(fault.topic, fault.partition) for fault in stream.faults} == {("grp-a", 0)}
    with pytest.raises(CorruptRecordError):
        kraftlog.open(copied).lag(groups=["grp-modern"]).to_table()


def test_a_member_that_is_stuck_before_its_first_commit(copied: Path):
    """The ends of its partition are known, its lag is not; the report counts it."""
    shutil.copytree(GOLDEN / "transactions" / "log" / "orders-2", copied / "grp-b-1")
    answer = json.loads((GOLDEN / "transactions" / "expected" / "broker_state.json").read_text())["partitions"]
    log = kraftlog.open(copied)
    stuck = log.lag(groups=["grp-static", "grp-migrated"], topics=["grp-b"]).to_table().to_pylist()[1::2]
    assert [row["group"] for row in stuck] == ["grp-static", "grp-migrated"]
    for row in stuck:
        assert row["log_end_offset"] == answer["orders-2"]["high_watermark"]
        assert row["last_stable_offset"] == answer["orders-2"]["last_stable_offset"]
        assert row["current_offset"] is row["lag"] is row["read_committed_lag"] is None
        assert row["reason"] == "no offset is committed"
    facts = kraftlog.report(copied).facts
    assert facts.groups is not None
    counts = {
        name: (one.partitions, one.uncommitted, one.unknown, one.known) for name, one in facts.groups.groups.items()
    }
    assert counts["grp-static"] == (2, 1, 1, 0)
    assert counts["grp-modern"] == (6, 3, 2, 3)


def test_logs_of_other_groups_and_topics_are_not_read(copied: Path):
    """By the options of Python and of the command, and by conditions of SQL and Spark: no door meets the damage."""
    max((copied / "grp-a-0").glob("*.log")).write_bytes(b"\xff" * 100)
    log = kraftlog.open(copied)
    expected = log.lag(groups=["grp-modern"], topics=["grp-b"]).to_table()
    assert expected.num_rows == 2
    names = expected.column_names
    with SqlSession(log) as session:
        shown = ", ".join(f'"{name}"' for name in names)
        of = "\"group\" in ('grp-modern') and topic = 'grp-b'"
        assert session.query(f"select {shown} from lag where {of}").read_all().to_pylist() == expected.to_pylist()
        assert session.faults == []
        assert session.query("select topic from lag").read_all().num_rows > 6
        assert {fault.topic for fault in session.faults} == {"grp-a"}
    request = parse_request({"path": str(copied), "table": "lag"})
    with pytest.raises(CorruptRecordError):
        list(read(request, plan_parts(request)[0], []))
    done = run_command("lag", copied, "--group", "grp-modern", "--topic", "grp-b", "--format", "jsonl")
    assert done.returncode == 0
    assert list(map(json.loads, done.stdout.splitlines())) == expected.to_pylist()
