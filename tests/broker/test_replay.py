"""A replay that ends anywhere goes on: nothing is lost, nothing comes twice, and the mapping says where it all is."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_cluster import Cluster, FakeClient, Killed
from hypothesis import given
from hypothesis import strategies as st

import kraftlog
from faulty_disk import FaultyDisk, only
from golden_files import GOLDEN
from kraftlog.broker import replay as module
from kraftlog.broker import run
from kraftlog.broker.errors import NotDeliveredError
from kraftlog.broker.mapping import MAPPING, OffsetMapping, read_mapping, runs_of
from kraftlog.broker.pace import Pace
from kraftlog.broker.stretch import Stretch
from kraftlog.broker.uncut import Uncut
from kraftlog.disk.disk import Disk, use_disk
from kraftlog.tables.redaction import Redaction

LOG = GOLDEN / "transactions" / "log"
TOPIC = "orders"
COMMAND = [sys.executable, "-c", "from kraftlog.cli import main; main()"]


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    given = [*COMMAND, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Let replays go into a cluster in memory, a few records at a time."""
    found = Cluster()
    monkeypatch.setattr(module, "Client", lambda *given: found.client(*given))
    monkeypatch.setattr(run, "TRANSACTION_BYTES", 300)
    monkeypatch.setattr(run, "STEP_ROWS", 3)
    return found


def expected(**given: Any) -> dict[int, list[tuple[int, Any]]]:
    """Return offsets and records of each partition, as a consumer of the log gets them."""
    columns = ["partition", "offset", "key", "value", "timestamp_ms", "headers"]
    rows = kraftlog.open(LOG, topics=[TOPIC]).records(columns, isolation_level="read_committed", **given).to_table()
    found: dict[int, list[tuple[int, Any]]] = {0: [], 1: [], 2: []}
    for row in rows.to_pylist():
        headers = [(header["key"], header["value"]) for header in row["headers"]]
        found[row["partition"]].append((row["offset"], (row["key"], row["value"], row["timestamp_ms"], headers)))
    return found


def replayed(mapping: Path, **given: Any) -> kraftlog.broker.replay.Replay:
    return kraftlog.replay(LOG, "fake:9092", mapping, topics=[TOPIC], create_topics=True, **given)


def check(cluster: Cluster, mapping: Path, topic: str = TOPIC, **given: Any) -> None:
    """All records are there once, in their order, where the mapping says."""
    offsets = OffsetMapping(mapping)
    for partition, rows in expected(**given).items():
        there = cluster.committed((topic, partition))
        assert [row for _, row in there] == [row for _, row in rows]
        assert [offsets.target(TOPIC, partition, at) for at, _ in rows] == [(topic, at) for at, _ in there]


def test_whole(cluster: Cluster, tmp_path: Path):
    done = replayed(tmp_path / "m.csv")
    assert [one.records for one in done.partitions] == [len(rows) for rows in expected().values()]
    check(cluster, tmp_path / "m.csv")
    assert replayed(tmp_path / "m.csv").partitions[0].records == 0
    check(cluster, tmp_path / "m.csv")


def test_partitions_one_after_the_other(cluster: Cluster, tmp_path: Path):
    """One mapping serves several runs; where a partition ended stays when another one is replayed."""
    for partition in (0, 1, 2, 1):
        replayed(tmp_path / "m.csv", partitions=[partition])
        assert cluster.topics == {TOPIC: 3}
    check(cluster, tmp_path / "m.csv")


def test_bounds_and_a_new_name(cluster: Cluster, tmp_path: Path):
    replayed(tmp_path / "m.csv", start_offset=10, end_offset=90, rename={TOPIC: "new"})
    check(cluster, tmp_path / "m.csv", "new", start_offset=10, end_offset=90)


