"""Records, batches and control records equal what Kafka's own classes returned."""

from __future__ import annotations

from pathlib import Path

import pytest

import kraftlog
from golden_files import ANSWER_COLUMNS, GOLDEN, as_answer, by_file, lines, log_files, name_of, scenarios
from kraftlog.codec.options import ReadOptions

BATCH_FIELDS = {
    "position": "position",
    "size_in_bytes": "size_in_bytes",
    "magic": "magic",
    "base_offset": "base_offset",
    "last_offset": "last_offset",
    "partition_leader_epoch": "partition_leader_epoch",
    "crc": "crc",
    "attributes": "attributes",
    "max_timestamp": "max_timestamp_ms",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
    "base_sequence": "base_sequence",
    "timestamp_type": "timestamp_type",
    "compression": "compression",
    "is_transactional": "is_transactional",
    "is_control": "is_control",
    "delete_horizon_ms": "delete_horizon_ms",
    "is_valid": "crc_ok",
    # of magic 2 only
    "base_timestamp": "base_timestamp_ms",
    "batch_length": "batch_length",
    "last_offset_delta": "last_offset_delta",
    "records_count": "records_count",
}


def test_scenarios_are_there():
    assert len(scenarios()) == 38


@pytest.mark.parametrize("scenario", scenarios(), ids=name_of)
def test_records(scenario: Path):
    answers = by_file(lines(scenario / "expected" / "records.jsonl"))
    for path in log_files(scenario):
        stream = kraftlog.open(path).records(ANSWER_COLUMNS, include_control=True, include_deleted=True)
        expected = answers.get(str(path.relative_to(scenario / "log")), [])
        for row in expected:
            del row["file"]
            row.pop("coordinator_epoch", None)  # test_markers looks at it
        assert [as_answer(row) for row in stream.to_table().to_pylist()] == expected
        assert [fault.error for fault in stream.faults] == (["bad_crc"] if "bad-crc" in str(path) else [])


@pytest.mark.parametrize("scenario", scenarios(), ids=name_of)
def test_batches(scenario: Path):
    answers = by_file(lines(scenario / "expected" / "batches.jsonl"))
    for path in log_files(scenario):
        columns = list(BATCH_FIELDS.values())
        rows = kraftlog.open(path).batches(columns, check_crc=True, faults=[]).to_pylist()
        expected = answers.get(str(path.relative_to(scenario / "log")), [])
        assert len(rows) == len(expected)
        for row, answer in zip(rows, expected, strict=True):
            known = {ours: answer[theirs] for theirs, ours in BATCH_FIELDS.items() if theirs in answer}
            assert {name: row[name] for name in known} == known


def test_markers():
    """COMMIT and ABORT markers with the epoch of the coordinator that wrote them."""
    folder = GOLDEN / "transactions"
    answers = [
        row for row in lines(folder / "expected" / "records.jsonl") if row["control_type"] in ("COMMIT", "ABORT")
    ]
    assert len(answers) > 20
    columns = ["offset", "key", "value", "control_type"]
    for name, expected in by_file(answers).items():
        rows = kraftlog.open(folder / "log" / name).records(columns, include_control=True).to_table().to_pylist()
        control = [kraftlog.decode_control(row["key"], row["value"]) for row in rows if row["control_type"]]
        assert [(c.control_type, c.fields["coordinatorEpoch"]) for c in control] == [
            (row["control_type"], row["coordinator_epoch"]) for row in expected
        ]


def test_raft_control_records():
    """Kafka 4.3 reads every LEADER_CHANGE as version 0 and fails on version 1, which is read here."""
    folder = GOLDEN / "schema_all"
    answers = {row["offset"]: row for row in lines(folder / "expected" / "raft_control_records.jsonl")}
    rows = kraftlog.open(folder / "log" / "raft-control-0").records(["offset", "key", "value"], include_control=True)
    for row in rows.to_table().to_pylist():
        control, answer = kraftlog.decode_control(row["key"], row["value"]), answers.pop(row["offset"])
        assert (control.control_type, control.version) == (answer["control_type"], answer["version"])
        if "data" in answer:
            assert control.fields == answer["data"]
        else:
            assert [len(voter["voterDirectoryId"]) for voter in control.fields["voters"]] == [22, 22, 22]
    assert answers == {}


def test_control_records_are_hidden():
    log = kraftlog.open(GOLDEN / "transactions" / "log" / "orders-0")
    shown = log.records(["offset", "is_control"], include_control=True).to_table().to_pylist()
    assert {row["is_control"] for row in shown} == {True, False}
    hidden = log.records(["offset"]).to_table()["offset"].to_pylist()
    assert hidden == [row["offset"] for row in shown if not row["is_control"]]


def test_consumer():
    """What a real consumer got, and the order within each partition."""
    folder = GOLDEN / "codecs"
    answers = [row for row in lines(folder / "expected" / "consumer_read_uncommitted.jsonl") if "offset" in row]
    columns = ["topic", "partition", "offset", "timestamp_ms", "timestamp_type", "partition_leader_epoch", "headers"]
    rows = kraftlog.open(folder / "log").records(columns).to_table().to_pylist()
    got = [(*[row[name] for name in columns[:-1]], len(row["headers"])) for row in rows]
    expected = [
        (
            row["topic"],
            row["partition"],
            row["offset"],
            row["timestamp"],
            row["timestamp_type"],
            row["leader_epoch"],
            row["headers"],
        )
        for row in answers
    ]
    assert got == sorted(expected, key=lambda row: row[:3])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("column", ["offset", "transaction_state", "visible_at"])
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0", "deleted_records"])
def test_progress_adds_up_to_the_bytes_that_were_read(scenario: str, level: str, column: str, workers: int):
    """Also of batches without rows at the ends of segments."""
    log = kraftlog.open(GOLDEN / scenario / "log")
    progress: list[int] = []
    options = ReadOptions(isolation_level=level, include_deleted=True)  # type: ignore[arg-type]
    stream = log.scan("records", [column], options, workers=workers, on_progress=progress.append)
    stream.to_table()
    size = sum(segment.size for segment in log.found.segments)
    assert (sum(progress) == size) == (not stream.notes)
    assert 0 <= min(progress) <= sum(progress) <= size
