"""``--last`` of each command, and what does not go with it and with ``--follow``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from golden_files import GOLDEN

Command = Callable[..., Any]
TRANSACTIONS, GROUPS = GOLDEN / "transactions" / "log", GOLDEN / "groups" / "log"


def rows(done: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "words",
    [
        ("records", TRANSACTIONS, "--columns", "topic,partition,offset"),
        ("records", TRANSACTIONS, "--columns", "topic,partition,offset", "--isolation-level", "read_committed"),
        ("records", TRANSACTIONS, "--columns", "topic,partition,offset", "--start-offset", 40),
        ("messages", GROUPS, "--columns", "topic,partition,offset,type,key"),
        ("messages", GROUPS, "--columns", "topic,partition,offset,group", "--type", "OffsetCommit"),
        ("grep", TRANSACTIONS, "--columns", "topic,partition,offset", "--value", "lamb"),
    ],
)
@pytest.mark.parametrize("count", [0, 2, 5])
def test_last(kraftlog_command: Command, words: tuple[Any, ...], count: int):
    by_partition: dict[Any, list[Any]] = {}
    for row in rows(kraftlog_command(*words)):
        by_partition.setdefault((row["topic"], row["partition"]), []).append(row)
    done = kraftlog_command(*words, "--last", count)
    assert rows(done) == [row for of in by_partition.values() for row in of[len(of) - min(count, len(of)) :]]
    assert done.returncode == 0


def test_last_of_groups(kraftlog_command: Command):
    every = rows(kraftlog_command("groups", GROUPS, "--format", "jsonl"))
    assert rows(kraftlog_command("groups", GROUPS, "--format", "jsonl", "--last", 3)) == every[-3:]
    assert rows(kraftlog_command("groups", GROUPS, "--format", "jsonl", "--last", 0)) == []


def test_last_in_other_forms(kraftlog_command: Command):
    words = ("records", TRANSACTIONS, "-t", "orders", "--last", 1)
    assert kraftlog_command(*words, "-f", "%p:%o ").stdout == "0:129 1:68 2:34 "
    table = kraftlog_command(*words, "--columns", "partition,offset", "--format", "table").stdout.split()
    assert table == ["partition", "offset", "0", "129", "1", "68", "2", "34"]
    limited = kraftlog_command(*words, "--columns", "partition,offset", "-c", 2)
    assert rows(limited) == [{"partition": 0, "offset": 129}, {"partition": 1, "offset": 68}]


def test_follow_until_a_limit(kraftlog_command: Command):
    done = kraftlog_command("records", TRANSACTIONS, "-t", "orders", "--follow", "-c", 3, "--columns", "offset")
    assert rows(done) == [{"offset": 0}, {"offset": 1}, {"offset": 2}]
    near = kraftlog_command("records", TRANSACTIONS, "-t", "orders", "--follow", "-c", 1, "-o", -2, "-f", "%p:%o")
    assert near.stdout == "0:129"


def test_damage(kraftlog_command: Command):
    damaged = GOLDEN / "damaged" / "bit_flip_payload" / "log"
    done = kraftlog_command("records", damaged, "--last", 100, "--columns", "offset")
    assert (done.returncode, len(rows(done))) == (1, 17)
    assert "stored crc 1973285820, computed crc 2762825390" in done.stderr
    limited = kraftlog_command("records", damaged, "--follow", "-c", 17, "--columns", "offset")
    assert (limited.returncode, len(rows(limited))) == (1, 17)


def test_wrong_usage(kraftlog_command: Command, tmp_path: Any):
    for words, text in (
        (("records", TRANSACTIONS, "--follow", "--tail", 3), "--follow and --tail exclude each other"),
        (("records", TRANSACTIONS, "--last", 3, "--tail", 3), "--last and --tail exclude each other"),
        (("grep", TRANSACTIONS, "--value", "a", "--count", "--last", 3), "--last and --count exclude each other"),
        (("records", TRANSACTIONS, "--follow", "--output", tmp_path / "a.jsonl"), "standard output alone"),
        (("records", TRANSACTIONS, "--follow", "--end-offset", 3), "--follow has no end"),
        (("groups", GROUPS, "--follow", "--at", 3), "--follow has no end"),
        (("records", TRANSACTIONS, "--last", -1), "-1 is not in the range"),
        (("batches", TRANSACTIONS, "--follow"), "No such option"),
    ):
        done = kraftlog_command(*words)
        assert done.returncode == 2, words
        assert text in done.stderr
