"""Transactions of real Kafka logs, against what consumers, brokers and the Admin client said."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.tables.user_options import read_options

CONSUMED = sorted(
    (path.parent.parent.name, level)
    for level in ("read_committed", "read_uncommitted")
    for path in GOLDEN.glob(f"*/expected/consumer_{level}.jsonl*")
)
WITH_STATE = sorted(
    path.parent.parent.name
    for path in GOLDEN.glob("*/expected/broker_state.json")
    if "partitions" in json.loads(path.read_text())
)


def broker_state(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / name / "expected" / "broker_state.json").read_text())


def log_start_offset(name: str, topic: str, partition: int) -> int | None:
    """Return where the broker let consumers begin; the log files may hold more."""
    if name not in WITH_STATE:
        return None
    return broker_state(name)["partitions"][f"{topic}-{partition}"]["log_start_offset"]


def sha256(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def consumed(name: str, level: str) -> dict[tuple[str, int], list[dict[str, Any]]]:
    rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for line in lines(GOLDEN / name / "expected" / f"consumer_{level}.jsonl"):
        of_partition = rows.setdefault((line["topic"], line["partition"]), [])
        if "end_position" not in line:
            of_partition.append(line)
    return rows


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("name", "level"), CONSUMED)
def test_consumer(name: str, level: str, workers: int):
    compared = 0
    for (topic, partition), expected in consumed(name, level).items():
        log = kraftlog.open(GOLDEN / name / "log", topics=[topic], partitions=[partition])
        stream = log.records(
            ["offset", "timestamp_ms", "timestamp_type", "partition_leader_epoch", "key", "value", "headers"],
            isolation_level=level,
            start_offset=log_start_offset(name, topic, partition),
            workers=workers,
        )
        found = [
            {
                "topic": topic,
                "partition": partition,
                "offset": row["offset"],
                "timestamp": row["timestamp_ms"],
                "timestamp_type": row["timestamp_type"],
                "leader_epoch": row["partition_leader_epoch"],
                "key_sha256": sha256(row["key"]),
                "value_sha256": sha256(row["value"]),
                "headers": len(row["headers"]),
            }
            for row in stream.to_table().to_pylist()
        ]
        assert [{name: row[name] for name in answer} for row, answer in zip(found, expected, strict=True)] == expected
        assert stream.faults == []
        compared += len(found)
    assert compared > 0


@pytest.mark.parametrize("name", WITH_STATE)
def test_last_stable_offset(name: str):
    expected = {of: state["last_stable_offset"] for of, state in broker_state(name)["partitions"].items()}
    for row in kraftlog.open(GOLDEN / name / "log").last_stable_offsets().to_pylist():
        partition = f"{row['topic']}-{row['partition']}"
        if partition in expected:
            assert row["last_stable_offset"] == expected[partition], partition


@pytest.mark.parametrize("name", ["transactions", "transactions_live", "transactions_tv0", "transactions_hanging"])
def test_aborted_transactions(name: str):
    """They are those that Kafka's TransactionIndex has read off ``.txnindex``."""
    indexes = json.loads((GOLDEN / name / "expected" / "indexes.json").read_text())
    expected = sorted(
        (file.rpartition("-")[0], entry["producer_id"], entry["first_offset"], entry["last_offset"])
        for file, content in indexes.items()
        for entry in content.get("aborted", [])
    )
    found = kraftlog.open(GOLDEN / name / "log").partition_transactions().to_pylist()
    assert expected == sorted(
        (row["topic"], row["producer_id"], row["first_offset"], row["marker_offset"])
        for row in found
        if row["state"] == "aborted" and row["first_offset"] is not None
    )


def test_open_transactions():
    found = kraftlog.open(GOLDEN / "transactions" / "log").partition_transactions().to_pylist()
    still_open = {(row["topic"], row["partition"]): row for row in found if row["state"] == "open"}
    expected = {
        of: producer["current_transaction_start_offset"]
        for of, state in broker_state("transactions")["partitions"].items()
        for producer in state["producers"]
        if producer["current_transaction_start_offset"] is not None
    }
    assert {f"{topic}-{partition}": row["first_offset"] for (topic, partition), row in still_open.items()} == expected
    assert all(row["marker_offset"] is None and row["end_timestamp"] is None for row in still_open.values())


@pytest.mark.parametrize("name", ["transactions", "transactions_hanging"])
def test_hanging(name: str):
    """The rows are those of ``kafka-transactions find-hanging``; its duration depends on when it was asked."""
    header, *rows = (
        [cell.strip() for cell in line.split("\t")]
        for line in (GOLDEN / name / "expected" / "kafka-transactions_find_hanging.txt").read_text().splitlines()
        if line.strip()
    )
    answers = [dict(zip(header, row, strict=False)) for row in rows]
    found = kraftlog.open(GOLDEN / name / "log").hanging_transactions(
        [
            "topic",
            "partition",
            "producer_id",
            "producer_epoch",
            "coordinator_epoch",
            "start_offset",
            "last_timestamp_ms",
        ]
    )
    words = ["Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp"]
    expected = [[answer[word] for word in words] for answer in answers]
    assert [[str(value) for value in row.values()] for row in found.to_pylist()] == expected