def test_transactions_are_not_cut(cluster: Cluster, tmp_path: Path):
    """What is committed together holds all records of each transaction in the partition."""
    replayed(tmp_path / "m.csv")
    found = kraftlog.open(LOG, topics=[TOPIC]).partition_transactions(
        ["partition", "state", "first_offset", "last_offset"]
    )
    offsets = OffsetMapping(tmp_path / "m.csv")
    for row in found.to_pylist():
        shown = {at for at, _ in expected()[row["partition"]]}
        if row["state"] == "committed" and {row["first_offset"], row["last_offset"]} <= shown:
            first, last = (offsets.target(TOPIC, row["partition"], row[f"{name}_offset"]) for name in ("first", "last"))
            assert first is not None
            assert last is not None
            between = cluster.log((TOPIC, row["partition"]))[first[1] : last[1] + 1]
            assert [state for _, state in between] == ["committed"] * len(between)


def steps_of(tmp_path: Path, cluster: Cluster, **given: Any) -> int:
    replayed(tmp_path / "count.csv", rename={TOPIC: "count"}, **given)
    steps, cluster.steps = cluster.steps, 0
    return steps


@pytest.mark.parametrize("side", [1, -1], ids=["before", "behind"])
@pytest.mark.parametrize("interrupts", [False, True])
def test_killed_at_every_step(
    cluster: Cluster, tmp_path: Path, side: int, interrupts: bool, sampled: Callable[..., list[int]]
):
    """The process ends before a step of the cluster is done, or behind it, and again at the next start."""
    cluster.interrupts = interrupts
    steps = steps_of(tmp_path, cluster)
    assert steps > 20
    for number in sampled(range(1, steps + 1), 8):
        mapping, topic = tmp_path / f"m{number}.csv", f"at-{number}"
        for at in (number, 3):
            cluster.steps, cluster.kills = 0, {side * at}
            with suppress(Killed):
                replayed(mapping, rename={TOPIC: topic})
        cluster.kills = set()
        replayed(mapping, rename={TOPIC: topic})
        check(cluster, mapping, topic)


def test_a_disk_that_fails_at_every_step(cluster: Cluster, tmp_path: Path):
    disk = FaultyDisk()
    with use_disk(disk):
        replayed(tmp_path / "count.csv", rename={TOPIC: "count"})
    assert len(disk.steps) > 20
    for step in disk.steps:
        mapping, topic = tmp_path / f"m{step.number}.csv", f"at-{step.number}"
        with use_disk(FaultyDisk(only(step.number))), suppress(OSError):
            replayed(mapping, rename={TOPIC: topic})
        replayed(mapping, rename={TOPIC: topic})
        check(cluster, mapping, topic)


def test_a_line_that_was_not_written_to_its_end(cluster: Cluster, tmp_path: Path):
    """The last transaction was not committed, and of its lines the disk has a part, or zeros."""
    for number, rest in enumerate([b"orders,0,99", b"orders,0,99,x,1,1\n", bytes(40), b"orders,2,3,\n\0\0\0"]):
        mapping, topic = tmp_path / f"m{number}.csv", f"at-{number}"
        cluster.steps, cluster.kills = 0, {12}
        with pytest.raises(Killed):
            replayed(mapping, rename={TOPIC: topic})
        if b"x" not in rest:
            mapping.write_bytes(mapping.read_bytes() + rest.replace(b",\n", b",at-3,5,5\n"))
        cluster.kills = set()
        replayed(mapping, rename={TOPIC: topic})
        check(cluster, mapping, topic)


def test_other_producers_in_the_same_partition(cluster: Cluster, tmp_path: Path):
    cluster.interrupts = True
    replayed(tmp_path / "m.csv")
    check(cluster, tmp_path / "m.csv")
    others = [entry for entry in cluster.log((TOPIC, 0)) if entry[1] == "other"]
    assert len(others) > 10


def test_a_record_that_is_too_large_is_named(cluster: Cluster, tmp_path: Path):
    large = max(expected()[0], key=lambda one: len(one[1][1] or b""))
    cluster.too_large = len(large[1][1]) - 1
    first = next(at for at, row in expected()[0] if len(row[1] or b"") > cluster.too_large)
    with pytest.raises(kraftlog.ReplayError, match=f"orders-0 did not accept the record of offset {first}: too large"):
        replayed(tmp_path / "m.csv")
    cluster.too_large = 1 << 30
    replayed(tmp_path / "m.csv")
    check(cluster, tmp_path / "m.csv")


