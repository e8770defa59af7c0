"""The next command of every finding runs as it is printed, and shows something."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from small_cluster import SmallCluster
from test_cluster import OTHER_ID, cut_metadata_log, second
from test_loss_ledger import with_leader
from test_lost_markers import Failover
from test_side_files import damage_index, empty_txnindex

import kraftlog
from audit_replicas import batch, replica
from command_line import run_command
from golden_files import GOLDEN
from golden_releases import folder_of
from kraftlog.layout.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS
from segments_of_transactions import with_other_marker
from stopped_broker import Broker

ENDS_WITH_FAULTS = {"audit", "verify"}  # exit with 1 for what they show
NEXT_YEAR = int(time.time() * 1000) + 365 * 86_400_000
ORDERS = "orders-0"


def torn(home: Path) -> list[object]:
    log = shutil.copytree(GOLDEN / "transactions" / "log", home / "a log")
    with_other_marker(log, "orders-1", 1)
    return [log]


def producers(home: Path) -> list[object]:
    cluster = SmallCluster(home)
    for sequence in (0, 5, 0):
        cluster.data("t-0", 1, 1, sequence=sequence, values=("same",))
    cluster.marker("t-0", 1, 2)
    cluster.marker("t-0", 1, 1)
    cluster.data("t-0", 1, 0)
    cluster.data("t-1", 2, 0, sequence=7, transactional=False)
    cluster.data("t-1", values=("same",), at=9)
    cluster.data("t-1", values=("same",), at=9)
    cluster.commit("t-0", 50)
    cluster.commit("t-0", 3)
    cluster.marker("t-0", 9, 0)
    cluster.marker("t-1", 9, 0, coordinator=2)
    cluster.marker("t-1", 9, 0, coordinator=1)
    cluster.state(0, 1, 0, at=0)
    return [cluster.write()]


def replicas(home: Path) -> list[object]:
    one = replica(home / "1", (0, [batch(0, 4, "a"), batch(1, 4, "b"), batch(2, 4, "c"), batch(3, 4, "d")]), node=1)
    two = replica(home / "2", (0, [batch(0, 4, "a"), batch(1, 4, "B"), batch(3, 4, "d")]), node=2)
    return [one, two]


def lost(home: Path) -> list[object]:
    one = replica(home / "1", (0, [batch(0, 4, "a"), batch(1, 6, "b")]), node=1)
    marks = {HIGH_WATERMARKS: "0\n1\norders 0 2\n", CLEANER_OFFSETS: "0\n0\n"}
    two = replica(home / "2", (0, [batch(0, 4, "a"), batch(1, 5, "x"), batch(2, 5, "y")]), node=2, checkpoints=marks)
    return [one, two, with_leader(home / "controller", 1, 6)]


def lost_commit(home: Path, kind: str = "COMMIT") -> list[object]:
    failover = Failover(home)
    failover.complete(kind)
    failover.lose(kind)
    failover.findings()
    return [home / name for name in ("1", "2", "100")]


def lost_abort(home: Path) -> list[object]:
    return lost_commit(home, "ABORT")


def stopped(home: Path) -> list[object]:
    log = Path(shutil.copytree(folder_of("3.9.1", "clean") / "log", home / "log"))
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_START_OFFSETS, CLEANER_OFFSETS):
        (log / name).write_text("0\n3\ntrimmed 0 99\norders 1 66\nplain 0 300\n")
    shutil.rmtree(log / "orders-1")
    damage_index(log)
    empty_txnindex(log)
    (log / "trimmed-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}\n")
    return [log]


def without_log_files(home: Path) -> list[object]:
    logs = [Path(shutil.copytree(folder_of("3.9.1", "clean") / "log", home / name)) for name in "12"]
    for path in (logs[0] / "orders-1").glob("*.log"):
        path.unlink()
    return [*logs]


def two_brokers(home: Path) -> list[object]:
    broker = Broker(home / "1", {"orders": {}, "gone": {}})
    directories = [broker.directory_id, OTHER_ID]
    broker.change_partition("orders", replicas=[1, 2], isr=[1, 2], directories=directories)
    broker.change_partition("gone", replicas=[1, 2], isr=[1, 2], directories=[OTHER_ID, OTHER_ID])
    other = second(broker, home / "2")
    for one in (other / ORDERS).glob(f"{30:020d}.*"):
        one.unlink()
    shutil.rmtree(other / "gone-0")  # the other broker has it
    points = other / RECOVERY_POINTS
    assert "gone 0" in points.read_text()
    return [broker.path, other]


def kept(home: Path) -> list[object]:
    topics = {"orders": {"retention.ms": "1000"}, "tables": {"cleanup.policy": "compact"}}
    return [Broker(home / "1", topics).path]


def cut_off(home: Path) -> list[object]:
    log = Path(shutil.copytree(folder_of("3.9.1", "clean") / "log", home / "log"))
    cut_metadata_log(log, 40)
    return [log]


def append_of_next_year(folder: Path) -> None:
    last = max(folder.glob("*.log"))
    end = kraftlog.open(folder).partitions[0].end_offset
    rows = pa.table({"value": [b"v"]})
    last.write_bytes(last.read_bytes() + bytes(kraftlog.encode(rows, base_offset=end, timestamp_ms=NEXT_YEAR)))


def tiered(home: Path) -> list[object]:
    logs = Path(shutil.copytree(GOLDEN / "remote_tier" / "logs", home / "logs"))
    tier = shutil.copytree(GOLDEN / "remote_tier" / "tier", home / "tier")
    for folder in logs.glob("*-0"):
        if not folder.name.startswith("__") and list(folder.glob("*.log")):
            append_of_next_year(folder)
    return [logs, "--remote-tier", tier]


def two_topics_of_a_name(home: Path) -> list[object]:
    ids = ["AAAAAAAAAAEAAAAAAAAAAQ", "AAAAAAAAAAEAAAAAAAAAAg"]
    for directory, topic_id in zip("12", ids, strict=True):
        folder = replica(home / directory, (0, [batch(0, 4, "a")])) / ORDERS
        append_of_next_year(folder)
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    other = replica(home / "3", (0, [batch(0, 4, "a")])) / ORDERS
    other.rename(home / "3" / "others-0")
    append_of_next_year(home / "3" / "others-0")
    (home / "3" / "others-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAw\n")
    return [home / "1", home / "2", home / "3", "--topic-id", ids[0]]


BROKEN: dict[Callable[[Path], list[object]], set[str]] = {
    torn: {"torn_transaction", "open_transaction"},
    producers: {"sequence_gap", "duplicate_batch", "producer_epoch_goes_back", "marker_epoch_goes_back"}
    | {"first_sequence_not_zero", "suspected_duplicate", "coordinator_epoch_goes_back", "commit_goes_back"},
    replicas: {"replicas_differ", "follower_lacks_records"},
    lost: {"lost_committed_records", "lost_records"},
    lost_commit: {"commit_marker_lost"},
    lost_abort: {"abort_marker_lost"},
    stopped: {
        "recovery_point_after_end",
        "high_watermark_after_end",
        "log_start_after_end",
        "index_mismatch",
        "txnindex_mismatch",
    }
    | {"cleaner_offset_after_end", "topic_id_mismatch", "missing_folder"},
    without_log_files: {"missing_log"},
    two_brokers: {"missing_folder", "isr_lacks_records", "offline_directory"},
    kept: {"segment_not_deleted", "cleaner_stopped"},
    cut_off: {"metadata_log_cut_off"},
    tiered: {"future_timestamp"},
    two_topics_of_a_name: {"future_timestamp"},
}


def next_commands(words: Sequence[object], cwd: Path) -> tuple[set[str], list[list[str]]]:
    """Return the codes that an audit finds, and the words of the commands that it names."""
    done = run_command("audit", *words, "--format", "jsonl", "--columns", "code,next_command", cwd=cwd)
    assert done.returncode in (0, 1), done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    commands = dict.fromkeys(row["next_command"] for row in rows if row["next_command"] is not None)
    return {row["code"] for row in rows}, [shlex.split(command) for command in commands]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_every_next_command_runs_and_shows_something(broken: Callable[[Path], list[object]], tmp_path: Path) -> None:
    codes, commands = next_commands(broken(tmp_path), tmp_path)
    assert codes >= BROKEN[broken]
    for program, name, *words in commands:
        assert program == "kraftlog"
        done = run_command(name, *words, cwd=tmp_path)
        assert done.returncode in ({0, 1} if name in ENDS_WITH_FAULTS else {0}), (name, words, done.stderr)
        assert done.stdout, (name, words, done.stderr)


def test_commands_name_the_directory_that_has_only_a_metadata_log(tmp_path: Path) -> None:
    """Without it nothing says who leads."""
    _, commands = next_commands([*lost(tmp_path), "-t", "orders"], tmp_path)
    assert commands
    assert all(str(tmp_path / "controller") in words for words in commands)


def test_commands_have_the_options_with_which_the_audit_was_called(tmp_path: Path) -> None:
    _, commands = next_commands(tiered(tmp_path), tmp_path)
    assert commands
    for words in commands:
        assert words[3:5] == ["--remote-tier", str(tmp_path / "tier")]
    done = run_command(*commands[1][1:], "--format", "jsonl")
    offsets = [json.loads(line)["base_offset"] for line in done.stdout.splitlines()]
    assert offsets[0] == 0  # of a segment that only the tier has
    _, commands = next_commands([tmp_path / "logs", "--remote-tier", "tier"], tmp_path)
    assert all(words[3:5] == ["--remote-tier", "tier"] for words in commands)
