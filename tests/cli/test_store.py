"""``kraftlog store``: topics, records in and out, by transactions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import kraftlog
from command_line import Done, run_command

Command = Callable[..., Done]
LINES = '{"key": "a", "value": "one"}\n{"key": "b", "value": "two"}\n'


@pytest.fixture
def mine(kraftlog_command: Command, tmp_path: Path) -> Path:
    done = kraftlog_command(
        "store", "create-topic", tmp_path / "mine", "orders", "--partitions", "2", "--config", "retention.ms=-1"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "orders: 2 partitions\n", "")
    return tmp_path / "mine"


def produce(mine: Path, lines: str, *options: str) -> Done:
    return run_command("store", "produce", mine, "orders", "--binary", "utf8", *options, given=lines)


def test_records_go_in_and_out(kraftlog_command: Command, mine: Path):
    done = produce(mine, LINES, "--transactional-id", "etl")
    assert (done.returncode, done.stderr) == (0, "2 records\n")
    consume = ("store", "consume", mine, "orders", "--group", "g", "--binary", "utf8", "--columns", "key,value")
    done = kraftlog_command(*consume)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(row["value"] for row in rows) == ["one", "two"]
    assert produce(mine, '{"value": "three"}\n').returncode == 0
    done = kraftlog_command(*consume)
    assert [json.loads(line)["value"] for line in done.stdout.splitlines()] == ["three"]
    assert kraftlog_command(*consume).stdout == ""
    lag = kraftlog.open(mine).lag(["group", "lag"]).to_table().to_pylist()
    assert lag == [{"group": "g", "lag": 0}] * 2
    done = kraftlog_command("store", "abort", mine, "etl")
    assert done.stdout == "etl: producer 0, epoch 1, CompleteCommit\n"


def test_tables_and_compaction(kraftlog_command: Command, mine: Path):
    config = ("--config", "cleanup.policy=compact")
    assert kraftlog_command("store", "create-topic", mine, "last", *config).returncode == 0
    for number in range(3):
        produce(mine, f'{{"key": "a", "value": "{number}"}}\n', "--transactional-id", "etl")
    kraftlog_command("store", "consume", mine, "orders", "--group", "g")
    done = kraftlog_command("store", "groups", mine, "--columns", "group,offset", "--format", "jsonl")
    assert {"group": "g", "offset": 6} in [json.loads(line) for line in done.stdout.splitlines()]
    done = kraftlog_command("store", "transactions", mine, "--columns", "transactional_id,status", "--format", "jsonl")
    assert json.loads(done.stdout) == {"transactional_id": "etl", "status": "CompleteCommit"}
    done = kraftlog_command("store", "compact", mine, "--roll")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["__transaction_state-0"]
    done = kraftlog_command("store", "compact", mine, "nowhere")
    assert (done.returncode, done.stderr) == (1, "kraftlog: topic 'nowhere': the store has no such topic\n")


def test_a_line_that_cannot_be_read(kraftlog_command: Command, mine: Path):
    """In a transaction nothing of the input counts."""
    done = produce(mine, f"{LINES}not JSON\n", "--transactional-id", "etl")
    assert done.returncode != 0
    assert "line 3: not JSON" in done.stderr
    assert kraftlog_command("store", "consume", mine, "orders").stdout == ""
    assert kraftlog.open(mine).errors().num_rows == 0


def test_topics_come_and_go(kraftlog_command: Command, mine: Path):
    assert kraftlog_command("store", "init", mine, "--node-id", "4").returncode == 0
    assert kraftlog_command("store", "delete-topic", mine, "orders").returncode == 0
    done = kraftlog_command("store", "delete-topic", mine, "orders")
    assert (done.returncode, done.stderr) == (1, "kraftlog: topic 'orders': the store has no such topic\n")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["create-topic", "MINE", "orders"], 1, "topic 'orders' exists"),
        (["create-topic", "MINE", "a b"], 1, "1 to 249 characters"),
        (["create-topic", "MINE", "t", "--config", "retention"], 2, "is not NAME=VALUE"),
        (["create-topic", "MINE", "t", "--config", "x=1"], 1, "unknown configuration 'x'"),
        (["consume", "MINE", "nowhere"], 1, "no such topic"),
        (["consume", "MINE", "orders", "-c", "1"], 2, "would consume what they do not show"),
        (["consume", "nothing", "orders"], 2, "does not exist"),
        (["abort", "MINE", "etl"], 2, "no transactional id 'etl'"),
    ],
)
def test_refusals(kraftlog_command: Command, mine: Path, arguments: list[str], code: int, says: str):
    done = kraftlog_command("store", *[str(mine) if word == "MINE" else word for word in arguments])
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_directory_that_is_held(kraftlog_command: Command, mine: Path):
    with kraftlog.LogStore(mine):
        done = kraftlog_command("store", "consume", mine, "orders")
    assert done.returncode != 0
    assert "held by a broker or another writer" in done.stderr
    assert "Traceback" not in done.stderr