def test_what_is_refused(cluster: Cluster, tmp_path: Path):
    mapping = tmp_path / "m.csv"
    with pytest.raises(kraftlog.ReplayError, match=r"does not have the topics orders \(3 partitions\)"):
        kraftlog.replay(LOG, "fake:9092", mapping, topics=[TOPIC])
    replayed(mapping)
    with pytest.raises(kraftlog.ReplayError, match="holds offsets 0 to"):
        replayed(tmp_path / "other.csv")
    with pytest.raises(ValueError, match=r"bounds none, this one has \{'end_offset': 5\}"):
        replayed(mapping, end_offset=5)
    with pytest.raises(ValueError, match="brokers do not accept records for it"):
        kraftlog.replay(LOG, "fake:9092", mapping, topics=["__consumer_offsets"])
    with pytest.raises(ValueError, match="rate"):
        replayed(mapping, rate="fast")
    assert [one.records for one in replayed(tmp_path / "again.csv", append=True).partitions] == [77, 35, 12]


def test_files_that_do_not_belong_together(cluster: Cluster, tmp_path: Path):
    mapping = tmp_path / "m.csv"
    replayed(mapping)
    whole, state = mapping.read_bytes(), mapping.with_name("m.csv.state")
    lines = whole.splitlines(keepends=True)
    mapping.write_bytes(b"".join(lines[:3]))
    with pytest.raises(ValueError, match="not the file that the last replay wrote"):
        replayed(mapping)
    mapping.unlink()
    with pytest.raises(ValueError, match="restore the file"):
        replayed(mapping)
    mapping.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="expected a first line source_topic"):
        replayed(mapping)
    mapping.write_bytes(whole)
    cluster.offsets.clear()
    with pytest.raises(ValueError, match="has no committed offset for orders-0"):
        replayed(mapping)
    state.write_text("{}")
    with pytest.raises(ValueError, match="is not the state of a replay"):
        replayed(mapping)
    state.unlink()
    with pytest.raises(ValueError, match="exists, but"):
        replayed(mapping)


def test_redacted(cluster: Cluster, tmp_path: Path):
    """What goes out is redacted, and a replay goes on with the same rules and the same key alone."""
    rules = {"redact": ["key=hash", "value.a=mask", "header.*=null"], "redact_key": b"0123456789abcdef"}
    redaction = Redaction(rules["redact"], rules["redact_key"])
    cluster.kills = {20}
    with pytest.raises(Killed):
        replayed(tmp_path / "m.csv", **rules)
    cluster.kills = set()
    for others in ({}, {**rules, "redact": ["key=null"]}, {**rules, "redact_key": b"x" * 16}):
        with pytest.raises(ValueError, match="is of a replay with redact"):
            replayed(tmp_path / "m.csv", **others)
    done = replayed(tmp_path / "m.csv", **rules)
    assert "are no JSON, and were redacted as a whole" in " ".join(done.notes)
    for partition, rows in expected().items():
        changed = []
        for _, (key, value, timestamp, headers) in rows:
            pairs = [(name.encode(), content) for name, content in headers]
            key, value, pairs = redaction.record((key, value, pairs))
            changed.append((key, value, timestamp, [(name.decode(), content) for name, content in pairs]))
        assert [row for _, row in cluster.committed((TOPIC, partition))] == changed


def test_without_some_keys(cluster: Cluster, tmp_path: Path):
    """The mapping leads to the next record that was sent, and a replay goes on with the same keys alone."""
    keys = {row[0] for _, row in expected()[0] if row[0] is not None}
    gone = sorted(keys)[::3]
    (tmp_path / "keys").write_text("".join(f"orders\tbase64:{b64encode(key).decode()}\n" for key in gone))
    cluster.kills = {15}
    with pytest.raises(Killed):
        replayed(tmp_path / "m.csv", exclude_keys=tmp_path / "keys")
    cluster.kills = set()
    with pytest.raises(ValueError, match="is of a replay with redact"):
        replayed(tmp_path / "m.csv")
    done = replayed(tmp_path / "m.csv", exclude_keys=tmp_path / "keys")
    assert any("were left out, since their keys are excluded" in note for note in done.notes)
    offsets = OffsetMapping(tmp_path / "m.csv")
    for partition, rows in expected().items():
        there = cluster.committed((TOPIC, partition))
        assert [row for _, row in there] == [row for _, row in rows if row[0] not in gone]
        assert len(there) < len(rows) or partition
        for at, _ in rows:
            left = [row for offset, row in rows if offset >= at and row[0] not in gone]
            _, target = offsets.target(TOPIC, partition, at)
            assert [row for offset, row in there if offset >= target] == left


