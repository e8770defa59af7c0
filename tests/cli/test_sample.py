"""``kraftlog sample``: files of a real Kafka, byte for byte, in a folder that held nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden_files import GOLDEN
from kraftlog.cli.sample import CONTENTS

Command = Callable[..., Any]
SOURCES = {
    "broker": "transactions/log",
    "codecs": "codecs/log",
    "damaged": "damaged/bit_flip_payload/log",
    "failover": "metadata_txn/controller_failover/log",
    "future": "coordinator_future/log",
    "groups": "groups/log",
    "hanging": "transactions_hanging/log",
    "metadata": "metadata/log",
    "salvage": "damaged/batch_length_13/log",
    "tiered": "remote_tier",
    "torn": "damaged/truncated_in_last_records/log",
}
IN_PART = {"codecs": ("codec-lz4-0", "codec-mixed-0"), "tiered": ("logs", "tier")}
WITH_FAULTS = ("damaged", "future", "hanging", "salvage")
MOST_BYTES = 400_000


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_are_those_that_kafka_wrote(kraftlog_command: Command, tmp_path: Path):
    done = kraftlog_command("sample", tmp_path / "new" / "sample")
    assert done.returncode == 0
    found = {folder.name: files(folder) for folder in (tmp_path / "new" / "sample").iterdir()}
    assert found.keys() == SOURCES.keys() == CONTENTS.keys()
    for name, source in SOURCES.items():
        golden = files(GOLDEN / source)
        if name in IN_PART:
            golden = {path: data for path, data in golden.items() if path in found[name]}
            assert {Path(path).parts[0] for path in golden} >= set(IN_PART[name])
        assert found[name] == golden
    assert sum(len(data) for folder in found.values() for data in folder.values()) < MOST_BYTES
    shown = [line.split("  ")[0].strip() for line in done.stdout.splitlines()]
    assert shown == [str(tmp_path / "new" / "sample" / name) for name in CONTENTS]


def test_a_folder_that_holds_something_is_left_alone(kraftlog_command: Command, tmp_path: Path):
    (tmp_path / ".keep").write_text("mine")
    for target, found in ((tmp_path, "holds .keep; give a new or empty folder"), (tmp_path / ".keep", "is not a fold")):
        done = kraftlog_command("sample", target)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"DIR {target} {found}" in done.stderr
    assert files(tmp_path) == {".keep": b"mine"}
    (tmp_path / "empty").mkdir()
    assert kraftlog_command("sample", ".", cwd=tmp_path / "empty").returncode == 0
    assert len(list((tmp_path / "empty").iterdir())) == len(CONTENTS)


@pytest.fixture
def sample(kraftlog_command: Command, tmp_path: Path) -> Path:
    assert kraftlog_command("sample", tmp_path / "sample").returncode == 0
    return tmp_path / "sample"


def test_what_is_in_it(kraftlog_command: Command, sample: Path):
    folders = [sample / name for name in SOURCES if name not in IN_PART] + [sample / "codecs"]
    done = kraftlog_command("segments", *folders, "--format", "jsonl", "--columns", "topic,records")
    topics = {json.loads(line)["topic"] for line in done.stdout.splitlines()}
    assert {
        "orders",
        "codec-lz4",
        "orders-late",
        "__cluster_metadata",
        "__consumer_offsets",
        "__transaction_state",
    } <= (topics)


def test_is_it_broken(kraftlog_command: Command, sample: Path):
    folders = {name: sample / name / ("logs" if name == "tiered" else "") for name in SOURCES}
    faulty = [name for name, folder in folders.items() if kraftlog_command("verify", folder).returncode == 1]
    assert faulty == list(WITH_FAULTS)
    assert "1 bad_crc" in kraftlog_command("verify", sample / "damaged").stderr
    assert "1 to cut" in kraftlog_command("recover", sample / "torn").stderr


def test_why_a_consumer_hangs(kraftlog_command: Command, sample: Path):
    done = kraftlog_command("hanging", sample / "hanging", "--format", "jsonl", "--columns", "topic,start_offset")
    assert done.stdout == '{"topic":"orders-late","start_offset":21}\n'
    done = kraftlog_command("records", sample / "broker" / "orders-2", "--isolation-level", "read_committed")
    assert "read_committed ends at offset 21, where a transaction of producer 7 is open" in done.stderr
