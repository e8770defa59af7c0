"""Where the rows of a command go: the format follows the file's ending, and no file is lost or half-written."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kraftlog
from pseudo_terminal import PseudoTerminal

GOLDEN = Path(__file__).parents[1] / "golden"
PARTITION = GOLDEN / "codecs" / "log" / "codec-lz4-0"
METADATA = GOLDEN / "metadata" / "log"
DAMAGED = GOLDEN / "damaged" / "bit_flip_payload" / "log"
OFFSETS = list(range(751))

Command = Callable[..., Any]
READERS: dict[str, Callable[[Path], list[int]]] = {
    "r.jsonl": lambda path: [json.loads(line)["offset"] for line in path.read_text().splitlines()],
    "r.ndjson": lambda path: [json.loads(line)["offset"] for line in path.read_text().splitlines()],
    "r.csv": lambda path: [int(line) for line in path.read_text().splitlines()[1:]],
    "r.txt": lambda path: [int(line) for line in path.read_text().splitlines()[1:]],
    "r.parquet": lambda path: pq.read_table(path)["offset"].to_pylist(),
    "r.arrow": lambda path: pa.ipc.open_file(path.read_bytes()).read_all()["offset"].to_pylist(),
    "r.arrows": lambda path: pa.ipc.open_stream(path.read_bytes()).read_all()["offset"].to_pylist(),
}


@pytest.mark.parametrize("name", READERS)
def test_the_ending_is_the_format(kraftlog_command: Command, tmp_path: Path, name: str):
    done = kraftlog_command("records", PARTITION, "--columns", "offset", "--output", tmp_path / name)
    assert (done.returncode, done.stdout) == (0, "")
    assert READERS[name](tmp_path / name) == OFFSETS
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_endings_of_commands_with_a_format_of_their_own(kraftlog_command: Command, tmp_path: Path):
    shown = kraftlog_command("image", METADATA)
    for name in ("i.json", "image"):
        assert kraftlog_command("image", METADATA, "--output", tmp_path / name).returncode == 0
        assert (tmp_path / name).read_text() == shown.stdout
    done = kraftlog_command("image", METADATA, "--type", "TopicRecord", "--output", tmp_path / "topics.jsonl")
    assert done.returncode == 0
    names = [json.loads(line)["name"] for line in (tmp_path / "topics.jsonl").read_text().splitlines()]
    assert "meta-0" in names
    shown = kraftlog_command("diff", METADATA, "--from", 85)
    assert kraftlog_command("diff", METADATA, "--from", 85, "--output", tmp_path / "d.txt").returncode == 0
    assert (tmp_path / "d.txt").read_text() == shown.stdout


def test_an_ending_without_a_format_is_refused(kraftlog_command: Command, tmp_path: Path):
    done = kraftlog_command("records", PARTITION, "--output", tmp_path / "r.dat")
    assert done.returncode == 2
    assert "expected a name that ends in .txt, .jsonl" in done.stderr
    assert kraftlog_command("records", PARTITION, "--format", "csv", "--output", tmp_path / "r.dat").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("records", PARTITION),
        ("verify", PARTITION),
        ("stats", PARTITION),
        ("recover", PARTITION),
        ("downgrade", METADATA, "--to", "3.9"),
        ("health", METADATA),
        ("image", METADATA),
        ("image", METADATA, "--type", "TopicRecord"),
        ("diff", METADATA, "--from", 85),
    ],
    ids=lambda words: " ".join(str(word) for word in words if not isinstance(word, Path)),
)
def test_an_existing_file_is_replaced_on_request_only(
    kraftlog_command: Command, tmp_path: Path, arguments: tuple[object, ...]
):
    output = tmp_path / "out.csv"
    if arguments[0] in ("image", "diff") and len(arguments) != 4:
        output = tmp_path / "out.json"
    output.write_text("mine")
    done = kraftlog_command(*arguments, "--output", output)
    assert done.returncode == 2
    assert f"--output {output} exists; --force replaces it" in done.stderr
    assert output.read_text() == "mine"
    kraftlog_command(*arguments, "--output", output, "--force")
    assert output.read_text() != "mine"


@pytest.mark.parametrize("form", ["parquet", "arrow", "jsonl", "csv", "table"])
def test_nothing_half_written_stays(
    kraftlog_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
):
    """With ``--strict`` rows before the fault were written when it was found. The fault is the only message."""
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    output = tmp_path / "out"
    arguments = ("records", DAMAGED, "--format", form, "--output", output)
    done = kraftlog_command(*arguments, "--strict")
    assert done.returncode == 1
    assert done.stderr.startswith("kraftlog: ")
    assert "stored crc" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
    output.write_text("mine")
    assert kraftlog_command(*arguments, "--strict", "--force").returncode == 1
    assert output.read_text() == "mine"
    gc.collect()
    assert unraisable == []


def test_no_such_folder(kraftlog_command: Command, tmp_path: Path):
    done = kraftlog_command("records", PARTITION, "--output", tmp_path / "a" / "r.csv")
    assert done.returncode == 2
    assert f"there is no folder {tmp_path / 'a'}" in done.stderr


def test_devices_are_written_as_they_are(kraftlog_command: Command):
    assert kraftlog_command("records", PARTITION, "--output", "/dev/null").returncode == 0
    assert not Path("/dev/null").is_file()


def test_a_torn_tail_is_named(kraftlog_command: Command):
    done = kraftlog_command("verify", GOLDEN / "damaged" / "truncated_in_last_records" / "log")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "t-0/00000000000000000000.log: 210 bytes at byte 815, the end of the file, hold no complete batch;"
        " a broker that recovers the log cuts them off, and `kraftlog recover` shows it",
        "1025 bytes in 1 segment: no errors",
    ]
    notes: list[str] = []
    assert list(kraftlog.open(PARTITION).verify(notes=notes)) == []
    assert notes == []


def test_an_interrupt_is_one_line(tmp_path: Path):
    """An interrupt while rows are written: nothing of the file stays."""
    code = (
        "import os, signal, sys\n"
        "from kraftlog.cli import main, output\n"
        "output.WantedRows.write = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "main()"
    )
    arguments = ["records", str(PARTITION), "--output", str(tmp_path / "r.csv")]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "\nkraftlog: interrupted\n"  # on a terminal the first line has the ^C
    assert list(tmp_path.iterdir()) == []


def test_bytes_are_not_for_a_terminal():
    with PseudoTerminal("from kraftlog.cli import main; main()", "records", str(PARTITION), "--format", "arrow") as at:
        at.wait_for("--format arrow is not for a terminal; give --output, or a pipe")
        assert at.end() == 2


def test_demo_leaves_what_is_not_its_own(kraftlog_command: Command, tmp_path: Path):
    """It says so at once, without a table, and without Spark."""
    (tmp_path / "keep.txt").write_text("mine")
    done = kraftlog_command("demo", "--spark", "--output", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path / 'keep.txt'}: not a file of an export" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["keep.txt"]


def on_terminal(*arguments: str, columns: int = 200) -> list[str]:
    """Return the lines that a command shows on a terminal."""
    with PseudoTerminal("from kraftlog.cli import main; main()", *arguments, columns=columns) as at:
        return at.rest().splitlines()


def test_a_terminal_shows_the_first_rows():
    lines = on_terminal("records", str(PARTITION), "--columns", "offset")
    assert [int(line) for line in lines[1:101]] == OFFSETS[:100]
    assert lines[101:] == [
        "the first 100 rows, and there are 651 more: --all shows all, --limit N other numbers, --tail N the last"
    ]
    assert [int(line) for line in on_terminal("records", str(PARTITION), "--columns", "offset", "--all")[1:]] == OFFSETS
    lines = on_terminal("records", str(PARTITION), "--columns", "offset", "--limit", "150")
    assert [int(line) for line in lines[1:]] == OFFSETS[:150]


@pytest.mark.parametrize("count", [0, 1, 300, 751, 900])
def test_the_last_rows(kraftlog_command: Command, count: int):
    done = kraftlog_command("records", PARTITION, "--columns", "offset", "--format", "jsonl", "--tail", count)
    found = [json.loads(line)["offset"] for line in done.stdout.splitlines()]
    assert found == OFFSETS[max(0, len(OFFSETS) - count) :]


def test_first_and_last_rows_exclude_each_other(kraftlog_command: Command):
    done = kraftlog_command("records", PARTITION, "--limit", 3, "--tail", 3)
    assert done.returncode == 2
    assert "--limit, --tail and --all exclude each other" in done.stderr
