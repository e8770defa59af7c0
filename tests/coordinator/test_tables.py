"""The tables of the coordinators, read from log files, against what Kafka's Admin and Kafka's serdes say of them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka_rows import Line, partitions, readable
from plain_fold import PlainFold

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, RecordError
from kraftlog.layout.discover import discover
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.read import Read

FOLDED = ("offsets", "groups", "transactional_ids")
Row = dict[str, Any]


def _read(
    path: Path | list[Path],
    table: str,
    columns: list[str] | None = None,
    options: ReadOptions | None = None,
    faults: list[Fault] | None = None,
) -> list[Row]:
    read = Read.of_segments(TABLES[table], discover(path).segments, columns, options or ReadOptions(), faults)
    rows: list[Row] = pa.Table.from_batches(read.rows(), read.schema).to_pylist()
    return rows


def _log(scenario: str) -> Path:
    return GOLDEN / scenario / "log"


def _state(scenario: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((GOLDEN / scenario / "expected" / "broker_state.json").read_text())
    return answers


@pytest.mark.parametrize(
    ("scenario", "answer"),
    [
        ("groups", "offsets"),
        ("transactions", "group_offsets"),
        ("transactions_live", "group_offsets"),
        ("transactions_tv0", "group_offsets"),
    ],
)
def test_offsets(scenario: str, answer: str) -> None:
    found: dict[str, Row] = {}
    for row in _read(_log(scenario), "offsets"):
        if row["state"] == "committed":
            offset = {name: row[name] for name in ("offset", "metadata", "leader_epoch")}
            found.setdefault(row["group"], {})[f"{row['topic']}-{row['partition']}"] = offset
    assert found == {group: offsets for group, offsets in _state(scenario)[answer].items() if offsets}


def test_groups() -> None:
    found = sorted(
        (row["group"], row["group_type"].capitalize(), row["protocol_type"], row["state"])
        for row in _read(_log("groups"), "groups")
    )
    answers = _state("groups")["list_groups"]
    assert found == [(each["group_id"], each["type"], each["protocol"], each["state"]) for each in answers]


def test_members_with_the_names_of_topics_that_commits_of_another_partition_tell() -> None:
    described = {name: each for name, each in _state("groups")["describe"].items() if "error" not in each}
    for row in _read(_log("groups"), "groups"):
        answers = {each["member_id"]: each for each in described.get(row["group"], {"members": []})["members"]}
        for member in row["members"] if answers else ():
            assigned = [f"{each['topic']}-{of}" for each in member["assignment"] for of in each["partitions"]]
            assert sorted(assigned) == answers[member["member_id"]]["assignment"]


@pytest.mark.parametrize("scenario", ["transactions", "transactions_live", "transactions_tv0", "transactions_hanging"])
def test_transactional_ids(scenario: str) -> None:
    columns = ["transactional_id", "status", "producer_id", "producer_epoch", "timeout_ms", "start_timestamp_ms"]
    found = sorted(tuple(row.values()) for row in _read(_log(scenario), "transactional_ids", columns))
    names = ["transactional_id", "state", "producer_id", "producer_epoch", "timeout_ms", "start_time_ms"]
    assert found == sorted(tuple(each[name] for name in names) for each in _state(scenario)["transactions"])


def _events(records: list[Line]) -> list[tuple[int, str, tuple[str, str, int] | None, int]]:
    found: list[tuple[int, str, tuple[str, str, int] | None, int]] = []
    for line in records:
        if line.get("control_type"):
            found.append((line["offset"], line["control_type"], None, line["producer_id"]))
        elif line["key"]["name"] == "OffsetCommitKey":
            data = line["key"]["data"]
            kind = "tombstone" if line["value"] is None else "commit"
            key = (data["group"], data["topic"], data["partition"])
            found.append((line["offset"], kind, key, line["producer_id"]))
    return found


@pytest.mark.parametrize("scenario", ["groups", "transactions", "transactions_tv0"])
def test_offsets_at_every_end_offset(scenario: str) -> None:
    for partition in partitions(GOLDEN / scenario, "consumer_offsets"):
        records = readable(GOLDEN / scenario, "consumer_offsets", partition)
        plain, events = PlainFold(), _events(records)
        for end_offset in range(records[-1]["offset"] + 2):
            while events and events[0][0] < end_offset:
                plain.replay(*events.pop(0))
            columns = ["group", "topic", "partition", "state", "record_offset", "producer_id"]
            path = _log(scenario) / f"__consumer_offsets-{partition}"
            rows = _read(path, "offsets", columns, ReadOptions(end_offset=end_offset))
            found = {
                ((row["group"], row["topic"], row["partition"]), row["state"], row["record_offset"], row["producer_id"])
                for row in rows
            }
            assert found == plain.rows(), end_offset


def test_small_chunks_say_the_same() -> None:
    for table in FOLDED:
        for scenario in ("groups", "transactions"):
            whole = _read(_log(scenario), table)
            assert _read(_log(scenario), table, options=ReadOptions(batch_rows=1)) == whole


def test_a_transactional_id_at_an_earlier_offset() -> None:
    path = _log("transactions") / "__transaction_state-0"
    (line,) = readable(GOLDEN / "transactions", "transaction_state", 0)[:1]
    (row,) = _read(path, "transactional_ids", options=ReadOptions(end_offset=1))
    assert row["transactional_id"] == line["key"]["data"]["transactionalId"]
    assert (row["status"], row["partitions"], row["start_timestamp"]) == ("Empty", [], None)
    updated = line["value"]["data"]["transactionLastUpdateTimestampMs"]
    assert row["last_update_timestamp"] == datetime.fromtimestamp(updated / 1000, UTC)


def test_only_the_end_offset_bounds() -> None:
    options = ReadOptions(start_offset=50, start_timestamp=2**60, isolation_level="read_committed")
    for table in FOLDED:
        assert _read(_log("groups"), table, options=options) == _read(_log("groups"), table)


def test_what_is_of_other_topics_has_no_rows() -> None:
    for table in FOLDED:
        assert _read(_log("transactions") / "orders-0", table) == []
    assert _read(_log("transactions") / "__transaction_state-0", "offsets") == []
    assert _read(_log("groups") / "__consumer_offsets-0", "transactional_ids") == []


def test_of_two_replicas_of_one_epoch_the_longer_one_counts(tmp_path: Path) -> None:
    source = _log("groups") / "__consumer_offsets-1"
    for broker in ("broker-1", "broker-2"):
        shutil.copytree(source, tmp_path / broker / source.name)
    shorter = tmp_path / "broker-1" / source.name / "00000000000000000000.log"
    shorter.write_bytes(shorter.read_bytes()[:8692])
    paths = [tmp_path / "broker-1", tmp_path / "broker-2"]
    for table in ("offsets", "groups"):
        some, turned, whole = (kraftlog.open(one).scan(table).to_table() for one in (paths, paths[::-1], source))
        assert some == turned == whole


def test_a_marker_that_is_damaged_ends_no_transaction(tmp_path: Path) -> None:
    source = _log("groups") / "__consumer_offsets-1"
    shutil.copytree(source, tmp_path / source.name)
    file = tmp_path / source.name / "00000000000000000000.log"
    data = bytearray(file.read_bytes())
    at = 9103  # of the marker at offset 88, that committed offset 11 of grp-a-1
    assert int.from_bytes(data[at : at + 8], "big") == 88
    data[at + 61 + 10] ^= 1
    file.write_bytes(data)
    faults: list[Fault] = []
    rows = {
        (row["topic"], row["partition"], row["offset"]): row["state"]
        for row in _read(tmp_path, "offsets", faults=faults)
        if row["group"] == "grp-txgroup"
    }
    assert rows[("grp-a", 1, 11)] == "pending"
    assert rows[("grp-a", 0, 10)] == "committed"
    assert len(faults) == 1
    assert faults[0].position == at


def _refused(topic: str) -> set[int]:
    """Return the offsets of records that Kafka's serde refuses; those of unknown types it passes over."""
    found = lines(GOLDEN / "coordinator_future" / "expected" / f"{topic}.jsonl")
    return {line["offset"] for line in found if "UnknownRecordType" not in line.get("error_class", "UnknownRecordType")}