def test_hanging_says_why():
    log = kraftlog.open(GOLDEN / "transactions_hanging" / "log" / "orders-late-0")
    row = log.hanging_transactions().to_pylist()[0]
    assert row["transactional_id"] == "orders-late-A"
    assert row["reason"] == "the partition is not in the transaction of orders-late-A, which is CompleteCommit"
    assert row["command"] == (
        "kafka-transactions.sh --bootstrap-server <broker> abort --topic orders-late --partition 0 --start-offset 21"
    )


def test_hanging_without_a_coordinator(tmp_path: Path):
    folder = tmp_path / "orders-1"
    folder.symlink_to(GOLDEN / "transactions" / "log" / "orders-1")
    rows = kraftlog.open(folder).hanging_transactions().to_pylist()
    assert [row["reason"] for row in rows] == ["not known: the log directory has no __transaction_state"]


@pytest.mark.parametrize("name", ["transactions", "transactions_tv0", "compaction", "transactions_hanging"])
def test_states_of_records(name: str):
    """What is committed is what a consumer got; the rest is aborted, or behind the last stable offset."""
    visible = {
        (topic, partition, row["offset"])
        for (topic, partition), rows in consumed(name, "read_committed").items()
        for row in rows
    }
    topics = sorted({topic for topic, _, _ in visible})
    log = kraftlog.open(GOLDEN / name / "log", topics=topics)
    stable = {
        (row["topic"], row["partition"]): row["last_stable_offset"] for row in log.last_stable_offsets().to_pylist()
    }
    columns = ["topic", "partition", "offset", "transaction_state", "visible_at", "is_transactional"]
    for row in log.records(columns).to_table().to_pylist():
        key = row["topic"], row["partition"], row["offset"]
        assert (row["transaction_state"] is None) == (not row["is_transactional"])
        assert (row["visible_at"] is not None) == (key in visible)
        if row["transaction_state"] == "aborted":
            assert key not in visible
        elif key not in visible:
            assert row["offset"] >= stable[key[:2]]


METADATA_CASES = sorted(path.name for path in (GOLDEN / "metadata_txn").iterdir())


def metadata_case(name: str) -> tuple[kraftlog.Log, dict[str, Any]]:
    folder = GOLDEN / "metadata_txn" / name
    return kraftlog.open(folder / "log"), json.loads((folder / "expected" / "expected.json").read_text())


@pytest.mark.parametrize("name", METADATA_CASES)
def test_metadata_visibility(name: str):
    log, expected = metadata_case(name)
    illegal = expected["illegal_marker_at"]
    stream = log.records(["offset", "visible_at"], include_control=True)
    found = {row["offset"]: row["visible_at"] for row in stream.to_table().to_pylist()}
    answers = {row["offset"]: row["visible_at"] for row in expected["records"]}
    if illegal is None:
        assert found == answers
        assert stream.faults == []
    else:  # behind an illegal marker the answers are those of a strict reader, which stops there
        assert found.keys() == answers.keys()
        before = {offset: at for offset, at in answers.items() if at is not None}
        assert before.items() <= found.items()
        assert next(fault.base_offset + fault.record_index for fault in stream.faults) == illegal
        with pytest.raises(kraftlog.RecordError, match=f"at offset {illegal}"):
            log.records(["offset"], isolation_level="read_committed", strict=True).to_table()
    committed = log.records(["offset"], isolation_level="read_committed").to_table()["offset"].to_pylist()
    assert committed == sorted(offset for offset, at in found.items() if at is not None)


# What DESIGN asks of a lenient reader behind a marker that is out of place: the marker is ignored and reported.
LENIENT = {
    "abort_without_begin_illegal": ([1, 3, 6], ["end_outside_transaction"]),
    "end_without_begin_illegal": ([1, 3], ["end_outside_transaction"]),
    "nested_begin_illegal": ([1, 3, 5], ["begin_inside_transaction", "end_outside_transaction"]),
    "begin_in_missing_segment_then_abort": ([502, 503], ["begun_before_log"]),
    "begin_in_missing_segment_then_end": ([500, 501, 503], ["begun_before_log"]),
}


@pytest.mark.parametrize("name", sorted(LENIENT))
def test_metadata_markers_out_of_place(name: str):
    log, _ = metadata_case(name)
    offsets, errors = LENIENT[name]
    stream = log.records(["offset"], isolation_level="read_committed")
    assert stream.to_table()["offset"].to_pylist() == offsets
    assert [fault.error for fault in stream.faults] == errors
    assert log.errors()["error"].to_pylist() == errors


