"""Help: commands by task, and examples that run in any folder."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

import kraftlog.cli
from kraftlog.cli.tasks import MODULES, RARE, TASKS

Command = Callable[..., Any]

RUN_ELSEWHERE = ("demo", "sample", "replay", "serve", "broker")  # by tests of their own; replay needs a broker


def examples(text: str) -> list[str]:
    """Return the commands under Example: or Examples:, without the remarks beside them."""
    _, _, shown = re.split(r"(Examples?:\n)", text, maxsplit=1)
    lines = [line for line in shown.splitlines() if line.startswith(("    kraftlog", "  kraftlog"))]
    return [re.sub(r" {2,}\S.*$", "", line.strip()) for line in lines]


@pytest.fixture
def folder(kraftlog_command: Command, tmp_path: Path) -> Path:
    """Return a folder with the sample logs."""
    assert kraftlog_command("sample", tmp_path / "sample").returncode == 0
    return tmp_path


def test_all_commands_of_all_modules_have_a_task():
    for module, names in groupby(sorted(MODULES, key=MODULES.__getitem__), MODULES.__getitem__):
        found = importlib.import_module(f"kraftlog.cli.{module}").COMMANDS
        assert {command.name for command in found} == set(names)
    folder = Path(kraftlog.cli.__file__).parent
    having = [path for path in folder.rglob("*.py") if "\nCOMMANDS = [" in path.read_text()]
    assert {path.relative_to(folder).parts[0].removesuffix(".py") for path in having} == set(MODULES.values())
    assert sum(map(len, TASKS.values())) == len(MODULES)


def test_help_is_by_task(kraftlog_command: Command):
    text = kraftlog_command("--help", "--all").stdout
    headings = [line[:-1] for line in text.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)]
    tasks = ["Look", "Check", "Transactions", "Cluster", "Convert", "Write", "Repair", "Learn"]
    assert headings == ["Options", *TASKS] == ["Options", *tasks]
    flat = re.sub(r"\s+", " ", text)
    for name, (_, sentence) in (item for commands in TASKS.values() for item in commands.items()):
        assert f" {name} {sentence}" in flat
        assert re.fullmatch(r"[A-Z].*\.", sentence)
    first = re.sub(r"\s+", " ", kraftlog_command("--help").stdout)
    left_out = [name for name in MODULES if not re.search(rf" {name} [A-Z]", first)]
    assert sorted(left_out) == sorted(RARE)
    assert f"{', '.join(RARE)}; kraftlog --help --all lists them" in first.replace("- ", "-")
    assert kraftlog_command("--all", "-h").stdout == text
    assert kraftlog_command("--all").returncode == 2


def test_examples_of_the_first_page(kraftlog_command: Command, tmp_path: Path):
    found = examples(kraftlog_command("--help").stdout)
    assert found[0] == "kraftlog sample sample"
    assert len(found) >= 4
    for example in found:
        done = kraftlog_command(*shlex.split(example)[1:], cwd=tmp_path)
        assert done.returncode == ("sample/damaged" in example), done.stderr
        assert done.stdout, example


@pytest.mark.parametrize("name", [name for name in MODULES if name not in RUN_ELSEWHERE])
def test_examples_of_a_command(kraftlog_command: Command, folder: Path, name: str):
    text = kraftlog_command(name, "--help").stdout
    assert re.match(rf"Usage: kraftlog {name} .*\n\n  [A-Z]", text)
    found = examples(text)
    assert found
    if name == "schemas":  # no sample log has the topic of a registry
        value = {"subject": "orders-value", "version": 1, "id": 1, "schema": '"long"'}
        key = {"keytype": "SCHEMA", "subject": "orders-value", "version": 1, "magic": 1}
        with kraftlog.LogStore(folder / "backup") as store, store.producer() as producer:
            store.create_topic("_schemas")
            producer.send("_schemas", key=json.dumps(key), value=json.dumps(value))
    if name == "restore":  # no sample log has both metadata and partitions
        with kraftlog.LogStore(folder / "shop") as store, store.producer() as producer:
            store.create_topic("orders")
            producer.send("orders", value="first")
    for example in found:
        assert f"kraftlog {name}" in example
        assert "tests/" not in example
        if name == "pack":
            program = Path(sys.executable).parent / "kraftlog"
            pipeline = example.replace("kraftlog ", f"{program} ")
            subprocess.run(["bash", "-c", pipeline], cwd=folder, timeout=60, check=True)
            assert kraftlog.open(folder / "records.log").records().to_table().num_rows == 751
            continue
        if "--bootstrap-server" in example:
            continue  # the mock broker has no groups; tests/interop/test_live_restore.py runs it
        if name == "replay":
            example = f"{example.replace('localhost:9092', mock_broker('orders', 'copy'))} --timeout 2"
        done = kraftlog_command(*shlex.split(example)[1:], cwd=folder)
        if name == "report":
            assert done.returncode == 0, done.stderr
            assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")
            continue
        assert done.returncode == ("sample/damaged" in example), done.stderr
        assert done.stdout, example


_BROKERS: list[Producer] = []  # that run as long as the tests do


def mock_broker(*topics: str) -> str:
    """Start librdkafka's broker for tests; return where it listens."""
    _BROKERS.append(Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0}))
    for topic in topics:
        _BROKERS[-1].list_topics(topic)
    broker = next(iter(_BROKERS[-1].list_topics().brokers.values()))
    return f"{broker.host}:{broker.port}"


def test_as_a_module(tmp_path: Path):
    command = [sys.executable, "-m", "kraftlog", "segments", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: kraftlog segments [OPTIONS] PATHS...")


def test_a_command_that_is_not_there(kraftlog_command: Command):
    done = kraftlog_command("segmens")
    assert done.returncode == 2
    assert "there is no command 'segmens'; did you mean segments?" in done.stderr


def test_the_manual_page(kraftlog_command: Command):
    """Has every command, its options and its examples, and no line that means something else to man."""
    lines = kraftlog_command("man").stdout.splitlines()
    assert lines[0].startswith(".TH KRAFTLOG 1 ")
    headings = [line.split()[1] for line in lines if line.startswith(".SS ")]
    assert list(dict.fromkeys(headings)) == list(MODULES)  # a group is followed by its own commands
    macros = (".TH", ".ad l", ".nh", ".SH", ".SS", ".PP", ".TP", ".nf", ".fi", ".B ")
    assert [line for line in lines if line.startswith((".", "'")) and not line.startswith(macros)] == []
    text = "\n".join(lines).replace("\\-", "-").replace("\\e", "\\")
    for name in MODULES:
        assert all(example in text for example in examples(kraftlog_command(name, "--help").stdout))
    assert text.count("\\fB-h, --help\\fR") == len(headings)
