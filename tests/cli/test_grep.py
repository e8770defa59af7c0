"""``kraftlog grep``: the rows of ``kraftlog records`` that hold a text, in every form of output."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kraftlog
from golden_files import GOLDEN

Command = Callable[..., Any]
ORDERS = (GOLDEN / "transactions" / "log", "-t", "orders")


def rows(done: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_rows(kraftlog_command: Command, level: str):
    options = ("--isolation-level", level, "--binary", "hex", "--columns", "partition,offset,key,value")
    every = rows(kraftlog_command("records", *ORDERS, *options))
    text = b"lambda".hex()
    found = kraftlog_command("grep", *ORDERS, *options, "--value", "lambda")
    assert rows(found) == [row for row in every if text in (row["value"] or "")]
    assert rows(kraftlog_command("grep", *ORDERS, *options, "--value", "lambda", "-v")) == [
        row for row in every if text not in (row["value"] or "")
    ]
    either = kraftlog_command("grep", *ORDERS, *options, "--key", "TX-B", "--key", "tx-C", "-i", "--value", "SIGMA")
    assert rows(either) == [
        row
        for row in every
        if bytes.fromhex(row["key"] or "")[:4] in (b"tx-b", b"tx-c") and b"sigma".hex() in (row["value"] or "")
    ]
    assert found.returncode == 0


def test_counts(kraftlog_command: Command):
    every = rows(kraftlog_command("grep", *ORDERS, "--key", "-1"))
    expected = [
        {"topic": "orders", "partition": number, "records": sum(row["partition"] == number for row in every)}
        for number in range(3)
    ]
    assert rows(kraftlog_command("grep", *ORDERS, "--key", "-1", "--count")) == expected
    shown = kraftlog_command("grep", *ORDERS, "--key", "-1", "--count", "--columns", "records", "--format", "csv")
    assert shown.stdout.split() == ["records", *(str(row["records"]) for row in expected)]
    none = kraftlog_command("grep", *ORDERS, "--key", "nowhere", "--count")
    assert [row["records"] for row in rows(none)] == [0, 0, 0]


def test_output_bounds_and_formats(kraftlog_command: Command, tmp_path: Any):
    every = rows(kraftlog_command("grep", *ORDERS, "--value", "lambda", "--columns", "partition,offset"))
    some = kraftlog_command("grep", *ORDERS, "--value", "lambda", "--columns", "partition,offset", "-c", 3)
    assert rows(some) == every[:3]
    last = kraftlog_command("grep", *ORDERS, "--value", "lambda", "--columns", "partition,offset", "--tail", 3)
    assert rows(last) == every[-3:]
    late = kraftlog_command("grep", *ORDERS, "--value", "lambda", "--columns", "partition,offset", "-o", 60)
    assert rows(late) == [row for row in every if row["offset"] >= 60]
    formatted = kraftlog_command("grep", *ORDERS, "--value", "lambda", "-f", "%p:%o\\n")
    assert formatted.stdout.split() == [f"{row['partition']}:{row['offset']}" for row in every]
    kraftlog_command("grep", *ORDERS, "--value", "lambda", "--output", tmp_path / "found.parquet")
    assert pq.read_table(tmp_path / "found.parquet").select(["partition", "offset"]).to_pylist() == every


def test_damage_is_reported(kraftlog_command: Command):
    done = kraftlog_command("grep", GOLDEN / "damaged" / "bit_flip_payload" / "log", "--value", "nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert "stored crc 1973285820, computed crc 2762825390" in done.stderr


def test_wrong_usage(kraftlog_command: Command):
    for arguments, text in (
        ((), "nothing to search for: give a text and then paths"),
        (("--key", "(", "--regex"), "expression '(': missing )"),
        (("--json-path", "a[x]=1"), "found '[x]=1' at character 1"),
        (("--value", "a", "--key-partitions", 3), "--key-partitions requires --key-equals"),
        (("--key-equals", "a", "--key-partitions", 2), "--key-partitions 2: orders has a partition 2"),
        (("--key-equals", "a", "--key-partitions", 0), "0 is not in the range"),
        (("--value", "a", "--count", "--columns", "offset"), "table matches has no column 'offset'"),
    ):
        done = kraftlog_command("grep", *ORDERS, *arguments)
        assert done.returncode == 2, arguments
        assert text in done.stderr


def test_a_path_that_does_not_exist_is_named(kraftlog_command: Command):
    """With a text and no path that exists, either may be the one that is mistyped."""
    done = kraftlog_command("grep", "lambda", "no/such/log", "--count")
    assert (done.returncode, done.stdout) == (2, "")
    assert "expected one text and paths; there is no file or folder 'lambda' or 'no/such/log'" in done.stderr


def test_a_text_and_paths_in_both_orders(kraftlog_command: Command, tmp_path: Any):
    """The text is the one argument that is no path; what was understood is said. Nothing found is exit code 1."""
    log, options = GOLDEN / "transactions" / "log", ("--columns", "topic,partition,offset", "-t", "orders")
    expected = rows(kraftlog_command("grep", log, *options, "--value", "lambda"))
    first = kraftlog_command("grep", "lambda", log, *options)
    assert rows(first) == rows(kraftlog_command("grep", log, "lambda", *options)) == expected
    assert first.stderr == f"searching for 'lambda' in keys, values and headers of {log}\n"
    assert first.returncode == 0
    for more in ((), ("--count",), ("--count", "--columns", "topic")):
        assert kraftlog_command("grep", "nowhere at all", log, *options[2:], *more).returncode == 1
    assert kraftlog_command("grep", "lambda", log, "-t", "orders", "--count", "--columns", "topic").returncode == 0
    (tmp_path / "lambda").mkdir()
    for words in (("lambda", log), (log, log), (log,)):
        done = kraftlog_command("grep", *words, "-t", "orders", cwd=tmp_path)
        assert (done.returncode, "--text" in done.stderr) == (2, True)
    both = kraftlog_command("grep", log, "-e", "lambda", "--key", "tx-b", *options)
    assert rows(both) == rows(kraftlog_command("grep", "lambda", log, "--key", "tx-b", *options))
    assert 0 < len(rows(both)) < len(expected)
    bad = kraftlog_command("grep", log, "--key", "a", "--key-partitions", "3")
    assert "--key-partitions requires --key-equals" in bad.stderr


def written(folder: Path, values: list[bytes]) -> Path:
    partition = folder / "t-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(kraftlog.encode(pa.table({"value": values})))
    return partition


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("amonut", "amount"),
        ("$.amonut", "amount"),
        ("amonut>100", "amount"),
        ("custmer.id", "customer.id or customer"),
        ("items[0].skuu", "items[*].sku or items[*]"),
        ("items[*].skuu", "items[*].sku or items[*]"),
        ("['a.c']", "['a.b']"),
    ],
)
def test_a_path_that_no_value_has(kraftlog_command: Command, tmp_path: Path, path: str, near: str):
    """Names similar ones; values that are no JSON do not count."""
    value = b'{"amount": 5, "customer": {"id": "x"}, "items": [{"sku": 1}], "a.b": null}'
    done = kraftlog_command("grep", "--json-path", path, written(tmp_path, [b"none", value, value]))
    assert (done.returncode, done.stdout) == (1, "")
    name = path.partition(">")[0]
    assert f"none of the first 2 JSON values has the path {name!r}; did you mean {near}?" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--json-path", "amount=7"),  # a value has the path
        ("--json-path", "zzz"),  # nothing is similar
        ("--json-path", "amonut", "--redact", "value=mask"),  # names of fields are part of the value
        ("--value", "nothing"),
    ],
    ids=str,
)
def test_no_path_is_named(kraftlog_command: Command, tmp_path: Path, options: tuple[str, ...]):
    done = kraftlog_command("grep", *options, written(tmp_path, [b'{"amount": 5}']))
    assert done.returncode == 1
    assert "did you mean" not in done.stderr


def test_a_path_that_is_found_needs_no_other(kraftlog_command: Command, tmp_path: Path):
    done = kraftlog_command("grep", "--json-path", "amount=5", written(tmp_path, [b'{"amount": 5}']))
    assert (done.returncode, done.stderr) == (0, "")