def test_every_illegal_case_is_named():
    assert sorted(LENIENT) == [n for n in METADATA_CASES if metadata_case(n)[1]["illegal_marker_at"] is not None]


@pytest.mark.parametrize("name", METADATA_CASES)
def test_metadata_transactions(name: str):
    """The table follows from the markers and from what became visible."""
    log, expected = metadata_case(name)
    rows = log.metadata_transactions(strict=False, faults=[]).to_pylist()
    answers = {row["offset"]: row for row in expected["records"]}
    if expected["illegal_marker_at"] is not None:
        return  # LENIENT says what becomes of these
    begins = [at for at, row in answers.items() if row["type"] == "BeginTransactionRecord"]
    ends = {at: row["type"] for at, row in answers.items() if row["type"] in ENDS}
    assert [row["begin_offset"] for row in rows] == begins
    assert [row["end_offset"] for row in rows if row["end_offset"] is not None] == sorted(ends)
    for row in rows:
        end = row["end_offset"]
        assert row["state"] == (ENDS[ends[end]] if end is not None else "open")
        last = end if end is not None else max(answers) + 1
        inside = [at for at in range(row["begin_offset"] + 1, last) if not answers[at]["type"].startswith("control")]
        assert row["records_count"] == len(inside)
        held = [*inside, row["begin_offset"], *([end] if end is not None else [])]
        assert row["batches"] == len({answers[at]["batch"] for at in held})
        assert row["begin_epoch"] == answers[row["begin_offset"]]["epoch"]
        assert row["end_epoch"] == (None if end is None else answers[end]["epoch"])
        for at in inside:
            assert answers[at]["visible_at"] == (end if row["state"] == "committed" else None)


ENDS = {"EndTransactionRecord": "committed", "AbortTransactionRecord": "aborted"}


def test_names_and_reasons():
    log, _ = metadata_case("names")
    records = lines(GOLDEN / "metadata_txn" / "names" / "expected" / "metadata_records.jsonl")

    def texts(kind: str, field: str) -> list[str | None]:
        return [record["data"].get(field) for record in records if record.get("type") == f"{kind}_TRANSACTION_RECORD"]

    rows = log.metadata_transactions().to_pylist()
    assert [row["name"] for row in rows] == texts("BEGIN", "name")
    assert [row["reason"] for row in rows if row["state"] == "aborted"] == texts("ABORT", "reason")
    assert len(rows) == 5


def test_a_real_log_begins_with_bootstrap_records():
    row = kraftlog.open(GOLDEN / "metadata" / "log").metadata_transactions().to_pylist()
    assert row == [
        {
            "name": "Bootstrap records",
            "state": "committed",
            "reason": None,
            "begin_offset": 1,
            "end_offset": 5,
            "begin_epoch": 1,
            "end_epoch": 1,
            "records_count": 3,
            "batches": 1,
            "size_in_bytes": 193,
        }
    ]


def test_a_delete_horizon_is_no_start(tmp_path: Path):
    """The cleaner puts it in the place of the base timestamp."""
    rows = kraftlog.open(GOLDEN / "compaction" / "log").partition_transactions().to_pylist()
    with_data = [row for row in rows if row["first_offset"] is not None and row["end_timestamp"] is not None]
    assert with_data
    assert all(row["start_timestamp"] < row["end_timestamp"] for row in with_data)


def test_hanging_reads_the_whole_log():
    """Of a part it could not tell whether a transaction has ended."""
    whole = kraftlog.open(GOLDEN / "transactions_hanging" / "log").hanging_transactions()
    part = GOLDEN / "transactions_hanging" / "log" / "orders-late-0" / "00000000000000000000.log"
    assert kraftlog.open(part).hanging_transactions() == whole
    bounded = read_options(start_timestamp=2208988800000, end_offset=1)
    assert kraftlog.open(part.parent).scan("hanging_transactions", None, bounded).to_table() == whole


def test_control_records_are_in_no_metadata_transaction():
    log, expected = metadata_case("controller_failover")
    controls = [row["offset"] for row in expected["records"] if row["type"].startswith("control")]
    stream = log.records(["offset", "is_control"], isolation_level="read_committed", include_control=True)
    assert [row["offset"] for row in stream.to_table().to_pylist() if row["is_control"]] == controls


def test_it_is_said_where_read_committed_ends():
    log = kraftlog.open(GOLDEN / "transactions" / "log", topics=["orders"])
    stream = log.records(["offset"], isolation_level="read_committed")
    for _ in range(2):
        stream.to_table()
        assert stream.notes == [
            "orders-1: read_committed ends at offset 47, where a transaction of producer 7 is open",
            "orders-2: read_committed ends at offset 21, where a transaction of producer 7 is open",
        ]
