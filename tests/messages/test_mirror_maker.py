"""Records of MirrorMaker 2, as its own classes write them (tests/golden/mirror_maker)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.messages.api import decode_messages, encode_messages
from kraftlog.messages.format_of import format_of_topic

ROWS = lines(GOLDEN / "mirror_maker" / "records.jsonl")
TYPES = {"offset_syncs": "OffsetSync", "checkpoints": "Checkpoint", "heartbeats": "Heartbeat"}


def rows_of(format_name: str) -> list[dict[str, Any]]:
    return [row for row in ROWS if format_of_topic(row["topic"]) == format_name]


def write(folder: Path, keys: list[bytes | None], values: list[bytes | None]) -> None:
    folder.mkdir(parents=True)
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
    (folder / f"{0:020d}.log").write_bytes(kraftlog.encode(table))


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> None:
    write(folder, *([bytes.fromhex(row[side]) for row in rows] for side in ("key", "value")))


@pytest.mark.parametrize("format_name", TYPES)
def test_each_topic_is_a_typed_table(tmp_path: Path, format_name: str) -> None:
    rows = rows_of(format_name)
    assert len(rows) >= 2
    write_rows(tmp_path / f"{rows[0]['topic']}-0", rows)
    table = kraftlog.open(tmp_path).messages(type=TYPES[format_name]).to_table().to_pylist()
    fields = [name for name in rows[0] if name not in ("topic", "key", "value")]
    assert [{name: row[name] for name in fields} for row in table] == [
        {name: row[name] for name in fields} for row in rows
    ]


@pytest.mark.parametrize("format_name", TYPES)
def test_encoding_makes_the_same_bytes(format_name: str) -> None:
    rows, name = rows_of(format_name), TYPES[format_name]
    for side in ("key", "value"):
        data = pa.array([bytes.fromhex(row[side]) for row in rows])
        message = f"{name}{side.title()}"
        columns = decode_messages(message, data)
        assert columns.column("error").null_count == len(rows)
        fields = [name for name in columns.schema.names if name != "error"]
        assert encode_messages(message, columns.select(fields)) == data


def test_the_topics_of_mirror_maker() -> None:
    names = ["mm2-offset-syncs.b.internal", "a.b.checkpoints.internal", "heartbeats", "a.heartbeats"]
    assert [format_of_topic(name) for name in names] == ["offset_syncs", "checkpoints", "heartbeats", "heartbeats"]
    others = [
        "mm2-offset-syncs..internal",
        ".checkpoints.internal",
        "checkpoints.internal",
        "myheartbeats",
        "heartbeats2",
    ]
    assert [format_of_topic(name) for name in others] == [None] * 5


def test_a_tombstone_a_null_key_and_damaged_values(tmp_path: Path) -> None:
    rows = rows_of("checkpoints")
    key, value = (bytes.fromhex(rows[0][side]) for side in ("key", "value"))
    keys, values = [key, None, key, key, key], [None, value, value[:-1], b"\0\1" + value[2:], value]
    write(tmp_path / f"{rows[0]['topic']}-0", keys, values)
    found = kraftlog.open(tmp_path).messages().to_table()
    assert found.column("error").to_pylist() == [
        None,
        "key: the key is null",
        "value: version 0 of Checkpoint, metadata: a field of 2 bytes, but 1 bytes left, at byte 18",
        "value: version 1 of Checkpoint is not between 0 and 0",
        None,
    ]
    assert found.column("type").to_pylist() == ["Checkpoint", None, *["Checkpoint"] * 3]
    assert found.column("is_tombstone").to_pylist() == [True, False, False, False, False]
    last = json.loads(found.column("value")[4].as_py())
    assert last == {"upstreamOffset": 12, "offset": 10, "metadata": ""}


def test_a_topic_of_users_named_heartbeats_has_no_faults(tmp_path: Path) -> None:
    write(tmp_path / "heartbeats-0", [b"a key"], [b"of a user"])
    log = kraftlog.open(tmp_path)
    assert list(log.verify()) == []
    assert log.messages().to_table().num_rows == 0
