"""Why consumers wait: each cause in its place; lag, hanging and the report say the same."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN
from kraftlog import LogStore, MetadataLogWriter, encode_messages
from kraftlog.errors import Fault
from kraftlog.tables.causes import RETENTION_MS, GroupState, LogState, OpenTransaction, cause_of

START = 1_704_067_200_000
TX = {"transactional_id": "pay", "status": "Ongoing", "start_timestamp_ms": START, "last_update_timestamp_ms": START}
OPEN = OpenTransaction(9, 0, 0, 75, START, TX | {"timeout_ms": 60_000}, has_coordinator=True)
LOG = LogState(10, 80, 75, leader=1, opened=OPEN)
GROUP = GroupState("g", 75, START, START, None, {"member_id": "m"}, has_members=True, is_at_stable=True)
FAULT = Fault("bad_crc", "t-0: batch at byte 7", base_offset=76)
IDLE = replace(GROUP, member={}, has_members=False)


@pytest.mark.parametrize(
    ("log", "group", "code", "position", "words"),
    [
        (None, GROUP, "no_log", 75, ["no log of it"]),
        (replace(LOG, leader=-1, end=None), GROUP, "no_leader", 75, ["no leader"]),
        (replace(LOG, stable=None), GROUP, "unreadable_log", 75, ["cannot be read to its end"]),
        (LOG, replace(GROUP, pending_producer=9, current=None), "pending_commit", None, ["producer 9"]),
        (LOG, replace(GROUP, current=None), "no_commit", None, ["member m", "auto.offset.reset"]),
        (LOG, replace(GROUP, current=9), "offset_before_log_start", 9, ["committed 9", "starts at 10"]),
        (LOG, replace(GROUP, current=81), "offset_behind_log_end", 81, ["committed 81", "ends at 80"]),
        (replace(LOG, fault=FAULT), GROUP, "corrupt_batch", 75, ["at 75", "byte 7"]),
        (LOG, GROUP, "open_transaction", 75, ["pay (producer 9, epoch 0", "ends by itself at 2024-01-01 00:01:00"]),
        (
            replace(LOG, opened=replace(OPEN, hanging="why")),
            GROUP,
            "hanging_transaction",
            75,
            ["not end by itself: why"],
        ),
        (LOG, IDLE, "open_transaction", 75, ["has no members"]),
        (LOG, replace(GROUP, current=76, is_at_stable=True), "lag", 76, ["4 records behind", "stop at 75 for pay"]),
        (LOG, replace(IDLE, current=70, is_at_stable=False), "no_member", 70, ["10 records behind", "no members"]),
        (LOG, replace(GROUP, member={}, current=79), "no_member", 79, ["1 record behind", "none of its members"]),
        (
            LOG,
            replace(IDLE, current=70, is_at_stable=False, newest_commit=START + RETENTION_MS + 1),
            "expired_commit",
            70,
            ["7 days before", "offsets.retention.minutes"],
        ),
        (replace(LOG, stable=80, opened=None), replace(IDLE, current=80), "nothing", 80, ["everything", "no members"]),
        (LOG, None, "open_transaction", 75, ["read_committed consumers wait at 75 for pay"]),
        (replace(LOG, fault=FAULT), None, "corrupt_batch", 76, ["byte 7"]),
        (replace(LOG, stable=80, opened=None), None, "nothing", 80, ["up to the end, 80"]),
    ],
)
def test_the_first_cause_that_holds(
    log: LogState | None, group: GroupState | None, code: str, position: int | None, words: list[str]
):
    found = cause_of(log, group)
    assert (found.code, found.position) == (code, position)
    assert all(word in found.text for word in words), found.text


def test_a_transaction_that_is_decided_or_unknown():
    decided = replace(OPEN, known=TX | {"status": "PrepareCommit", "timeout_ms": 1})
    assert decided.ends_at is None
    assert "PrepareCommit is decided" in decided.text
    unknown = replace(OPEN, known=None, hanging="not known", has_coordinator=False)
    assert (unknown.code, unknown.ends_at) == ("open_transaction", None)
    assert "not known without __transaction_state" in unknown.text
    assert OPEN.ends_at == START + 60_000


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of a store: in orders-1 a transaction is open at offset 2, before a record that is not of it."""
    path = tmp_path_factory.mktemp("stuck")
    with LogStore(path / "store") as store:
        store.create_topic("orders", 2)
        producer, stuck = store.producer(), store.producer("pay-stuck")
        for number in range(5):
            producer.send("orders", value=f"v{number}", partition=0)
            producer.flush()
        for _ in range(2):
            producer.send("orders", value="v", partition=1)
        producer.flush()
        stuck.begin_transaction()
        stuck.send("orders", value="t", partition=1)
        stuck.flush()
        producer.send("orders", value="v", partition=1)
        producer.flush()
        for group, offsets in {
            "slow": {("orders", 0): 3, ("orders", 1): 1},
            "done": {("orders", 0): 5, ("orders", 1): 2},
            "half": {("orders", 0): 4},
            "ahead": {("orders", 0): 9, ("orders", 1): 4},
        }.items():
            consumer = store.consumer(group=group)
            consumer.subscribe(["orders"])
            consumer.poll()
            consumer.commit(offsets)  # type: ignore[arg-type]
            if group == "half":
                stuck.send_offsets_to_transaction({("orders", 0): 5}, consumer.group_metadata())
        shutil.copytree(path / "store", path / "copy")
    return path / "copy"


def causes(path: Path, **given: Any) -> dict[tuple[str | None, int], tuple[str, int | None]]:
    topics = given.pop("topics", None)
    rows = kraftlog.open(path, topics=topics).waits(**given).to_pylist()
    return {(row["group"], row["partition"]): (row["cause"], row["position"]) for row in rows}


