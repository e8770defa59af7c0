"""Index files, producer snapshots and checkpoints equal what Kafka's own classes read from them."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.errors import Fault
from kraftlog.layout.checkpoints import read_leader_epochs, read_offset_checkpoint, read_properties
from kraftlog.layout.index_files import read_index
from kraftlog.layout.names import parse_segment_file
from kraftlog.layout.producer_snapshot import read_producer_snapshot

ANSWERS = sorted(GOLDEN.glob("*/expected/indexes.json"))
FIELDS = {
    "index": ("offset", "position"),
    "timeindex": ("timestamp", "offset"),
    "txnindex": ("version", "producer_id", "offset", "last_offset", "lso"),
}


def answers(kind: str) -> list[tuple[Path, dict[str, Any]]]:
    found = []
    for answer in ANSWERS:
        for name, content in json.loads(answer.read_text()).items():
            if name.endswith(kind):
                found.append((answer.parent.parent / "log" / name, content))
    return found


@pytest.mark.parametrize("kind", FIELDS)
def test_entries(kind: str):
    compared = 0
    for path, answer in answers(f".{kind}"):
        name = parse_segment_file(path.name)
        assert name is not None
        faults: list[Fault] = []
        columns = read_index(path, kind, name.base_offset, faults)
        entries = [list(row) for row in zip(*(columns[field].tolist() for field in FIELDS[kind]), strict=True)]
        expected = [list(row.values()) for row in answer["aborted"]] if kind == "txnindex" else answer["entries"]
        assert entries == expected, path
        assert faults == []
        compared += 1
    assert compared > 10


def test_table():
    """The table index_entries has the entries of all three files, each with the columns that it has."""
    folder = GOLDEN / "transactions"
    answer = json.loads((folder / "expected" / "indexes.json").read_text())
    rows = kraftlog.open(folder / "log" / "orders-0").index_entries().to_pylist()
    counts = {
        name: len(content["aborted" if name.endswith("txnindex") else "entries"])
        for name, content in answer.items()
        if "orders-0" in name and "index" in name
    }
    assert {name: sum(row["file"] == name for row in rows) for name in counts} == counts
    aborted = [row for row in rows if row["file"].endswith(".txnindex")]
    assert all(row["lso"] is not None and row["position"] is None for row in aborted)
    assert len(aborted) > 0


def test_producer_snapshots():
    compared = 0
    for path, answer in answers(".snapshot"):
        got = [astuple(state) for state in read_producer_snapshot(path)]
        expected = [
            (
                producer["producer_id"],
                producer["producer_epoch"],
                producer["last_data_offset"],
                producer["last_timestamp"],
                producer["coordinator_epoch"],
                producer["current_txn_first_offset"],
            )
            for producer in answer["producers"]
        ]
        assert [(s[0], s[1], s[3], s[5], s[6], s[7]) for s in got] == expected, path
        compared += len(got)
    assert compared > 20


def test_damaged_snapshot(tmp_path: Path):
    path, _ = next((path, answer) for path, answer in answers(".snapshot") if answer["producers"])
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    copy = tmp_path / path.name
    copy.write_bytes(data)
    with pytest.raises(kraftlog.CorruptRecordError, match=r"stored crc \d+, computed crc \d+"):
        read_producer_snapshot(copy)
    copy.write_bytes(data[:4])
    with pytest.raises(kraftlog.CorruptRecordError, match="expected a header of 10 bytes, found 4 bytes"):
        read_producer_snapshot(copy)


def test_checkpoints():
    compared = 0
    for path, answer in answers("leader-epoch-checkpoint"):
        numbers = [int(word) for word in answer["text"].split()]
        assert read_leader_epochs(path) == list(zip(numbers[2::2], numbers[3::2], strict=True))
        compared += 1
    assert compared > 10
    starts = read_offset_checkpoint(GOLDEN / "deleted_records" / "log" / "log-start-offset-checkpoint")
    state = json.loads((GOLDEN / "deleted_records" / "expected" / "broker_state.json").read_text())
    assert starts
    assert "log_start" in json.dumps(state)


def test_properties():
    path, answer = answers("partition.metadata")[0]
    assert f"topic_id: {read_properties(path)['topic_id']}" in answer["text"]
    assert read_properties(path)["version"] == "0"


def test_bad_index_is_named(tmp_path: Path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    source = GOLDEN / "codecs" / "log" / "codec-none-0"
    for name in ("00000000000000000000.log", "00000000000000000000.index"):
        (folder / name).write_bytes((source / name).read_bytes())
    index = folder / "00000000000000000000.index"
    data = index.read_bytes()
    index.write_bytes(data[8:16] + data[:8] + data[16:] + b"\0\0\1")
    log = kraftlog.open(folder)
    errors = log.errors().to_pylist()
    assert [row["error"] for row in errors] == ["bad_index", "bad_index"]
    assert errors[0]["message"].endswith(f"byte {len(data)}: {len(data) + 3} bytes are not a multiple of 8")
    assert errors[1]["message"].endswith("byte 8: entry 1 is less than the one before it")
    whole = log.records(["offset"]).to_table()["offset"].to_pylist()
    assert log.records(["offset"], start_offset=100).to_table()["offset"].to_pylist() == [o for o in whole if o >= 100]