def test_notes_of_settings(cluster: Cluster, tmp_path: Path):
    cluster.configs[TOPIC] = {
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": "1000",
        "cleanup.policy": "delete",
    }
    notes = " ".join(replayed(tmp_path / "m.csv").notes)
    assert "records get the time of the replay" in notes
    assert "retention.ms=1000" in notes
    assert "read_committed ends at offset 47" in notes


def test_records_that_were_left_out_are_counted(cluster: Cluster, tmp_path: Path):
    """Once for all partitions; with the records that were sent they are all that the log has."""
    done = replayed(tmp_path / "m.csv")
    every = kraftlog.open(LOG, topics=[TOPIC]).records(["offset"]).to_table().num_rows
    (note,) = [note for note in done.notes if note.startswith("read_committed: left out ")]
    assert (
        note == "read_committed: left out 54 records of aborted transactions and 29 records from open transactions on"
    )
    assert every - sum(one.records for one in done.partitions) == 54 + 29


def test_partitions_of_a_new_topic_are_those_of_the_metadata(cluster: Cluster, tmp_path: Path):
    """A log directory has folders of some partitions; without a metadata log only these are known."""
    with kraftlog.LogStore(tmp_path / "log") as store:
        store.create_topic("one", partitions=5)
        with store.producer() as producer:
            for partition in range(5):
                producer.send("one", value="v", partition=partition)
    for partition in (2, 3, 4):
        shutil.move(tmp_path / "log" / f"one-{partition}", tmp_path / f"other-{partition}")
    for number, some in enumerate([{}, {"partitions": [1]}, {"topics": ["one"]}]):
        done = kraftlog.replay(
            *(tmp_path / "log", "fake:9092", tmp_path / f"{number}.csv"),
            rename={"one": f"new-{number}"},
            create_topics=True,
            **some,
        )
        assert cluster.topics[f"new-{number}"] == 5
        assert not any("number of partitions" in note for note in done.notes)
    shutil.rmtree(tmp_path / "log" / "__cluster_metadata-0")
    done = kraftlog.replay(tmp_path / "log", "fake:9092", tmp_path / "m.csv", create_topics=True)
    assert cluster.topics["one"] == 2
    assert any("one: its number of partitions is taken from the folders, 2" in note for note in done.notes)


def test_reset_plan_through_a_mapping(cluster: Cluster, tmp_path: Path):
    """A group goes on with the first record that it had not read; an end stays an end."""
    with kraftlog.LogStore(tmp_path / "log") as store:
        for topic in ("one", "other"):
            store.create_topic(topic)
            with store.producer(topic) as producer:
                for begin in range(0, 6, 3):
                    with producer.transaction():
                        for number in range(begin, begin + 3):
                            producer.send(topic, value=f"{topic}-{number}")
        with store.producer("groups") as producer, producer.transaction():
            for group, offset in (("first", 0), ("middle", 5), ("marker", 3), ("end", 8)):
                producer.send_offsets_to_transaction({("one", 0): offset, ("other", 0): 1}, group=group)
    kraftlog.replay(
        *(tmp_path / "log", "fake:9092", tmp_path / "m.csv"), topics=["one"], rename={"one": "new"}, create_topics=True
    )
    done = command("offsets", tmp_path / "log", "--reset-plan", "--mapping", tmp_path / "m.csv")
    assert done.returncode == 0
    plan = {row[0]: row[1:] for row in csv.reader(done.stdout.splitlines())}
    there = dict(cluster.committed(("new", 0)))
    values = {group: there[int(row[2])][1] for group, row in plan.items() if group != "end"}
    assert values == {"first": b"one-0", "middle": b"one-4", "marker": b"one-3"}
    assert int(plan["end"][2]) == max(there) + 1
    assert done.stderr.count("other-0: the partition was not replayed") == 4
    lines = (tmp_path / "m.csv").read_bytes().splitlines(keepends=True)
    (tmp_path / "part.csv").write_bytes(b"".join(lines[:-1]))
    for path, message in (("part.csv", "was not finished"), ("log/meta.properties", "expected a first line")):
        done = command("offsets", tmp_path / "log", "--reset-plan", "--mapping", tmp_path / path)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    done = command("offsets", tmp_path / "log", "--mapping", tmp_path / "m.csv")
    assert (done.returncode, "--mapping is of --reset-plan" in done.stderr) == (2, True)


