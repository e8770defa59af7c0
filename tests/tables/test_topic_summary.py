"""What topics hold by their headers is what their records and segments add up to; damage is counted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN
from kraftlog.errors import Fault


@pytest.mark.parametrize("name", ["transactions", "codecs", "deleted_records", "legacy"])
def test_sums(name: str):
    log = kraftlog.open(GOLDEN / name / "log")
    found = {row["topic"]: row for row in log.topic_summary().to_pylist()}
    assert list(found) == sorted(log.topics)
    records = log.records(["topic", "partition", "timestamp"], include_deleted=True).to_table()
    batches = log.batches(["topic", "magic", "compression", "is_control", "records_count"])
    for topic, row in found.items():
        rows = records.filter(pc.field("topic") == topic)
        of = batches.filter((pc.field("topic") == topic) & ~pc.field("is_control"))
        live = (pc.field("topic") == topic) & (pc.field("state") == "live")
        segments = log.segments(["topic", "size_in_bytes", "state"]).filter(live)
        assert row["size_in_bytes"] == pc.sum(segments["size_in_bytes"]).as_py()
        assert row["partitions"] == sum(one.topic == topic for one in log.partitions)
        assert row["records"] == (None if of["records_count"].null_count else rows.num_rows)
        assert row["last_timestamp"] == pc.max(rows["timestamp"]).as_py()
        pairs = {f"v{magic} {kind}" for magic, kind in zip(of["magic"], of["compression"], strict=True)}
        assert row["formats"] == ", ".join(sorted(pairs))
        assert row["health"] == "headers ok"
        if set(of["magic"].to_pylist()) == {
            2
        }:  # a header has the time of the first record, which need not be the least
            assert pc.min(rows["timestamp"]).as_py() <= row["first_timestamp"] <= rows["timestamp"][0].as_py()


def test_damage_is_counted(tmp_path: Path):
    copy = shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / "log")
    for partition, position in ((0, 8), (1, None)):  # a length that no batch has; a tail that was cut
        log = (min if partition == 0 else max)((copy / f"orders-{partition}").glob("*.log"))
        data = bytearray(log.read_bytes())
        if position is None:
            del data[-5:]
        else:
            data[position] = 0xFF
        log.write_bytes(data)
    faults: list[Fault] = []
    rows = kraftlog.open(copy, topics=["orders"]).topic_summary(["health"], faults=faults).to_pylist()
    assert rows == [{"health": "1 damaged segment, 1 torn tail"}]
    assert len(faults) == 1


def test_the_command_and_names_that_others_use():
    done = run_command("topics", GOLDEN / "transactions" / "log", "--format", "csv", "--columns", "topic,partitions")
    assert done.stdout.split() == ["topic,partitions", "__consumer_offsets,1", "__transaction_state,2", "orders,3"]
    for name, meant in {"ls": "topics", "head": "records -c 10", "search": "grep", "topcs": "topics"}.items():
        other = run_command(name, GOLDEN)
        assert (other.returncode, f"did you mean {meant}" in other.stderr) == (2, True)
    column = run_command("records", GOLDEN / "transactions" / "log", "--columns", "offest")
    assert "no column 'offest'; did you mean offset? It has" in column.stderr
    log = (GOLDEN / "transactions" / "log", "-t", "orders")
    first = run_command("records", *log, "-c", "1").stdout
    assert first.startswith('{"topic":"orders","partition":0,"offset":0,"timestamp":"')
    assert first.index('"timestamp"') < first.index('"key"') < first.index('"value"')
    partitions = run_command("grep", *log, "--key-equals", "a", "--key-partitions", "2")
    assert "--key-partitions 2: orders has a partition 2" in partitions.stderr
