"""Options as kcat has them: -t, -p, -o, -c and -f, beside what Kafka's own consumer read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.schema import HEADERS
from pseudo_terminal import PseudoTerminal

Command = Callable[..., Any]
CODECS, BROKER = GOLDEN / "codecs", GOLDEN / "transactions"
ROWS = lines(CODECS / "expected" / "records.jsonl")
HIGH_WATERMARKS = {
    name: state["high_watermark"]
    for name, state in json.loads((BROKER / "expected" / "broker_state.json").read_text())["partitions"].items()
}


def of_partition(name: str) -> list[dict[str, Any]]:
    return [row for row in ROWS if f"{name}/" in row["file"] and row["control_type"] is None]


def size(data: str | None, row: dict[str, Any], name: str) -> int:
    return row.get(f"{name}_len", -1 if data is None else len(data) // 2)


@pytest.mark.parametrize("name", ["codec-lz4-0", "codec-none-0", "codec-mixed-0"])
def test_fields(kraftlog_command: Command, name: str):
    expected = [
        f"{name[:-2]} [0] {row['offset']} {row['timestamp']} {size(row['key'], row, 'key')}"
        f" {size(row.get('value'), row, 'value')} {bytes.fromhex(row['key'] or '').decode()}% |"
        for row in of_partition(name)
    ]
    arguments = ("-t", name[:-2], "-p", 0, "-f", r"%t [%p] %o %T %K %S %k%% \x7C\n")
    done = kraftlog_command("records", CODECS / "log", *arguments)
    assert done.returncode == 0
    assert done.stdout.splitlines() == expected != []


def test_headers(kraftlog_command: Command, tmp_path: Path):
    expected = [
        b",".join(
            key.encode() + b"=" + (b"NULL" if value is None else bytes.fromhex(value)) for key, value in row["headers"]
        )
        for row in of_partition("codec-none-0")
    ]
    assert any(b"," in text for text in expected)
    arguments = ("-f", r"%h\n", "--output", tmp_path / "headers")
    assert kraftlog_command("records", CODECS / "log" / "codec-none-0", *arguments).returncode == 0
    assert (tmp_path / "headers").read_bytes() == b"".join(text + b"\n" for text in expected)


def test_a_terminal_gets_no_control_characters(tmp_path: Path):
    path = tmp_path / "a.log"
    headers = [[{"key": "\x1b[2J", "value": b"\x07"}]]
    rows = pa.table({"value": [b"a\x1b[2Jb\xff\n"], "headers": pa.array(headers, HEADERS)})
    path.write_bytes(kraftlog.encode(rows).to_pybytes())
    code = "from kraftlog.cli import main; main()"
    with PseudoTerminal(code, "records", str(path), "-f", r"%s|%h\n") as terminal:
        assert terminal.rest() == "a\ufffd[2Jb\ufffd\ufffd|\ufffd[2J=\ufffd\n"


def test_values_are_written_as_they_are(kraftlog_command: Command, tmp_path: Path):
    """Bytes that are no text, and the length in front of each value that tells them apart."""
    output = tmp_path / "values"
    done = kraftlog_command("records", CODECS / "log" / "codec-none-0", "-f", "%R%s", "--output", output)
    assert done.returncode == 0
    data, found = output.read_bytes(), []
    while data:
        length = int.from_bytes(data[:4], "big", signed=True)
        found.append(None if length < 0 else data[4 : 4 + length])
        data = data[4 + max(length, 0) :]
    assert found == kraftlog.open(CODECS / "log" / "codec-none-0").records(["value"]).to_table()["value"].to_pylist()
    assert None in found
    assert [None if value is None else len(value) for value in found] == [
        None if size(row.get("value"), row, "value") < 0 else size(row.get("value"), row, "value")
        for row in of_partition("codec-none-0")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\t%o\\r\\n", "\t0\r\n"),
        ("a\\\\b%%%%%o", "a\\b%%0"),
        ("x\\q", "xq"),
        ("é %o", "é 0"),
        ("%o\\0", "0\0"),
        ("", ""),
    ],
)
def test_text_around_fields(kraftlog_command: Command, text: str, expected: str):
    assert kraftlog_command("records", CODECS / "log" / "codec-lz4-0", "-c", 1, "-f", text).stdout == expected


@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_the_last_offsets_of_each_partition(kraftlog_command: Command, count: int):
    arguments = ("-t", "orders", "-o", f"-{count}", "--include-control", "-f", r"%t-%p %o\n")
    done = kraftlog_command("records", BROKER / "log", *arguments)
    expected = [
        f"{name} {offset}"
        for name, end in sorted(HIGH_WATERMARKS.items())
        for offset in range(max(end - count, 0), end)
        if name.startswith("orders-")
    ]
    assert done.stdout.splitlines() == expected


def test_where_to_begin(kraftlog_command: Command):
    rows = of_partition("codec-lz4-0")
    offsets, middle = [row["offset"] for row in rows], sorted(row["timestamp"] for row in rows)[400]
    for arguments, expected in (
        (["-o", "beginning"], offsets),
        (["-o", "end"], []),
        (["-o", "745"], offsets[745:]),
        (["-o", "-3"], offsets[-3:]),
        (["-o", "-3", "--isolation-level", "read_committed", "-c", 2], offsets[-3:-1]),
        (["-o", f"s@{middle}"], [row["offset"] for row in rows if row["timestamp"] >= middle]),
        (["-o", "700", "-o", f"e@{middle}"], [r["offset"] for r in rows[700:] if r["timestamp"] < middle]),
        (["-o", "s@2024-01-02T00:00:00Z", "--tail", 1], offsets[-1:]),
    ):
        done = kraftlog_command("records", CODECS / "log" / "codec-lz4-0", *arguments, "-f", r"%o\n")
        assert done.returncode == 0
        assert [int(line) for line in done.stdout.splitlines()] == expected, arguments


def test_other_tables(kraftlog_command: Command):
    metadata = GOLDEN / "metadata" / "log"
    done = kraftlog_command("messages", metadata, "-o", "-2", "--columns", "offset", "--format", "csv")
    assert done.stdout == "offset\n521\n522\n"
    done = kraftlog_command("batches", BROKER / "log", "-o", "-1", "-t", "orders", "--columns", "last_offset")
    assert sorted(int(line) for line in done.stdout.splitlines()[1:]) == sorted(
        end - 1 for name, end in HIGH_WATERMARKS.items() if name.startswith("orders-")
    )
    done = kraftlog_command("changes", metadata, "--fields", "-t", "meta-0", "-c", 2, "--format", "jsonl")
    assert len(done.stdout.splitlines()) == 2


def test_damage_near_the_end_is_told_once(kraftlog_command: Command):
    log = GOLDEN / "damaged" / "bit_flip_payload" / "log"
    done = kraftlog_command("records", log, "-o", "-100", "-f", r"%o\n")
    assert done.returncode == 1
    assert done.stderr.count("bad_crc") == 1


def test_what_is_refused(kraftlog_command: Command):
    for arguments, text in (
        (["-f", "%o", "--format", "csv"], "-f says format and columns; --format and --columns do not go with it"),
        (["-f", "%o", "--columns", "offset"], "-f says format and columns; --format and --columns do not go with it"),
        (["-f", "%x"], "%x is not one of %s, %S, %R, %k, %K, %h, %t, %p, %o, %T, %%"),
        (["-f", "100%"], "ends with a single %; %% is a percent sign"),
        (["-o", "latest"], "'latest' is not beginning, end, N, -N, s@TIMESTAMP or e@TIMESTAMP"),
        (["-o", "s@soon"], "timestamp 'soon' is not a time such as"),
        (["-o", "1", "-o", "2"], "-o is given twice"),
        (["-o", "1", "-o", "-2"], "-o and another start offset exclude each other"),
        (["-o", "1", "--start-offset", 2], "-o and --start-offset exclude each other"),
    ):
        done = kraftlog_command("records", CODECS / "log" / "codec-lz4-0", *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert text in done.stderr
