"""What commands show on terminals of 80 and 200 columns: lines fit, and what people copy is whole."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from golden_files import GOLDEN
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.table_output import OWN_LINE, TableForPeople
from kraftlog.cli.tasks import MODULES
from pseudo_terminal import PseudoTerminal

Command = Callable[..., Any]
SHOWN = {
    "records": "codecs/log -t codec-lz4 -c 5",
    "grep": "transactions/log -t orders --key tx-b -c 5",
    "batches": "codecs/log -c 5",
    "topics": "transactions/log",
    "segments": "deleted_records/log",
    "replicas": "deleted_records/log",
    "messages": "metadata/log -c 9",
    "get-offsets": "transactions/log --topic-partitions orders:0-2",
    "sql": "transactions/log 'select * from orders limit 5'",
    "stats": "transactions/log",
    "index-entries": "transactions/log -c 5",
    "verify": "damaged/bit_flip_payload/log",
    "health": "metadata/log -c 5",
    "downgrade": "transactions/log --to 3.4.0",
    "transactions": "transactions/log -c 9",
    "why": "transactions/log -t orders --format table",
    "partition-transactions": "transactions/log -c 9",
    "hanging": "transactions_hanging/log",
    "last-stable-offsets": "transactions/log",
    "producers": "transactions/log",
    "transactional-ids": "transactions/log",
    "metadata-transactions": "metadata_txn/controller_failover/log",
    "groups": "groups/log",
    "offsets": "groups/log",
    "lag": "groups/log",
    "image": "metadata/log --type ConfigRecord -c 9",
    "diff": "metadata/log --from 85 --to 94 --format table",
    "changes": "metadata/log --to 150 --format table",
    "recover": "damaged/truncated_in_last_records/log",
}
NO_TABLES = {
    "audit": "no sample log has findings; has tests of its own",
    "dump": "prints what kafka-dump-log prints",
    "shell": "has tests of its own",
    "sample": "prints paths",
    "demo": "has tests of its own",
    "man": "prints what man reads",
    "pack": "writes a file",
    "report": "writes a page; has tests of its own",
    "export": "writes files",
    "extract": "writes files",
    "backup": "writes a repository",
    "restore": "writes files",
    "rescue": "writes files",
    "replay": "needs a broker",
    "serve": "runs until a signal; has tests of its own",
    "broker": "runs until a signal; has tests of its own",
    "store": "has tests of its own",
    "schemas": "no sample log has the topic of a registry; has tests of its own",
}
ON_SCREEN = "from kraftlog.cli import main; main()"
WITHOUT_ERRORS = f"import os; os.dup2(os.open(os.devnull, os.O_WRONLY), 2); {ON_SCREEN}"
COPIED = ("topic", "group", "error", "message", "command", "file", "path")
OWN = re.compile(rf"  ({'|'.join(OWN_LINE)}): ")


def arguments(command: str) -> list[str]:
    path, *options = shlex.split(SHOWN[command])
    return [command, str(GOLDEN / path), *options]


def test_all_commands_are_here():
    assert SHOWN.keys() | NO_TABLES.keys() == MODULES.keys()


@pytest.mark.parametrize("command", MODULES)
def test_options_fit_a_terminal_of_80_columns(kraftlog_command: Command, command: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, _, options = kraftlog_command(command, "--help").stdout.partition("\nOptions:\n")
    assert options
    assert [line for line in options.splitlines() if len(line) > 80] == []


@pytest.mark.sweep(6)
@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("command", SHOWN)
def test_rows_fit_and_what_is_copied_is_whole(kraftlog_command: Command, command: str, columns: int):
    with PseudoTerminal(WITHOUT_ERRORS, *arguments(command), columns=columns) as terminal:
        header, *lines = terminal.rest().splitlines()
    assert len(header) <= columns
    assert [line for line in lines if len(line) > columns and not OWN.match(line)] == []
    assert [line for line in lines if line != line.rstrip()] == []
    given = [word for word in arguments(command) if word not in ("--format", "table")]
    done = kraftlog_command(*given, "--format", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len([line for line in lines if not OWN.match(line)]) == len(rows) > 0
    text = "\n".join(lines)
    for row in rows:
        for name in COPIED:
            assert str(row.get(name) or "") in text
        assert [name for name in header.split() if name not in row] == []


def test_the_rest_of_the_columns_is_named(kraftlog_command: Command):
    names = kraftlog_command("batches", GOLDEN / "codecs" / "log", "-c", 1).stdout.splitlines()[0].split()
    with PseudoTerminal(ON_SCREEN, *arguments("batches"), columns=80) as terminal:
        header, *lines = terminal.rest().splitlines()
    assert [line for line in lines if len(line) > 80] == []
    last = " ".join(lines).partition("not shown")[2]
    left_out = ", ".join(name for name in names if name not in header.split())
    assert last == f" for want of width: {left_out}; --columns chooses, --full shows all"
    with PseudoTerminal(WITHOUT_ERRORS, *arguments("batches"), "--full", columns=80) as terminal:
        assert terminal.rest().splitlines()[0].split() == names


def test_the_more_important_columns_stay():
    with PseudoTerminal(WITHOUT_ERRORS, *arguments("messages"), columns=80) as terminal:
        header = terminal.rest().splitlines()[0].split()
    assert {"offset", "type", "value", "error"} <= set(header)
    assert "key_version" not in header


def test_sizes_and_times_are_for_people_on_a_terminal_alone(kraftlog_command: Command):
    words = ["segments", str(GOLDEN / "codecs" / "log"), "-t", "codec-lz4"]
    words += ["--columns", "size_in_bytes,max_timestamp,torn_bytes"]
    exact = [["32320", "2024-01-02T03:37:40.630Z", "0"], ["31990", "2024-01-02T21:44:31.677Z", "0"]]
    assert [line.split() for line in kraftlog_command(*words).stdout.splitlines()[1:]] == exact
    assert [line.split() for line in run(*words, "--full")[1:]] == exact
    assert [re.split("  +", line.strip()) for line in run(*words)[1:]] == [
        ["31.6 KiB", "2024-01-02 03:37:40", "0 B"],
        ["31.2 KiB", "2024-01-02 21:44:31", "0 B"],
    ]


def test_text_of_diff_fits(kraftlog_command: Command):
    for command in (["diff"], ["changes", "--fields"]):
        words = [*command, str(GOLDEN / "metadata" / "log"), "--from", "30", "--to", "94"]
        plain = kraftlog_command(*words).stdout
        with PseudoTerminal(WITHOUT_ERRORS, *words, columns=80) as terminal:
            shown = terminal.rest()
        assert max(map(len, shown.splitlines())) <= 80 < max(map(len, plain.splitlines()))
        assert shown.split() == plain.split()


def run(*words: str, **environment: str) -> list[str]:
    with PseudoTerminal(ON_SCREEN, *words, environment={"PAGER": "", **environment}) as terminal:
        return terminal.rest().splitlines()


def test_a_pager():
    words = ["segments", str(GOLDEN / "codecs" / "log"), "-t", "codec-lz4", "--columns", "base_offset"]
    plain = run(*words)
    assert [line.strip() for line in plain] == ["base_offset", "0", "341"]
    assert run(*words, PAGER="sed s/^/page:/") == [f"page:{line}" for line in plain]
    assert run(*words, PAGER="sed s/^/page:/", KRAFTLOG_PAGER="sed s/^/own:/") == [f"own:{line}" for line in plain]
    assert run(*words, PAGER="sed s/^/page:/", KRAFTLOG_PAGER="") == plain
    assert run(*words, PAGER="cat") == run(*words, PAGER="/no/such/pager -x") == plain


def test_a_pager_that_is_left():
    """Nobody reads the rest: the program ends, without an error; what it has to say comes behind."""
    words = ["records", str(GOLDEN / "codecs" / "log"), "--columns", "offset", "--all"]
    with PseudoTerminal(ON_SCREEN, *words, environment={"KRAFTLOG_PAGER": "head -n 2"}) as terminal:
        assert [line.strip() for line in terminal.rest().splitlines()] == ["offset", "0"]
        assert terminal.end() == 0
    words = ["verify", str(GOLDEN / "damaged" / "bit_flip_payload" / "log"), "--columns", "error"]
    assert run(*words, PAGER="sed s/^/page:/") == [
        "page:error",
        "page:bad_crc",
        "1032 bytes in 1 segment: 1 bad_crc",
    ]


def test_texts_are_paged_too_and_pipes_are_not(kraftlog_command: Command, monkeypatch: pytest.MonkeyPatch):
    words = ["diff", str(GOLDEN / "metadata" / "log"), "--from", "85", "--to", "94"]
    assert all(line.startswith("page:") for line in run(*words, PAGER="sed s/^/page:/"))
    monkeypatch.setenv("PAGER", "sed s/^/page:/")
    assert "page:" not in kraftlog_command(*words).stdout


@pytest.mark.parametrize("command", ["records", "messages"])
def test_records_are_json_lines_in_a_pipe(kraftlog_command: Command, command: str):
    piped = kraftlog_command(*arguments(command)).stdout
    assert piped == kraftlog_command(*arguments(command), "--format", "jsonl").stdout
    assert [json.loads(line)["offset"] for line in piped.splitlines()]
    table = kraftlog_command(*arguments(command), "--format", "table").stdout
    assert "offset" in table.splitlines()[0].split()


def test_a_shell_completes(kraftlog_command: Command, monkeypatch: pytest.MonkeyPatch):
    for words, expected in (
        ("kraftlog trans", ["plain,transactions", "plain,transactional-ids"]),
        ("kraftlog records --isolation-level read_c", ["plain,read_committed"]),
        ("kraftlog records --start-of", ["plain,--start-offset"]),
    ):
        monkeypatch.setenv("_KRAFTLOG_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        assert kraftlog_command().stdout.splitlines() == expected


@pytest.mark.parametrize(
    ("name", "value", "is_bold"),
    [("NO_COLOR", "", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False), ("TERM", "xterm", True)],
)
def test_what_the_terminal_can_do_is_heeded(name: str, value: str, is_bold: bool, monkeypatch: pytest.MonkeyPatch):
    class Screen(io.BytesIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(Screen()))
    screen, rows = Screen(), pa.record_batch({"a": [1]})
    table = TableForPeople(screen, rows.schema, "text", is_full=False)
    table.write(rows)
    table.close()
    assert (b"\x1b" in screen.getvalue()) == is_bold
    with progress_bar(1, wanted=True) as bar:
        assert (bar is None) == (value == "dumb")