def test_groups_of_a_log_directory(stuck: Path):
    """Also of one topic, whose coordinators are beside it; ``lag`` says the same."""
    expected = {
        (None, 0): ("nothing", 5),
        (None, 1): ("open_transaction", 2),
        ("slow", 0): ("no_member", 3),
        ("slow", 1): ("no_member", 1),
        ("done", 0): ("nothing", 5),
        ("done", 1): ("open_transaction", 2),
        ("half", 0): ("pending_commit", 4),
        ("ahead", 0): ("offset_behind_log_end", 9),
        ("ahead", 1): ("nothing", 4),
    }
    assert causes(stuck) == causes(stuck / "orders-0") | causes(stuck / "orders-1") == expected
    assert causes(stuck, groups=["slow"]) == {key: value for key, value in expected.items() if key[0] == "slow"}
    rows = kraftlog.open(stuck).lag(["group", "partition", "cause", "sentence"]).to_table().to_pylist()
    assert {(one["group"], one["partition"]): one["cause"] for one in rows} == {
        key: code for key, (code, _) in expected.items() if key[0] is not None
    }
    texts = set(kraftlog.open(stuck).waits(["sentence"])["sentence"].to_pylist())
    assert {one["sentence"] for one in rows} < texts


def test_damage_counts_where_a_group_meets_it(stuck: Path, tmp_path: Path):
    """The batch at 3 is damaged: who stands at 3 cannot read on, who stands before it or behind it can."""
    copy = shutil.copytree(stuck, tmp_path / "copy")
    (log,) = (copy / "orders-0").glob("*.log")
    positions = kraftlog.open(stuck / "orders-0").batches(["position"])["position"].to_pylist()
    bytes_of_log = bytearray(log.read_bytes())
    bytes_of_log[positions[3] + 65] ^= 1
    log.write_bytes(bytes_of_log)
    faults: list[Fault] = []
    found = causes(copy, strict=False, faults=faults)
    assert (found["slow", 0], found["done", 0], found[None, 0]) == (
        ("corrupt_batch", 3),
        ("nothing", 5),
        ("corrupt_batch", None),
    )
    bytes_of_log[positions[3] + 65] ^= 1
    bytes_of_log[positions[4] + 65] ^= 1
    log.write_bytes(bytes_of_log)
    assert causes(copy, strict=False, faults=faults)["slow", 0] == ("no_member", 3)


def test_a_partition_without_a_leader(stuck: Path, tmp_path: Path):
    copy = shutil.copytree(stuck, tmp_path / "copy")
    topic = kraftlog.open(stuck).messages(["topic_id"], type="TopicRecord").to_table()["topic_id"][0].as_py()
    change = pa.table(
        {"partition_id": pa.array([1], pa.int32()), "topic_id": [topic], "leader": pa.array([-1], pa.int32())}
    )
    with MetadataLogWriter(copy / "__cluster_metadata-0", leader_epoch=None) as writer:
        writer.append(encode_messages("PartitionChangeRecord", change).to_pylist())
    found = causes(copy)
    assert {code for (_, partition), (code, _) in found.items() if partition == 1} == {"no_leader"}
    assert found["slow", 0] == ("no_member", 3)


@pytest.mark.parametrize("name", ["transactions", "transactions_tv0"])
def test_transactions_are_those_of_kafka(name: str):
    """What ``kafka-transactions list`` calls Ongoing holds consumers back where Admin saw the last stable offset."""
    listed = (GOLDEN / name / "expected" / "kafka-transactions_list.txt").read_text().splitlines()
    ongoing = [line.split()[0] for line in listed if line.split()[-1:] == ["Ongoing"]]
    told = json.loads((GOLDEN / name / "expected" / "broker_state.json").read_text())["partitions"]
    rows = kraftlog.open(GOLDEN / name / "log", topics=["orders"]).waits().to_pylist()
    assert len(rows) == 3
    for row in rows:
        answer = told[f"orders-{row['partition']}"]
        assert (row["position"], row["log_end_offset"]) == (answer["last_stable_offset"], answer["high_watermark"])
        is_open = answer["last_stable_offset"] < answer["high_watermark"]
        assert row["cause"] == ("open_transaction" if is_open else "nothing")
        assert ([row["transactional_id"]] == ongoing) == is_open


def test_the_commands(stuck: Path):
    """``why`` prints sentences; ``hanging`` counts the transactions that it leaves out."""
    done = run_command("why", stuck, "-t", "orders", "--group", "done")
    first, second = done.stdout.splitlines()
    assert done.returncode == 0
    assert first == "orders-0: group done has read everything up to the end, 5, and has no members"
    assert second.startswith(
        "orders-1: group done waits at 2, if it is read_committed, for pay-stuck (producer 1, epoch 0"
    )
    rows = run_command("why", stuck, "--format", "jsonl", "--columns", "cause", "-p", "1", "-c", "1")
    assert rows.stdout == '{"cause":"open_transaction"}\n'
    other = run_command("hanging", stuck)
    assert "2 other open transactions are not hanging" in other.stderr
    hanging = kraftlog.open(GOLDEN / "transactions_hanging" / "log")
    (row,) = hanging.hanging_transactions(["cause", "sentence"]).to_pylist()
    (wait,) = hanging.waits(["cause", "sentence"]).to_pylist()
    assert row == wait
    assert row["cause"] == "hanging_transaction"
    details = {one.kind: one.details for one in kraftlog.report(stuck).findings}
    assert any("pay-stuck" in line and "ends by itself" in line for line in details["open_transaction"])
    assert any("group slow is" in line for line in details["idle_group"])
