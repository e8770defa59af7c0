"""The options of kafka-dump-log that ``kraftlog dump`` takes; tests/interop/test_dump.py compares all with Kafka's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from golden_files import GOLDEN, lines

LOG = f"{0:020}.log"
NO_KEY = "the message has no key, which the decoder needs"


@pytest.mark.parametrize(
    ("topic", "option"),
    [("consumer_offsets", "--offsets-decoder"), ("transaction_state", "--transaction-log-decoder")],
)
def test_records_of_coordinators(kraftlog_command: Callable[..., object], topic: str, option: str):
    """Kafka's text ends at a record without a key; kraftlog reports it and goes on."""
    folder = GOLDEN / "coordinator_future"
    done = kraftlog_command("dump", option, f"log/__{topic}-0/{LOG}", cwd=folder)
    printed = (folder / "expected" / f"dump_{topic}.txt").read_text().partition("exit status")[0]
    assert printed.count("Error at offset") > 2
    assert done.stdout.startswith(printed)
    assert done.returncode == 1
    assert NO_KEY in done.stderr


def test_metadata_of_remote_segments(kraftlog_command: Callable[..., object]):
    folder = GOLDEN / "remote_log_metadata"
    expected = [
        answer.get("to_string") or f"Error at offset {answer['offset']}, skipping. {answer['error_message']}"
        for answer in lines(folder / "expected" / "remote_log_metadata.jsonl")
    ]
    log = folder / "log" / "__remote_log_metadata-0" / LOG
    done = kraftlog_command("dump", "--remote-log-metadata-decoder", "--skip-record-metadata", log)
    found = [line.removeprefix("| payload: ") for line in done.stdout.splitlines() if line.startswith("|")]
    assert found == expected
    assert len(found) > 20


def test_files_with_commas(kraftlog_command: Callable[..., object]):
    folder = GOLDEN / "transactions" / "log" / "orders-0"
    paths = [folder / LOG, folder / f"{0:020}.index"]
    plain = kraftlog_command("dump", *paths)
    assert kraftlog_command("dump", "--files", ",".join(map(str, paths))) == plain
    assert plain.stdout.count("Dumping ") == 2


def test_no_more_than_max_bytes(kraftlog_command: Callable[..., object]):
    """Whole batches count; what is left out is no torn tail."""
    log = GOLDEN / "transactions" / "log" / "orders-0" / LOG
    whole = kraftlog_command("dump", log).stdout.splitlines()
    done = kraftlog_command("dump", "--max-bytes", 1000, log)
    assert done.stdout.splitlines() == whole[:3]
    assert done.returncode == 0


def test_refusals(kraftlog_command: Callable[..., object]):
    nothing = kraftlog_command("dump")
    assert (nothing.returncode, "name paths, or give --files" in nothing.stderr) == (2, True)
    log = GOLDEN / "transactions" / "log" / "orders-0" / LOG
    other = kraftlog_command("dump", "--value-decoder-class", "com.example.Decoder", log)
    assert (other.returncode, other.stdout) == (2, "")
    assert "'com.example.Decoder' is not one of" in other.stderr


def test_files_that_cannot_be_dumped(kraftlog_command: Callable[..., object], tmp_path: Path):
    """One that is damaged is a fault, one of another kind is left out, and the next one is dumped all the same."""
    (tmp_path / f"{5:020}.snapshot").write_bytes(b"\x00\x01" + bytes(10))
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n0\n")
    log = GOLDEN / "transactions" / "log" / "orders-0" / LOG
    done = kraftlog_command("dump", *sorted(tmp_path.iterdir()), log)
    assert done.returncode == 1
    assert f"Ignoring unknown file {tmp_path / 'leader-epoch-checkpoint'}" in done.stderr
    assert "bad_snapshot" in done.stderr
    assert "baseOffset: 0" in done.stdout


def test_an_index_without_its_log(kraftlog_command: Callable[..., object], tmp_path: Path):
    """Its entries are printed; that they were not compared is told."""
    source = GOLDEN / "transactions" / "log" / "orders-0" / f"{0:020}.index"
    (tmp_path / source.name).write_bytes(source.read_bytes())
    done = kraftlog_command("dump", tmp_path / source.name)
    assert done.stdout.splitlines()[1:] == kraftlog_command("dump", source).stdout.splitlines()[1:]
    assert f"not compared with {LOG}, which is not beside it" in done.stderr
    assert done.returncode == 1


def test_what_a_broker_checks(kraftlog_command: Callable[..., object]):
    """It makes a preallocated time index anew, and takes the one of a clean shutdown."""
    clean, live = (GOLDEN / name / "log" / "orders-0" for name in ("transactions", "transactions_live"))
    last = sorted(clean.glob("*.timeindex"))[-1].name
    done = kraftlog_command("dump", "--index-sanity-check", clean / last)
    assert done.stdout.splitlines()[1:] == [f"{clean / last} passed sanity check."]
    refused = kraftlog_command("dump", "--index-sanity-check", live / last)
    assert refused.returncode == 1
    assert "the last timestamp 0 is less than the first one" in refused.stderr
