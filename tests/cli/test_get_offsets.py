"""``kraftlog get-offsets``: its options, formats and exit codes; tests/tables has the offsets themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from golden_files import GOLDEN

LOG = GOLDEN / "transactions" / "log"
STATE = json.loads((GOLDEN / "transactions" / "expected" / "broker_state.json").read_text())["partitions"]
PARTITIONS = [
    "__consumer_offsets-0",
    "__transaction_state-0",
    "__transaction_state-1",
    "orders-0",
    "orders-1",
    "orders-2",
]


def shown(run: Callable[..., object], *options: str) -> list[str]:
    """Return the partitions that are shown as text."""
    done = run("get-offsets", LOG, "--format", "text", *options)
    assert done.returncode == 0
    return ["-".join(line.split(":")[:2]) for line in done.stdout.splitlines()]


def test_text_is_that_of_kafka(kraftlog_command: Callable[..., object]):
    done = kraftlog_command("get-offsets", LOG, "--topic", "orders", "--format", "text")
    ends = {name: answer["high_watermark"] for name, answer in STATE.items() if name.startswith("orders")}
    assert done.stdout.splitlines() == [f"{name.replace('-', ':')}:{end}" for name, end in sorted(ends.items())]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), PARTITIONS),
        (("--exclude-internal-topics",), PARTITIONS[3:]),
        (("--topic", "ord.*"), PARTITIONS[3:]),
        (("--topic", "rders"), None),
        (("--topic", "orders,__consumer_offsets"), [PARTITIONS[0], *PARTITIONS[3:]]),
        (("-t", "orders", "-t", "__consumer_offsets"), [PARTITIONS[0], *PARTITIONS[3:]]),
        (("--topic", "orders", "--partitions", "0,2"), ["orders-0", "orders-2"]),
        (("--topic-partitions", "orders:0-2"), ["orders-0", "orders-1"]),
        (("--topic-partitions", "orders:1-"), ["orders-1", "orders-2"]),
        (
            ("--topic-partitions", ":-1,orders:2"),
            ["__consumer_offsets-0", "__transaction_state-0", "orders-0", "orders-2"],
        ),
        (("--topic-partitions", "orders"), PARTITIONS[3:]),
    ],
)
def test_which_partitions(
    kraftlog_command: Callable[..., object], options: tuple[str, ...], expected: list[str] | None
):
    """Names are whole, ranges end before their last number."""
    if expected is None:
        done = kraftlog_command("get-offsets", LOG, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert "no partition of those asked for. There are __consumer_offsets-0" in done.stderr
    else:
        assert shown(kraftlog_command, *options) == expected


@pytest.mark.parametrize(
    "times", [("earliest", "-2"), ("latest", "-1"), ("max-timestamp", "-3")], ids=lambda two: two[0]
)
def test_numbers_of_kafka(kraftlog_command: Callable[..., object], times: tuple[str, str]):
    word, number = (kraftlog_command("get-offsets", LOG, "--time", time) for time in times)
    assert word == number
    assert word.returncode == 0


def test_a_time(kraftlog_command: Callable[..., object]):
    """Partitions without such a record are left out of the text, and null in data."""
    late = "2026-11-21T03:13:31Z"
    done = kraftlog_command("get-offsets", LOG, "--topic", "orders", "--time", late, "--format", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["offset"] for row in rows] == [None, 67, 37]
    assert shown(kraftlog_command, "--topic", "orders", "--time", late) == ["orders-1", "orders-2"]


def test_limits_of_text(kraftlog_command: Callable[..., object]):
    assert shown(kraftlog_command, "--limit", "2") == PARTITIONS[:2]
    assert shown(kraftlog_command, "--tail", "2") == PARTITIONS[-2:]
    assert shown(kraftlog_command, "--tail", "0") == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--time", "-4"), "earliest-local is of remote storage"),
        (("--time", "soon"), "timestamp 'soon' is not a time such as"),
        (("--topic", "["), "'[' is not a regular expression"),
        (("--partitions", "0,x"), "'0,x' is not a list of numbers"),
        (("--topic-partitions", "a:b"), "'a:b' is not of the form TOPIC, TOPIC:3"),
        (("--topic-partitions", "a", "--topic", "a"), "--topic-partitions cannot be used with --topic"),
        (("--format", "text", "--columns", "topic"), "--columns does not go with --format text"),
    ],
)
def test_refusals(kraftlog_command: Callable[..., object], options: tuple[str, ...], told: str):
    done = kraftlog_command("get-offsets", LOG, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_damage(kraftlog_command: Callable[..., object], tmp_path: Path):
    """The end that can be read is shown, and what is damaged is told."""
    source = LOG / "orders-0" / f"{0:020}.log"
    data = bytearray(source.read_bytes())
    data[-1] ^= 1
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / source.name).write_bytes(data)
    done = kraftlog_command("get-offsets", tmp_path, "--format", "text")
    assert (done.returncode, done.stdout) == (1, "orders:0:31\n")
    assert "bad_crc: orders-0/00000000000000000000.log: batch at byte 15319" in done.stderr
