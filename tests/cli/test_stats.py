"""``kraftlog stats``: each kind of count is that of the library, and options that do not go together are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.tables.space import Housekeeping

Command = Callable[..., Any]
LOG = GOLDEN / "transactions" / "log"
ORDERS = ("stats", LOG, "-t", "orders", "--format", "jsonl")


def rows(done: Any) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_space(kraftlog_command: Command):
    log = kraftlog.open(LOG, topics=["orders"])
    assert rows(kraftlog_command(*ORDERS, "--space")) == log.space([]).to_pylist()
    now = 1_796_083_200_000
    settings = Housekeeping(now, compacts=True, rolls=True, delete_retention_ms=5, retention_ms=7, retention_bytes=9000)
    words = ("--compaction", "--roll", "--delete-retention-ms", 5, "--retention-ms", 7, "--retention-bytes", 9000)
    done = kraftlog_command(*ORDERS, "--space", *words, "--now", now)
    assert rows(done) == log.space([], settings).to_pylist()
    some = kraftlog_command(*ORDERS, "--space", "--columns", "partition,value_bytes")
    assert rows(some) == log.space([]).select(["partition", "value_bytes"]).to_pylist()


def test_keys_and_times(kraftlog_command: Command, tmp_path: Any):
    log = kraftlog.open(LOG, topics=["orders"])
    assert rows(kraftlog_command(*ORDERS, "--keys")) == log.key_stats([]).to_pylist()
    top = rows(kraftlog_command(*ORDERS, "--top-keys", 4, "--binary", "utf8"))
    assert [row | {"key": row["key"].encode()} for row in top] == log.top_keys(4, []).to_pylist()
    words = ("stats", LOG, "-t", "orders", "--by-time", "minute", "--output", tmp_path / "w.parquet")
    assert kraftlog_command(*words).returncode == 0
    assert pq.read_table(tmp_path / "w.parquet").to_pylist() == log.writes("minute", []).to_pylist()
    assert rows(kraftlog_command(*ORDERS, "--by", "partition")) == rows(kraftlog_command(*ORDERS))


@pytest.mark.parametrize("option", [["--space"], ["--keys"], ["--top-keys", 3], ["--by-time", "day"]])
def test_damage_is_reported(kraftlog_command: Command, option: list[Any]):
    done = kraftlog_command("stats", GOLDEN / "damaged" / "bit_flip_payload" / "log", *option)
    assert done.returncode == 1
    assert "stored crc 1973285820, computed crc 2762825390" in done.stderr


def test_deleted_records_are_named(kraftlog_command: Command):
    done = kraftlog_command("stats", GOLDEN / "deleted_records" / "log" / "orders-del-7-0", "--keys")
    assert "28 records before the log start offset 91 are not shown" in done.stderr


def test_wrong_usage(kraftlog_command: Command):
    for words, text in (
        (("--space", "--keys"), "--space and --keys exclude each other"),
        (("--top-keys", 3, "--by", "producer"), "--top-keys and --by exclude each other"),
        (("--by-time", "day", "--decompress"), "--by-time and --decompress exclude each other"),
        (("--compaction",), "--compaction goes with --space"),
        (("--retention-ms", 0), "--retention-ms goes with --space"),
        (("--space", "--roll"), "--roll goes with --compaction"),
        (("--space", "--min-compaction-lag-ms", 3), "--min-compaction-lag-ms goes with --compaction"),
        (("--space", "--now", 3), "--now goes with --compaction, --retention-ms or --retention-bytes"),
        (("--key-memory", 3), "--key-memory goes with --keys or --top-keys"),
        (("--space", "--retention-bytes", -1), "-1 is not in the range"),
        (("--top-keys", 0), "0 is not in the range"),
        (("--space", "--columns", "compacted_bytes"), "--columns compacted_bytes: --compaction"),
        (("--keys", "--columns", "key"), "table key_stats has no column 'key'"),
    ):
        done = kraftlog_command("stats", LOG, *words)
        assert done.returncode == 2, words
        assert text in done.stderr
