"""Logs that grow, followed micro-batch by micro-batch without Spark, against a plain twin of their transactions."""

from __future__ import annotations

import logging
import random
import traceback
from itertools import pairwise
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from growing_log import GrowingPartition
from kraftlog.disk.remote_path import RemotePath
from kraftlog.read import log_ends
from kraftlog.spark.data_loss import DataLossError
from kraftlog.spark.follow import LogFollower
from kraftlog.spark.options import parse_request
from kraftlog.spark.stream_offsets import as_json, from_json
from micro_batches import Query
from spark_rows import folders

ORDERS = ("orders", 0)


def test_what_is_new_is_read_once(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    query = Query(tmp_path)
    assert query.run() == []
    for _ in range(3):
        first = log.model.next_offset
        log.append(4)
        log.append(3)
        assert query.run() == list(range(first, first + 7))
        log.roll()
        assert query.run() == []
    assert query.start == {"orders": {"0": 21}}


def test_latest_is_where_a_stream_starts(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    log.append(5)
    query = Query(tmp_path, startingOffsets="latest")
    assert query.run() == []
    log.append(2)
    assert query.run() == [5, 6]


def test_starting_offsets_and_timestamps(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    for second in range(5):
        log.model.data(-1, 2, transactional=False, timestamp_ms=second * 1000)
        log.complete()
    assert Query(tmp_path, startingOffsets='{"orders": {"0": 7}}').run() == [7, 8, 9]
    assert Query(tmp_path, startingTimestamp="2000").run() == [4, 5, 6, 7, 8, 9]
    assert Query(tmp_path, startingOffsetsByTimestamp='{"orders": {"0": 4000}}').run() == [8, 9]
    late = {"startingTimestamp": "5000", "startingOffsetsByTimestampStrategy": "latest"}
    assert Query(tmp_path, **late).start == {"orders": {"0": 10}}


def test_a_torn_batch_is_waited_for(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    log.append(2)
    log.append_torn(3)
    query = Query(tmp_path)
    assert query.run() == [0, 1]
    assert query.run() == []
    log.complete()
    assert query.run() == [2, 3, 4]


def test_a_bad_batch_at_the_end_is_waited_for(tmp_path: Path):
    """It may be one that is written out of order; what follows it shows that it is damage."""
    log = GrowingPartition(tmp_path)
    log.append(2)
    size = log.segment.stat().st_size
    log.append(3)
    good = log.segment.read_bytes()
    log.segment.write_bytes(good[:size] + good[size:-1] + bytes([good[-1] ^ 1]))
    queries = [Query(tmp_path), Query(tmp_path, onError="skip")]
    for query in queries:
        assert query.run() == [0, 1]
        assert query.run() == []
    log.append(1)
    with pytest.raises(kraftlog.CorruptRecordError, match="stored crc"):
        queries[0].run()
    assert queries[1].run() == [5]


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("ending", [b"", bytes(20), None])
def test_bad_batches_at_the_end_are_waited_for(tmp_path: Path, level: str, ending: bytes | None):
    """However many there are, also before a batch that is torn; only batches that may be bad are read for that."""
    log = GrowingPartition(tmp_path)
    log.append(2)
    for _ in range(3):
        log.append(3)
    log.append(1)
    good = log.segment.read_bytes()
    ends = [*log.model.boundaries[1:5], len(good)]
    bad = bytearray(good)
    for end in ends[1:4]:
        bad[end - 1] ^= 1
    bad = bad[: ends[3]] + (good[ends[3] : ends[3] + 30] if ending is None else ending)
    log.segment.write_bytes(bad)
    query = Query(tmp_path, isolationLevel=level)
    assert query.run() == [0, 1]
    log.segment.write_bytes(good)
    assert query.run() == list(range(2, 12))


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts bytes as Linux does")
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_the_driver_reads_headers(tmp_path: Path, level: str):
    """Of batches as producers send them by default, not a tenth of the bytes that were appended."""

    def read_bytes() -> int:
        return int(Path("/proc/self/io").read_text().partition("rchar: ")[2].split()[0])

    (tmp_path / "orders-0").mkdir()
    log = tmp_path / "orders-0" / f"{0:020d}.log"
    values = pa.table({"value": [b"%01000d" % number for number in range(16)]})
    query, written = None, 0
    for look in range(3):
        batches = [
            kraftlog.encode(values, base_offset=(look * 1000 + number) * 16, timestamp_ms=1).to_pybytes()
            for number in range(1000)
        ]
        with log.open("ab") as file:
            written += file.write(b"".join(batches))
        query = query or Query(tmp_path, isolationLevel=level)
        before = read_bytes()
        assert query.latest() == {("orders", 0): (look + 1) * 16_000}
        assert read_bytes() - before < len(batches) * 16_000 / 10
    assert written > 40_000_000


@pytest.mark.sweep(6)
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("field", [8, 16, 23, 70])  # of a batch: length, magic, last_offset_delta, a byte of records
@pytest.mark.parametrize("limit", [3, 40, None])
def test_damage_hides_nothing_else(tmp_path: Path, level: str, field: int, limit: int | None):
    log = GrowingPartition(tmp_path)
    query = Query(tmp_path, isolationLevel=level, rangeBytes="300", onError="skip")
    for number in range(60):
        log.append(2, number % 3)
        if number % 5 == 4:
            log.commit(number % 3)
        if number == 40:
            log.roll()
    for producer_id in range(3):
        log.abort(producer_id)
    first = min(log.folder.glob("*.log"))
    damaged = bytearray(first.read_bytes())
    for batch in (6, 30):
        damaged[log.model.boundaries[batch] + field] ^= 0x55
    first.write_bytes(damaged)
    assert query.latest() == {ORDERS: log.model.next_offset}
    while query.start != as_json(query.latest()):
        query.run(limit)
    expected = kraftlog.open(tmp_path).records(["offset"], isolation_level=level).to_table()["offset"].to_pylist()
    assert [offset for _, _, offset in query.seen] == expected


@pytest.mark.sweep(6)
@pytest.mark.parametrize("seed", range(20))
def test_random_logs(tmp_path: Path, seed: int):
    """Each visible offset is read once and in order, whatever rolls, tears, aborts and restarts come between."""
    chance = random.Random(seed)
    log = GrowingPartition(tmp_path)
    committed = Query(tmp_path, isolationLevel="read_committed", rangeBytes=chance.choice(["200", "1k", "64m"]))
    everything = Query(tmp_path, includeControl="true", minPartitions=str(chance.choice([1, 3])))
    steps = {
        lambda: log.append(chance.randint(1, 5)): 3,
        lambda: log.append(chance.randint(1, 5), chance.randint(0, 3)): 6,
        lambda: log.commit(chance.randint(0, 3)): 3,
        lambda: log.abort(chance.randint(0, 3)): 2,
        lambda: log.append_torn(chance.randint(1, 5)): 1,
        log.complete: 1,
        log.roll: 1,
        committed.restart: 1,
        everything.restart: 1,
    }
    for step in chance.choices(list(steps), weights=list(steps.values()), k=60):
        if step == log.roll:
            log.complete()
        step()
        if chance.random() < 0.4:
            committed.run(chance.choice([None, 1, 4]))
            everything.run(chance.choice([None, 7]))
    log.complete()
    assert committed.latest() == {ORDERS: log.model.last_stable_offset}
    committed.run()
    everything.run()
    assert [offset for _, _, offset in committed.seen] == log.model.visible
    assert [offset for _, _, offset in everything.seen] == list(range(log.model.next_offset))


def test_a_micro_batch_is_the_same_when_it_is_read_again(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    query = Query(tmp_path, isolationLevel="read_committed")
    log.append(3, 1)
    log.append(2, 2)
    log.append(2)
    log.abort(1)
    end = query.latest()
    assert end == {ORDERS: 3}
    before = query.rows(end)
    log.roll()
    log.commit(2)
    log.append(4, 1)
    query.restart()
    assert query.rows(end) == before == []
    query.start = as_json(end)
    end = query.latest()
    before = query.rows(end)
    assert [offset for _, _, offset in before] == [3, 4, 5, 6]
    log.commit(1)
    query.restart()
    assert query.rows(end) == before


def test_an_open_transaction_holds_the_stream_back(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    query = Query(tmp_path, isolationLevel="read_committed")
    log.append(2, 7)
    log.roll()
    log.append(2)
    assert query.run() == []
    log.roll()
    assert query.run() == []
    log.commit(7)
    assert query.run() == [0, 1, 2, 3]


def test_another_isolation_level_waits_where_the_query_was(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    query = Query(tmp_path)
    log.append(2, 7)
    query.run()
    committed = Query(tmp_path, isolationLevel="read_committed")
    committed.start = query.start
    assert committed.run() == []
    log.commit(7)
    log.append(1)
    assert committed.run() == [3]
    log.append(2, 7)
    with pytest.raises(ValueError, match=r"after the last stable offset 4.*another isolation level"):
        committed.rows({ORDERS: 6})


def test_new_partitions_and_topics_begin_at_their_start(tmp_path: Path):
    GrowingPartition(tmp_path).append(1)
    query = Query(tmp_path, startingOffsets="latest", subscribePattern="orders|returns")
    assert query.run() == []
    GrowingPartition(tmp_path, partition=1).append(2)
    GrowingPartition(tmp_path, "returns").append(1)
    GrowingPartition(tmp_path, "ignored").append(1)
    query.run()
    assert sorted(query.seen) == [("orders", 1, 0), ("orders", 1, 1), ("returns", 0, 0)]
    assert query.start == {"orders": {"0": 1, "1": 2}, "returns": {"0": 1}}


def test_the_rows_of_golden_logs():
    for folder in folders():
        query = Query(folder, onError="skip")
        while query.start != as_json(query.latest()):
            query.run(500)
        expected = kraftlog.open(folder).records(["topic", "partition", "offset"]).to_table().to_pylist()
        assert sorted(query.seen) == sorted(tuple(row.values()) for row in expected), folder


@pytest.mark.parametrize("name", ["transactions", "transactions_hanging", "transactions_tv0", "compaction"])
def test_the_committed_rows_of_golden_logs(name: str):
    folder = GOLDEN / name / "log"
    query = Query(folder, isolationLevel="read_committed")
    while query.start != as_json(query.latest()):
        query.run(60)
    log = kraftlog.open(folder)
    expected = log.records(["topic", "partition", "offset"], isolation_level="read_committed").to_table().to_pylist()
    assert sorted(query.seen) == sorted(tuple(row.values()) for row in expected)


def test_the_metadata_log_is_gone_over_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """However its growth and its damage are cut into looks, the last stable offset is that of the whole."""
    scanned = []
    scan = log_ends.scan_markers

    def counted(buffer: Any, faults: Any, *, start: int, end: int) -> Any:
        scanned.append((start, end))
        return scan(buffer, faults, start=start, end=end)

    monkeypatch.setattr(log_ends, "scan_markers", counted)
    for case in sorted(path for path in (GOLDEN / "metadata_txn").iterdir() if (path / "log").is_dir()):
        source = case / "log" / "__cluster_metadata-0"
        folder = tmp_path / case.name / "__cluster_metadata-0"
        folder.mkdir(parents=True)
        options = {"path": str(folder.parent), "isolationLevel": "read_committed"}
        follower = LogFollower(parse_request(options, is_streaming=True))
        for segment in sorted(source.glob("*.log")):
            data, grown = segment.read_bytes(), folder / segment.name
            scanned.clear()
            for end in range(0, len(data) + 199, 199):
                grown.write_bytes(data[:end])
                (bounds,) = follower.bounds().values()
                rows = (
                    kraftlog.open(folder)
                    .metadata_transactions(["state", "begin_offset"], strict=False, faults=[])
                    .to_pylist()
                )
                opened = [row["begin_offset"] for row in rows if row["state"] == "open"]
                assert bounds.last_stable_offset == (opened or [bounds.log_end_offset])[0]
            assert all(former[1] == later[0] for former, later in pairwise(scanned))


def test_an_open_metadata_transaction_holds_the_stream_back():
    folder = GOLDEN / "metadata_txn"
    for case in sorted(path for path in folder.iterdir() if (path / "log").is_dir()):
        query = Query(case / "log", isolationLevel="read_committed", onError="skip")
        for limit in (1, None):
            query.run(limit)
        log = kraftlog.open(case / "log")
        rows = log.records(["topic", "partition", "offset"], isolation_level="read_committed").to_table().to_pylist()
        stable = log.metadata_transactions(["state", "begin_offset"], strict=False, faults=[]).to_pylist()
        opened = [row["begin_offset"] for row in stable if row["state"] == "open"]
        assert query.start["__cluster_metadata"]["0"] == (opened or [log.segments()["next_offset"][-1].as_py()])[0]
        assert query.seen == [tuple(row.values()) for row in rows], case.name


CHECKPOINT = "replication-offset-checkpoint"


@pytest.mark.parametrize("options", [{}, {"highWatermark": "true"}])
def test_high_watermark(tmp_path: Path, options: dict[str, str]):
    """It may lie before what was read, as a broker writes it every five seconds: nothing is read twice."""
    log = GrowingPartition(tmp_path)
    log.append(3)
    log.append(3)
    checkpoint = tmp_path / CHECKPOINT
    checkpoint.write_text("0\n1\norders 0 4\n")
    query = Query(tmp_path, **options)
    assert query.run() == [0, 1, 2, 3]
    checkpoint.write_text("0\n1\norders 0 2\n")
    assert query.run() == []
    query.restart()
    assert query.run() == []
    checkpoint.write_text("0\n1\norders 0 6\n")
    assert query.run() == [4, 5]
    GrowingPartition(tmp_path, partition=1).append(1)
    assert query.run() == ([] if options else [0])


def test_the_end_of_the_log_where_no_high_watermark_is_known(tmp_path: Path):
    """Without the checkpoint, without an entry, of a file that a broker has just made, and of the metadata log."""
    for number, text in enumerate([None, "", "0\n0\n", "0\n1\norders 1 1\n", "0\n1\nreturns 0 0\n"]):
        directory = tmp_path / str(number)
        log = GrowingPartition(directory)
        log.append(3)
        GrowingPartition(directory, "__cluster_metadata").append(1)
        if text is not None:
            (directory / CHECKPOINT).write_text(text)
        assert Query(directory).latest() == {("__cluster_metadata", 0): 1, ORDERS: 3}


def test_the_high_watermark_is_left_aside_on_request(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    log.append(3)
    (tmp_path / CHECKPOINT).write_text("0\n1\norders 0 1\n")
    before = Query(tmp_path)
    assert before.run() == [0]
    after = Query(tmp_path, highWatermark="false")
    after.start = before.start
    assert after.run() == [1, 2]
    before.start = after.start  # turned on again, behind the high watermark
    assert before.run() == []
    with pytest.raises(ValueError, match="option highWatermark is 'maybe', not auto, true or false"):
        Query(tmp_path, highWatermark="maybe")


def test_a_new_query_begins_at_the_high_watermark(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    log.append(3)
    (tmp_path / CHECKPOINT).write_text("0\n1\norders 0 1\n")
    query = Query(tmp_path / "orders-0", startingOffsets="latest")
    assert query.start == {"orders": {"0": 1}}
    log.append(2, 1)
    (tmp_path / CHECKPOINT).write_text("0\n1\norders 0 5\n")
    assert query.latest() == {ORDERS: 5}
    committed = Query(tmp_path, isolationLevel="read_committed")
    assert committed.latest() == {ORDERS: 3}


def test_a_checkpoint_that_cannot_be_read(tmp_path: Path):
    GrowingPartition(tmp_path).append(1)
    (tmp_path / CHECKPOINT).write_text("0\n2\norders 0 1\n")
    with pytest.raises(kraftlog.CorruptRecordError, match="expected 2 entries, found 1; a stream stops at its hi"):
        Query(tmp_path)
    assert Query(tmp_path, highWatermark="false").run() == [0]


def test_records_that_the_broker_truncated_are_not_in_the_stream(tmp_path: Path):
    """A stream that had read up to the end of the log would have to fail."""
    log = GrowingPartition(tmp_path)
    log.append(3)
    size = log.segment.stat().st_size
    log.append(3)
    (tmp_path / CHECKPOINT).write_text("0\n1\norders 0 3\n")
    stops, goes_on = Query(tmp_path), Query(tmp_path, highWatermark="false")
    assert (stops.run(), goes_on.run()) == ([0, 1, 2], [0, 1, 2, 3, 4, 5])
    log.segment.write_bytes(log.segment.read_bytes()[:size])
    assert stops.run() == []
    with pytest.raises(DataLossError, match="the end of the log went back from offset 6 to 3"):
        goes_on.run()


def test_the_metadata_log_has_no_high_watermark(tmp_path: Path):
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders 0 1\n")
    GrowingPartition(tmp_path).append(1)
    GrowingPartition(tmp_path, "__cluster_metadata").append(1)
    with pytest.raises(ValueError, match="__cluster_metadata-0: no broker writes its high watermark into replication-"):
        Query(tmp_path, highWatermark="true")
    assert Query(tmp_path, highWatermark="true", subscribe="orders").run() == [0]


def test_tasks_read_only_what_is_new(tmp_path: Path):
    """Also without an index, in a segment much larger than what is new."""
    log = GrowingPartition(tmp_path)
    query = Query(tmp_path, rangeBytes="1k")
    for _ in range(200):
        log.append(5)
    query.run()
    size = log.segment.stat().st_size
    log.append(5)
    (part,) = query.follower.parts(from_json(query.start), query.latest())
    assert (part.work.start, part.work.end) == (size, log.segment.stat().st_size)


def test_min_partitions(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    for _ in range(40):
        log.append(5)
    query = Query(tmp_path, minPartitions="8")
    parts = query.follower.parts({ORDERS: 0}, {ORDERS: 200})
    assert 7 <= len(parts) <= 9
    assert query.run() == list(range(200))
    assert [part.number for part in parts] == list(range(len(parts)))


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_an_object_store(tmp_path: Path, level: str):
    store = fsspec.filesystem("memory")
    log = GrowingPartition(tmp_path)
    log.append(2)
    try:
        store.put(f"{tmp_path}/", "/stream/logs/", recursive=True)
        query = Query(Path("unused"), paths="memory://stream/logs", isolationLevel=level)
        assert query.run() == [0, 1]
        log.append(3, 1)
        log.roll()
        log.commit(1)
        log.append(1)
        store.put(f"{tmp_path}/", "/stream/logs/", recursive=True)
        assert query.run() == [2, 3, 4, 6]
    finally:
        store.rm("/stream", recursive=True)


def test_passwords_are_not_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    store = fsspec.filesystem("memory")
    GrowingPartition(tmp_path).append(2)
    uris = [f"memory://user:secret@{host}/logs" for host in ("one", "two")]
    try:
        for host in ("one", "two"):
            store.put(f"{tmp_path}/", f"/user:secret@{host}/logs/", recursive=True)
        with caplog.at_level(logging.INFO):
            assert Query(Path("unused"), paths=uris[0]).run() == [0, 1]
            assert Query(Path("unused"), paths=",".join(uris)).run() == [0, 1]
        assert "orders-0/00000000000000000000.log from byte 0" in caplog.text
        assert "secret" not in caplog.text
    finally:
        for host in ("one", "two"):
            store.rm(f"/user:secret@{host}", recursive=True)
    for uri in (uris[0], "unknown://user:secret@host/logs"):
        path = RemotePath.parse(uri)
        assert "secret" not in f"{path} {path!r} {path.parent} {path.parent.name}"
        with pytest.raises((OSError, ValueError)) as refused:
            kraftlog.open(uri)
        assert "secret" not in "".join(traceback.format_exception(refused.value))


def test_of_two_replicas_the_newer_one_is_followed(tmp_path: Path):
    one, two = GrowingPartition(tmp_path / "one"), GrowingPartition(tmp_path / "two")
    follower = LogFollower(
        parse_request(
            {"paths": f"{tmp_path / 'one'},{tmp_path / 'two'}", "startingOffsets": "latest"}, is_streaming=True
        )
    )
    one.append(3)
    assert follower.starting() == {("orders", 0): 3}
    two.append(3)
    two.append(2)
    ((bounds),) = follower.bounds().values()
    assert bounds.log_end_offset == 5
    parts = follower.parts({("orders", 0): 3}, {("orders", 0): 5})
    assert {part.work.segment.folder for part in parts} == {two.folder}


def test_what_cannot_be_followed(tmp_path: Path):
    cases: list[tuple[dict[str, Any], str]] = [
        ({"table": "batches"}, "a stream reads the table records, messages or a type of message, not batches"),
        ({"subscribe": "orders,returns"}, "no topic returns; there are orders-0"),
        ({"endingOffsets": "latest"}, "option endingOffsets: a stream has no end"),
        ({"maxTriggerDelay": "soon"}, "option maxTriggerDelay is 'soon', not a time such as"),
        ({"maxOffsetsPerTrigger": "0"}, "option maxOffsetsPerTrigger is '0', not a positive number"),
        ({"startingTimestamp": "99"}, "orders-0: no record has timestamp 99 or a later one"),
        (
            {"startingOffsets": '{"orders": {"0": 0, "7": 100}, "returns": {"0": 5}}'},
            "offsets are set for orders-7, returns-0, but the stream reads orders-0",
        ),
        (
            {"startingOffsets": '{"orders": {"0": 999}}'},
            "orders-0: startingOffsets asks for offset 999, but the log ends at 1",
        ),
        ({"startingOffsets": "2"}, "orders-0: startingOffsets asks for offset 2, but the log ends at 1"),
    ]
    GrowingPartition(tmp_path / "one").append(1)
    for options, message in cases:
        with pytest.raises(ValueError, match=message):
            Query(tmp_path / "one", **options)
    loose = tmp_path / "loose.log"
    loose.write_bytes(GrowingPartition(tmp_path / "three").model.log)
    with pytest.raises(ValueError, match="a stream reads only files in partition folders"):
        LogFollower(parse_request({"path": str(loose)}, is_streaming=True)).starting()


def test_a_store_moves_no_high_watermark(tmp_path: Path):
    """So it removes those of the broker that had the directory before: streams would never see what it appends."""
    (tmp_path / CHECKPOINT).write_text("0\n1\norders 0 1\n")
    with kraftlog.LogStore(tmp_path) as store:
        store.create_topic("orders")
        store.producer().send("orders", pa.table({"value": ["a", "b", "c"]}))
    assert Query(tmp_path, subscribe="orders").run() == [0, 1, 2]
