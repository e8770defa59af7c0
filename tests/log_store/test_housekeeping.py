"""Retention and compaction: what Kafka's cleaner keeps, what it drops and when, and crashes in between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk, since
from kraftlog import LogStore
from kraftlog._native.scanner import CONTROL_BIT, DELETE_HORIZON_BIT
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.disk.disk import disk
from kraftlog.errors import InvalidRecordError
from kraftlog.layout.checkpoints import read_offset_checkpoint
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.producer_snapshot import read_producer_snapshot
from kraftlog.log_store.errors import StorageError
from kraftlog.write.log_cleaner import CleanOptions, LogCleaner
from kraftlog.write.retention import doomed_segments
from standing_clock import StandingClock

Opened = Callable[..., LogStore]
GOLDEN = Path(__file__).parent.parent / "golden/compaction/log"
COMPACT = {"cleanup.policy": "compact", "internal.segment.bytes": 2000, "delete.retention.ms": 10_000}
DAY = 86_400_000


def put(store: LogStore, *rows: tuple[str, str | None], topic: str = "t", **options: object) -> None:
    with store.producer(**options) as producer:  # type: ignore[arg-type]
        keys, values = zip(*rows, strict=True)
        producer.send(topic, pa.table({"key": pa.array(keys), "value": pa.array(values, pa.string())}))


def rows(store: LogStore, topic: str = "t", level: str = "read_committed") -> list[tuple[int, bytes, bytes | None]]:
    log = kraftlog.open(store.path, topics=[topic])
    table = log.records(["offset", "key", "value"], isolation_level=level, strict=True).to_table()
    return list(zip(*(table[name].to_pylist() for name in ("offset", "key", "value")), strict=True))


def batches(store: LogStore) -> list[dict]:
    names = ["base_offset", "last_offset", "records_count", "is_control", "delete_horizon_ms", "producer_id"]
    return kraftlog.open(store.path / "t-0").batches(names).to_pylist()


def faults(store: LogStore) -> list[str]:
    return [fault.message for fault in kraftlog.open(store.path).verify()]


# compaction


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_last_value_of_each_key_stays(opened: Opened, compression: str):
    with opened() as store:
        store.create_topic("t", configs=COMPACT)
        for number in range(30):
            put(store, *((f"k{n}", f"{number} {n} {'x' * 20}") for n in range(number % 7, 10)), compression=compression)
        expected = {}
        for offset, key, value in rows(store):
            expected[key] = (offset, key, value)
        before = rows(store)
        (freed,) = store.clean(["t"], roll=True)
        assert rows(store) == sorted(expected.values())
        assert freed.size_after < freed.size_before
        assert [row for row in before if row in rows(store)] == rows(store)  # offsets are the same
        assert faults(store) == []
        put(store, ("k3", "later"))
        assert rows(store)[-1][1:] == (b"k3", b"later")
        (again,) = store.clean(["t"])
        assert again.size_after == again.size_before  # it is in the last segment, which is not cleaned
        with store.consumer() as consumer:
            consumer.subscribe(["t"])
            assert consumer.poll()["value"].to_pylist() == [row[2] for row in rows(store)]
        found = rows(store)
    with opened() as store:
        assert rows(store) == found
        assert faults(store) == []
    assert read_offset_checkpoint(store.path / "cleaner-offset-checkpoint")["t", 0] > 0


def test_a_snapshot_behind_an_emptied_segment_is_no_fault(opened: Opened):
    with opened() as store:
        store.create_topic("t", configs=COMPACT)
        with store.producer() as producer:
            for value in ("1", "2", "3"):  # each in a segment of its own, too large for a common one
                producer.send("t", pa.table({"key": ["a"], "value": [value * 1500]}))
                producer.flush()
                store._open_partition(("t", 0)).roll()
        store.clean(["t"])
        first, second, *_ = PartitionFolder.of(store.path / "t-0").segments
        assert (first.size, second.base_offset) == (0, 1)
        assert "snapshot" in second.kinds_beside  # it knows the producer, of which the log has nothing before it
        assert faults(store) == []


def test_tombstones_go_behind_their_horizon(opened: Opened, clock: StandingClock):
    with opened() as store:
        store.create_topic("t", configs=COMPACT)
        put(store, ("a", "1"), ("b", "2"))
        put(store, ("a", None), ("c", "3"))
        put(store, ("d", "4"))
        store.clean(["t"], roll=True)
        assert rows(store) == [(1, b"b", b"2"), (2, b"a", None), (3, b"c", b"3"), (4, b"d", b"4")]
        assert [each["delete_horizon_ms"] for each in batches(store)] == [None, clock.now + 10_000, None]
        clock.now += 9_999
        store.clean(["t"])
        assert rows(store)[1] == (2, b"a", None)
        clock.now += 1
        store.clean(["t"])
        assert rows(store) == [(1, b"b", b"2"), (3, b"c", b"3"), (4, b"d", b"4")]
        assert faults(store) == []
        log = kraftlog.open(store.path / "t-0").records(["offset", "timestamp_ms"]).to_table()
        assert set(log["timestamp_ms"].to_pylist()) == {clock.now - 10_000}  # those of records stay


def test_aborted_records_go_and_markers_follow(opened: Opened, clock: StandingClock):
    with opened() as store:
        store.create_topic("t", configs=COMPACT)
        producer = store.producer("etl")
        for number, is_commit in enumerate((True, False, True)):
            producer.begin_transaction()
            producer.send("t", pa.table({"key": ["a", f"own {number}"], "value": [f"{number}", "x"]}))
            producer.commit_transaction() if is_commit else producer.abort_transaction()
        put(store, ("a", "last"), ("own 0", "y"), ("own 2", "z"))
        store.clean(["t"], roll=True)
        expected = [(9, b"a", b"last"), (10, b"own 0", b"y"), (11, b"own 2", b"z")]
        assert rows(store) == expected
        assert rows(store, level="read_uncommitted") == expected
        assert sum(each["is_control"] for each in batches(store)) == 3  # their data were there before
        store.clean(["t"])
        horizons = [each["delete_horizon_ms"] for each in batches(store) if each["is_control"]]
        assert horizons.count(clock.now + 10_000) >= 2
        clock.now += 10_000
        store.clean(["t"])
        assert rows(store) == expected
        left = batches(store)
        assert sum(each["is_control"] for each in left) <= 1
        assert any(each["producer_id"] == producer.producer_id for each in left)  # its sequence and epoch
        assert faults(store) == []
        with producer.transaction():
            producer.send("t", key="a", value="later")
    with opened() as store:
        assert rows(store)[-1][1:] == (b"a", b"later")
        assert faults(store) == []


def test_open_transactions_are_not_cleaned(opened: Opened):
    with opened() as store:
        store.create_topic("t", configs=COMPACT)
        put(store, ("a", "1"), ("a", "2"))
        store._open_partition(("t", 0)).roll()
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("t", pa.table({"key": ["b", "b"], "value": ["3", "4"]}))
        store.clean(["t"], roll=True)
        assert [row[0] for row in rows(store, level="read_uncommitted")] == [1, 2, 3]
        producer.commit_transaction()
        store.clean(["t"], roll=True)
        assert [row[0] for row in rows(store)] == [1, 3]


def test_the_last_batch_of_a_producer_stays_empty(opened: Opened):
    with opened() as store:
        store.create_topic("t", configs=COMPACT)
        producer = store.producer()
        producer.send("t", pa.table({"key": ["a", "b"], "value": ["1", "1"]}))
        put(store, ("a", "2"), ("b", "2"))
        store.clean(["t"], roll=True)
        assert rows(store) == [(2, b"a", b"2"), (3, b"b", b"2")]
        empty = batches(store)[0]
        assert (empty["base_offset"], empty["last_offset"], empty["records_count"]) == (0, 1, 0)
        state = store._open_partition(("t", 0)).producer_states()
        assert (producer.producer_id, 1) in {(each.producer_id, each.last_sequence) for each in state}
        store._abandon()
    with opened() as store:
        state = store._open_partition(("t", 0)).producer_states()
        assert (producer.producer_id, 1) in {(each.producer_id, each.last_sequence) for each in state}
        assert faults(store) == []


def test_younger_records_wait(opened: Opened, clock: StandingClock):
    with opened() as store:
        store.create_topic("t", configs={**COMPACT, "min.compaction.lag.ms": 5000})
        put(store, ("a", "1"))
        put(store, ("a", "2"))
        store.clean(["t"], roll=True)
        assert len(rows(store)) == 2
        clock.now += 5000
        store.clean(["t"])
        assert len(rows(store)) == 1


def test_records_without_keys_are_refused(opened: Opened):
    with opened() as store:
        store.create_topic("t", configs=COMPACT)
        for rows_ in ({"value": ["x"]}, {"key": ["a", None], "value": ["x", "y"]}):
            producer = store.producer()
            with pytest.raises(InvalidRecordError, match="t-0: a record has no key") as refused:
                producer.send("t", pa.table(rows_))
            assert refused.value.kafka_code == 87
        put(store, ("a", "1"))
        assert [row[1:] for row in rows(store)] == [(b"a", b"1")]


def test_the_topics_of_kafka_itself_are_cleaned(opened: Opened):
    with opened() as store:
        store.create_topic("t")
        producer, consumer = store.producer("etl"), store.consumer("g")
        for number in range(20):
            with producer.transaction():
                producer.send("t", pa.table({"value": ["x"]}))
            consumer.commit({("t", 0): number + 1})
        states, offsets = store.transactional_ids(), store.committed("g")
        freed = {each.topic: each for each in store.clean(roll=True)}
        assert set(freed) == {"__transaction_state", "__consumer_offsets"}
        assert all(each.size_after < each.size_before / 4 for each in freed.values())
    with opened() as store:
        assert store.committed("g") == offsets
        found = store.transactional_ids()
        assert [(each.producer_id, each.producer_epoch) for each in found] == [
            (each.producer_id, each.producer_epoch) for each in states
        ]


@pytest.mark.parametrize("folder", sorted(path.name for path in GOLDEN.glob("cpt-*")))
def test_what_a_broker_has_cleaned_stays_as_it_is(folder: str):
    """Before any delete horizon its cleaner's output has nothing more to drop, and the bytes are the same.

    Markers whose data its last cleaning has dropped get their horizon with the next one alone.
    """
    topic, _, number = folder.rpartition("-")
    end = read_offset_checkpoint(GOLDEN / "cleaner-offset-checkpoint").get((topic, int(number)), 0)
    listed = PartitionFolder.of(GOLDEN / folder)
    bases = [segment.base_offset or 0 for segment in listed.segments]
    segments = [each for each, after in zip(listed.segments, bases[1:], strict=False) if after <= end]
    producers = read_producer_snapshot(listed.producer_snapshots[max(listed.producer_snapshots)])
    following = listed.segments[len(segments) :]
    cleaner = LogCleaner(segments, following, producers, CleanOptions(now=0, delete_retention_ms=DAY, segment_bytes=1))
    for group in cleaner.groups():
        (segment,) = group
        before, after = by_offset(disk().read_bytes(segment.path)), by_offset(b"".join(cleaner.cleaned(group)))
        assert list(before) == list(after)
        for offset, (header, batch) in before.items():
            new_header, new_batch = after[offset]
            if header["attributes"] & CONTROL_BIT and not header["attributes"] & DELETE_HORIZON_BIT:
                if new_batch != batch:
                    assert new_header["attributes"] == header["attributes"] | DELETE_HORIZON_BIT
                    assert new_header["base_timestamp"] == DAY
            else:
                assert new_batch == batch, f"{segment.name} at {offset}"


def by_offset(log: bytes) -> dict[int, tuple[np.void, bytes]]:
    found = {}
    for headers in HeaderScan(log).headers():
        for header, end in zip(headers, ends(headers).tolist(), strict=True):
            found[int(header["base_offset"])] = header, log[int(header["position"]) : end]
    return found


# crashes


def test_the_cleaner_notes_what_it_has_done(opened: Opened, without_waiting: FaultyDisk):
    """Of each partition, and behind the last segment: what a crash leaves uncleaned must not count as cleaned."""
    with opened() as store:
        for topic in ("t", "u"):
            store.create_topic(topic, configs={**COMPACT, "internal.segment.bytes": 1100})
            for number in range(4):
                put(store, *((f"k{each}", f"{number} {'x' * 300}") for each in range(4)), topic=topic)
            before = len(without_waiting.steps)
            store.clean([topic], roll=True)
            renamed = [step.path.name for step in without_waiting.steps[before:] if step.name == "rename"]
            swapped = [at for at, name in enumerate(renamed) if name.endswith((".log", ".swap"))]
            assert len(swapped) >= 4
            assert swapped[-1] < renamed.index("cleaner-offset-checkpoint")
        assert read_offset_checkpoint(store.path / "cleaner-offset-checkpoint") == {("t", 0): 16, ("u", 0): 16}


@pytest.mark.sweep(10)
@pytest.mark.parametrize("step", range(0, 60, 2))
def test_a_clean_that_is_stopped(opened: Opened, without_waiting: FaultyDisk, step: int):
    """Whatever step it is stopped at, the next store has the same last values."""
    store = opened()
    store.create_topic("t", configs={**COMPACT, "internal.segment.bytes": 1100})
    for number in range(12):
        put(store, *((f"k{n}", f"{number} {'x' * 30}") for n in range(8)))
    last = {key: value for _, key, value in rows(store)}
    without_waiting.fails = since(len(without_waiting.steps) + step)
    with suppress(StorageError):
        store.clean(["t"], roll=True)
    store._abandon()
    without_waiting.fails = lambda step: None
    with opened() as store:
        assert {key: value for _, key, value in rows(store)} == last
        assert faults(store) == []
        store.clean(["t"], roll=True)
        assert len(rows(store)) == 8
        assert not [path for path in store.path.rglob("*") if path.suffix in (".cleaned", ".swap")]
        assert faults(store) == []


# retention


def filled(store: LogStore, clock: StandingClock, **configs: object) -> None:
    store.create_topic("t", configs={"internal.segment.bytes": 1100, **configs})
    for number in range(10):
        put(store, ("k", f"{number} {'x' * 900}"))
        clock.now += 1000


def numbers(store: LogStore) -> list[int]:
    return [int(value.split()[0]) for _, _, value in rows(store) if value is not None]


def test_old_segments_go(opened: Opened, clock: StandingClock):
    with opened() as store:
        filled(store, clock, **{"retention.ms": 4500})
        reader = store.consumer()
        reader.assign([("t", 0)])
        reader.seek(("t", 0), 1)
        (freed,) = store.apply_retention(["t"])
        assert numbers(store) == [6, 7, 8, 9]
        assert freed.size_after < freed.size_before
        assert reader.lag() == {("t", 0): 4}
        assert reader.poll()["offset"].to_pylist() == [6, 7, 8, 9]
        clock.now += 100_000
        store.apply_retention()
        assert numbers(store) == [9]  # the last segment stays
        assert faults(store) == []
    with opened() as store:
        assert store._open_partition(("t", 0)).log_start_offset == 9
        put(store, ("k", "10 x"))
        assert numbers(store) == [9, 10]
        assert faults(store) == []


@pytest.mark.parametrize(("timestamp_ms", "is_doomed"), [(-1, False), (DAY - 1001, True), (DAY - 1000, False)])
def test_segments_without_timestamps_have_no_age(tmp_path: Path, timestamp_ms: int, is_doomed: bool):
    folder = tmp_path / "t-0"
    folder.mkdir()
    data = kraftlog.encode(pa.table({"value": ["x"]}), timestamp_ms=timestamp_ms)
    (folder / f"{0:020d}.log").write_bytes(data)
    (segment,) = PartitionFolder.of(folder).segments
    doomed = doomed_segments(
        [(segment, 1)], segment.size, DAY, log_start_offset=0, retention_ms=1000, retention_bytes=None
    )
    assert doomed == ([segment] if is_doomed else [])


def test_more_bytes_than_the_topic_keeps_go(opened: Opened, clock: StandingClock):
    """As with Kafka, no segment goes without which there would be less than the topic keeps."""
    with opened() as store:
        filled(store, clock, **{"retention.bytes": 4000, "retention.ms": -1})
        store.apply_retention()
        assert numbers(store) == [5, 6, 7, 8, 9]


def test_what_is_not_stable_stays(opened: Opened, clock: StandingClock):
    with opened() as store:
        store.create_topic("t", configs={"internal.segment.bytes": 1100, "retention.ms": 0})
        put(store, ("k", f"0 {'x' * 900}"))
        producer = store.producer("etl", transaction_timeout_ms=900_000)
        producer.begin_transaction()
        producer.send("t", pa.table({"key": ["k"], "value": [f"1 {'x' * 900}"]}))
        put(store, ("k", f"2 {'x' * 900}"))
        put(store, ("k", f"3 {'x' * 900}"))
        clock.now += 10_000
        store.apply_retention()
        assert [row[0] for row in rows(store, level="read_uncommitted")] == [1, 2, 3]
        producer.commit_transaction()
        store.apply_retention()
        assert numbers(store)[-1:] in ([3], [])


def test_compact_and_delete(opened: Opened, clock: StandingClock):
    with opened() as store:
        filled(store, clock, **{"cleanup.policy": "compact,delete", "retention.ms": 4500})
        assert {each.topic for each in store.clean()} == {"t"}
        store.apply_retention()
        assert numbers(store)[-1] == 9
        assert faults(store) == []


def test_only_what_a_topic_says(opened: Opened, clock: StandingClock):
    with opened() as store:
        filled(store, clock, **{"retention.ms": -1})
        clock.now += 100 * DAY
        assert store.clean() == []
        (freed,) = store.apply_retention()
        assert freed.size_before == freed.size_after
        assert numbers(store) == list(range(10))


def test_segments_below_the_log_start_go(opened: Opened, clock: StandingClock):
    with opened() as store:
        filled(store, clock, **{"retention.ms": -1})
    (store.path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 5\n")
    with opened() as store:
        store.apply_retention()
        bases = [int(path.stem) for path in sorted((store.path / "t-0").glob("*.log"))]
        assert bases[0] == 5
        assert numbers(store) == [5, 6, 7, 8, 9]


def test_a_damaged_segment_is_not_cleaned(opened: Opened):
    with opened() as store:
        store.create_topic("t", configs=COMPACT)
        put(store, ("a", "1"))
        put(store, ("a", "2"))
        store._open_partition(("t", 0)).roll()
        path = store.path / "t-0/00000000000000000000.log"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        with pytest.raises(kraftlog.errors.CorruptRecordError, match="crc"):
            store.clean(["t"])
        assert path.read_bytes() == data
        assert [path.name for path in (store.path / "t-0").glob("*.log*")] == ["0" * 20 + ".log", "0" * 19 + "2.log"]


def test_headers_of_filtered_batches_are_those_of_the_format(opened: Opened):
    with opened() as store:
        store.create_topic("t", configs=COMPACT)
        put(store, ("a", "1"), ("b", "1"), ("c", "1"), compression="zstd")
        put(store, ("b", "2"))
        store.clean(["t"], roll=True)
        (headers,) = HeaderScan((store.path / "t-0/00000000000000000000.log").read_bytes(), check_crc=True).headers()
        assert headers["crc_ok"].tolist() == [1, 1]
        assert headers["records_count"].tolist() == [2, 1]
        assert headers["last_offset_delta"].tolist() == [2, 0]
        assert np.bitwise_and(headers["attributes"], 7).tolist() == [4, 0]
