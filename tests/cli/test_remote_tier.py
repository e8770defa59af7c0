"""``--remote-tier`` and ``--tier-key`` on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden_files import GOLDEN
from tier_writer import Aiven, KeyPair, last_only, sources, to_folder, write_local

Command = Callable[..., Any]
TOPIC_ID = "911PgdAUTfK0_8FSda0bUA"
ORDERS = GOLDEN / "transactions" / "log" / "orders-0"


@pytest.fixture(scope="module")
def tier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tier")
    key_pair = KeyPair("k1", root / "keys")
    Aiven(1000, compression=True, key_pair=key_pair).write(to_folder(root / "aiven"), sources(ORDERS), TOPIC_ID)
    write_local(to_folder(root / "local"), sources(ORDERS), TOPIC_ID)
    last_only(ORDERS, root / "logs")
    return root


@pytest.fixture
def options(tier: Path) -> tuple[str, ...]:
    return ("--remote-tier", str(tier / "aiven"), "--tier-key", f"k1={tier / 'keys' / 'k1.pem'}")


@pytest.mark.parametrize(
    "command",
    [
        ("records", "--binary", "hex", "--format", "jsonl"),
        ("grep", "--value", "omega", "--binary", "hex"),
        ("partition-transactions", "--format", "jsonl"),
        ("offsets",),
        ("get-offsets",),
        ("stats", "--format", "jsonl"),
    ],
    ids=lambda command: command[0],
)
def test_rows_of_the_whole_log(
    kraftlog_command: Command, tier: Path, options: tuple[str, ...], command: tuple[str, ...]
):
    name, *others = command
    whole = kraftlog_command(name, ORDERS.parent, "-t", "orders", "-p", "0", *others)
    joined = kraftlog_command(name, tier / "logs", *others, *options)
    assert whole.stdout or name == "offsets"
    assert joined.stdout == whole.stdout
    assert joined.returncode == whole.returncode


def test_without_paths(kraftlog_command: Command, tier: Path):
    done = kraftlog_command("segments", "--remote-tier", tier / "local", "--format", "jsonl")
    assert [json.loads(line)["base_offset"] for line in done.stdout.splitlines()] == [0, 32, 67]
    assert kraftlog_command("verify", "--remote-tier", tier / "local").returncode == 0


def test_sql(kraftlog_command: Command, tier: Path, options: tuple[str, ...]):
    query = 'select min("offset") as first, max("offset") as last from orders'
    for given, last in (((tier / "logs", query, *options), 129), ((query, *options), 101)):
        done = kraftlog_command("sql", *given, "--format", "jsonl")
        assert json.loads(done.stdout) == {"first": 0, "last": last}


def test_extract(kraftlog_command: Command, tier: Path, options: tuple[str, ...], tmp_path: Path):
    """What is in the tier can be had back as a log directory."""
    assert kraftlog_command("extract", tier / "logs", tmp_path / "copy", *options).returncode == 0
    shown = ("--format", "jsonl", "--binary", "hex")
    whole = kraftlog_command("records", ORDERS, *shown)
    assert kraftlog_command("records", tmp_path / "copy", *shown).stdout == whole.stdout
    assert kraftlog_command("verify", tmp_path / "copy").returncode == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "Missing argument 'PATHS...'"),
        (("sample", "--tier-key", "k1=k1.pem"), "--tier-key goes with --remote-tier"),
        (("--remote-tier", "x", "--tier-key", "k1.pem"), "'k1.pem' is not of the form NAME=FILE"),
        (("--remote-tier", "nowhere"), "nowhere"),
    ],
)
def test_wrong_usage(kraftlog_command: Command, given: tuple[str, ...], message: str):
    done = kraftlog_command("records", *given)
    assert done.returncode == 2
    assert message in done.stderr


def test_no_key(kraftlog_command: Command, tier: Path):
    done = kraftlog_command("records", "--remote-tier", tier / "aiven")
    assert done.returncode == 1
    assert "encrypted for the key pair 'k1': expected its private key, found keys for none" in done.stderr


def test_a_tier_of_aivens_plugin(kraftlog_command: Command):
    """Its segments are encrypted with two keys."""
    tier = GOLDEN / "aiven_tier"
    keys = [word for name in ("k1", "k2") for word in ("--tier-key", f"{name}={tier / 'keys' / name}.pem")]
    options = ("--end-offset", "102", "--binary", "hex", "--format", "jsonl")
    found = kraftlog_command("records", "--remote-tier", tier / "zstd-aes", *keys, *options)
    whole = kraftlog_command("records", ORDERS, *options)
    assert (found.returncode, found.stdout) == (0, whole.stdout)
    assert found.stdout