def test_threads_of_arrow_release_nothing_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Such a thread aborts a process that ends at this moment."""
    elsewhere, own = list[str](), threading.get_ident()

    class Text(bytes):
        def __getitem__(self, part: Any) -> Any:
            return Text(super().__getitem__(part))

        def __del__(self) -> None:
            if threading.get_ident() != own:
                elsewhere.append("bytes")

    class File(io.BytesIO):
        def __del__(self) -> None:
            if threading.get_ident() != own:
                elsewhere.append("file")

    monkeypatch.setattr(Disk, "read_bytes", lambda _, path: Text(path.read_bytes()))
    monkeypatch.setattr(io, "BytesIO", File)
    (tmp_path / "m.csv").write_text(",".join(MAPPING.names) + "\none,0,0,new,5,3\n")
    for _ in range(2000):  # of a file, a thread of Arrow has the last reference in one of ten to twenty
        assert read_mapping(tmp_path / "m.csv").num_rows == 1
    assert elsewhere == []


OFFSETS = st.lists(st.integers(0, 60), min_size=1, max_size=30, unique=True).map(sorted)


@given(OFFSETS, st.data())
def test_runs_say_where_each_record_is(source: list[int], data: st.DataObject):
    target = data.draw(
        st.lists(st.integers(0, 60), min_size=len(source), max_size=len(source), unique=True).map(sorted)
    )
    runs = runs_of("a", 0, np.array(source), "b", np.array(target))
    pairs = [(run.source_offset + i, run.target_offset + i) for run in runs for i in range(run.records_count)]
    assert pairs == list(zip(source, target, strict=True))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=8))
def test_where_a_stretch_may_end(found: list[list[int]]):
    """An offset is no end when a transaction has records on both sides."""
    offsets = np.arange(31)
    cut = [any(first <= at < last for first, last in found) for at in offsets.tolist()]
    uncut = Uncut([first for first, _ in found], [last for _, last in found])
    assert uncut.may_end(offsets).tolist() == [not one for one in cut]


@pytest.mark.parametrize(
    ("rate", "records", "size"),
    [("100", 100, None), (50, 50, None), ("10MB", None, 10**7), ("1KiB", None, 1024), ("2.5kB/s", None, 2500)],
)
def test_rates(rate: str | int, records: int | None, size: int | None, monkeypatch: pytest.MonkeyPatch):
    """Over a while no more is sent than the rate says."""
    now = 0.0
    monkeypatch.setattr("kraftlog.broker.pace.time.monotonic", lambda: now)

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    pace, amount = Pace(rate), records or size or 0
    for _ in range(40):
        pace.wait(amount // 10 if records else 1, amount // 10 if size else 1, pause)
    assert now == pytest.approx(3.9, rel=0.01)


@pytest.mark.parametrize("rate", ["0", "fast", "10XB", "-5", "", "MB"])
def test_rates_that_are_none(rate: str):
    with pytest.raises(ValueError, match="neither records per second"):
        Pace(rate)


def test_a_purged_record_does_not_hide_the_one_that_was_refused():
    """Librdkafka may report records that it drops first."""

    class Refused:
        def __init__(self, code: int, text: str) -> None:
            self.code, self.str = lambda: code, lambda: text

    client: Any = FakeClient(Cluster(), "fake:9092", "name")
    stretch = Stretch(client, ("orders", 0), is_exact=False)
    stretch._source.append(np.arange(7, 10))
    for number, error in ((0, Refused(-152, "Local: Purged in queue")), (2, Refused(10, "too large"))):
        stretch._delivered(number, error, None)
    text = "orders-0 did not accept the record of offset 9: too large"
    with pytest.raises(NotDeliveredError, match=text), stretch._named():
        raise NotDeliveredError
