"""``kraftlog shell`` on real logs: where it looks for one, scripts, exit codes, and what it shows of transactions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from golden_files import GOLDEN

LOG = GOLDEN / "metadata" / "log"
FOLDER = LOG / "__cluster_metadata-0"
SNAPSHOT = FOLDER / "00000000000000000207-0000000002.checkpoint"
TRANSACTIONS = GOLDEN / "metadata_txn"


def topics(answer: str) -> list[str]:
    return [name for name in answer.splitlines() if not name.startswith("offset ")]


@pytest.mark.parametrize("directory", [LOG, FOLDER], ids=["log directory", "partition"])
def test_a_script(kraftlog_command, directory: Path):
    """Commands one after the other, in one session."""
    lines = ["cd /topics/byName/meta-0", "cat name", "at 85", "cat /features/metadataVersion", "pwd"]
    done = kraftlog_command("shell", directory, *(word for line in lines for word in ("-c", line)))
    name, moved, version, place = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert (name, version, place) == ("meta-0", "Optional[4.0-IV3]", "/image/topics/byName/meta-0")
    assert moved.startswith("offset 85, epoch 1, time 2026-11-21T")


def test_a_snapshot(kraftlog_command):
    """A .checkpoint alone is the image of the record before the offset in its name."""
    snapshot = kraftlog_command("shell", SNAPSHOT, "-c", "tree /topics", "-c", "tree /configs").stdout
    assert (
        snapshot == kraftlog_command("shell", FOLDER, "--at", 206, "-c", "tree /topics", "-c", "tree /configs").stdout
    )
    assert snapshot.count("PartitionRegistration(") > 50


def test_commands_from_standard_input(kraftlog_command):
    """Without a prompt; what is behind exit is not run."""
    done = kraftlog_command("shell", LOG, given="cd /topics\n\npwd\nexit\npwd\n")
    assert (done.returncode, done.stdout) == (0, "/image/topics\n")


def test_a_command_that_fails(kraftlog_command):
    """The others are run all the same."""
    done = kraftlog_command("shell", LOG, "-c", "cat /nothing", "-c", "cat /features/finalized_share.version")
    assert (done.returncode, done.stdout) == (1, "1\n")
    assert done.stderr == "cat: /nothing: No such file or directory.\n"


def test_secrets(kraftlog_command):
    """Shown when they are asked for."""
    line = "cat /scram/SCRAM-SHA-256/alice"
    assert "salt=[redacted]" in kraftlog_command("shell", LOG, "-c", line).stdout
    shown = kraftlog_command("shell", LOG, "--show-secrets", "-c", line).stdout
    assert shown.startswith("ScramCredentialData(salt=66697865642073616c74206f6e65, ")


def test_wrong_usage(kraftlog_command, tmp_path: Path):
    """No such folder, one without a metadata log, and a history file in a folder that is read."""
    assert kraftlog_command("shell", tmp_path / "nothing", "-c", "ls").returncode == 2
    done = kraftlog_command("shell", GOLDEN / "transactions" / "log", "-c", "ls")
    assert done.returncode == 2
    assert "no metadata log in it" in done.stderr
    done = kraftlog_command("shell", LOG, "--history-file", LOG / "history", "-c", "ls")
    assert done.returncode == 2
    assert not (LOG / "history").exists()


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "case",
    [
        *("committed_many_batches", "two_committed_same_batch", "aborted_own_batch", "abort_then_records_same_batch"),
        *("aborted_and_committed_same_batch", "controller_failover", "open_at_end", "records_before_begin"),
    ],
)
def test_no_part_of_a_transaction_is_shown(kraftlog_command, case: str):
    """At no offset: a topic is there from the end of its transaction on, or never."""
    answer = json.loads((TRANSACTIONS / case / "expected" / "expected.json").read_text())
    created = [record for record in answer["records"] if record["type"] == "TopicRecord"]
    offsets = [record["offset"] for record in answer["records"]]
    tried = offsets if len(offsets) < 60 else [*offsets[:20], *offsets[-20:]]
    script = [word for offset in tried for word in ("-c", f"at {offset}", "-c", "ls /topics/byName", "-c", "pwd")]
    done = kraftlog_command("shell", TRANSACTIONS / case / "log", *script)
    shown = [topics(part) for part in done.stdout.split("/\n")[:-1]]
    assert len(shown) == len(tried)
    for offset, names in zip(tried, shown, strict=True):
        visible = {r["topic"] for r in created if r["visible_at"] is not None and r["visible_at"] <= offset}
        assert set(names) == visible, f"at {offset}"