def _offsets(faults: list[Fault]) -> list[int]:
    assert {fault.error for fault in faults} == {"bad_message"}
    return [int(fault.message.partition("record at offset ")[2].partition(":")[0]) for fault in faults]


def test_what_cannot_be_read_is_an_error() -> None:
    faults: list[Fault] = []
    _read(_log("coordinator_future"), "groups", faults=faults)
    earlier = {5, 9, 13, 17}  # key version 0 with values as releases before 4.0 wrote them
    trailing = {31, 33}  # bytes behind a message: it is read all the same
    assert _offsets(faults) == sorted(_refused("consumer_offsets") - earlier | trailing)
    faults = []
    _read(_log("coordinator_future"), "transactional_ids", faults=faults)
    assert _offsets(faults) == sorted(_refused("transaction_state"))


def test_what_can_be_read_is_folded() -> None:
    rows = _read(_log("coordinator_future"), "offsets", ["group", "partition"])
    committed = {
        line["key"]["data"]["partition"]: line["value"] is not None
        for line in readable(GOLDEN / "coordinator_future", "consumer_offsets")
        if line["key"]["name"] in ("OffsetCommitKey", "LegacyOffsetCommitKey")
    }
    assert sorted(row["partition"] for row in rows) == sorted(of for of, is_there in committed.items() if is_there)


@pytest.mark.parametrize("table", ["offsets", "groups", "transactional_ids"])
def test_strict_stops(table: str) -> None:
    with pytest.raises(RecordError, match="record at offset"):
        _read(_log("coordinator_future"), table, options=ReadOptions(strict=True))


def test_progress_is_told_once() -> None:
    told: list[int] = []
    segments = discover(_log("groups")).segments
    sizes = [segment.size for segment in segments if segment.topic == "__consumer_offsets"]
    read = replace(Read.of_segments(TABLES["offsets"], segments), on_progress=told.append)
    for _ in read.rows():
        pass
    assert sum(told) == sum(sizes)


def test_hanging_transactions_beside_a_coordinator_that_cannot_be_read_whole(tmp_path: Path) -> None:
    (tmp_path / "orders-1").symlink_to(_log("transactions") / "orders-1")
    (tmp_path / "__transaction_state-0").symlink_to(_log("coordinator_future") / "__transaction_state-0")
    stream = kraftlog.open(tmp_path / "orders-1").scan("hanging_transactions", ["producer_id", "reason"])
    assert stream.to_table().to_pylist() == [
        {
            "producer_id": 7,
            "reason": "no transactional id has this producer id, in 1 partitions of __transaction_state",
        }
    ]
    assert _offsets(stream.faults) == sorted(_refused("transaction_state"))
