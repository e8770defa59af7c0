"""Consumers of a store: positions, isolation levels, groups, and ``process``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kraftlog
from compacted_log import write_compacted
from kraftlog import LogStore, process
from kraftlog.errors import CorruptRecordError
from kraftlog.log_store.consumer import Consumer
from kraftlog.log_store.errors import UnknownTopicOrPartitionError
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.read import ranges
from kraftlog.schema import RECORDS
from kraftlog.write import replaced_segments

LIMIT = 30.0
Opened = Callable[..., LogStore]


@pytest.fixture
def store(opened: Opened) -> Iterator[LogStore]:
    with opened() as store:
        store.create_topic("orders", 4)
        yield store


def send(store: LogStore, *values: str, partition: int = 0) -> None:
    with store.producer() as producer:
        producer.send("orders", pa.table({"value": list(values)}), partition=partition)


def polled(consumer: object) -> list[bytes]:
    return consumer.poll()["value"].to_pylist()  # type: ignore[attr-defined]


def test_records_come_once(store: LogStore):
    with store.consumer() as consumer:
        consumer.assign([("orders", 0)])
        assert consumer.poll().num_rows == 0
        send(store, "a", "b")
        assert polled(consumer) == [b"a", b"b"]
        assert polled(consumer) == []
        send(store, "c")
        assert consumer.lag() == {("orders", 0): 1}
        assert polled(consumer) == [b"c"]
        assert (consumer.position(), consumer.lag()) == ({("orders", 0): 3}, {("orders", 0): 0})
        consumer.seek(("orders", 0), 1)
        assert polled(consumer) == [b"b", b"c"]


def test_a_poll_that_is_interrupted_has_taken_nothing(store: LogStore, monkeypatch: pytest.MonkeyPatch):
    """Ctrl-C comes when the rows are read, and before they are returned."""
    asked: list[int] = []

    def interrupted() -> pa.Schema:
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return RECORDS.select()

    send(store, "a", "b")
    with store.consumer("g") as consumer:
        consumer.subscribe(["orders"])
        with monkeypatch.context() as patched:
            patched.setattr("kraftlog.log_store.consumer.RECORDS", SimpleNamespace(select=interrupted))
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(2)
        assert consumer.position()["orders", 0] == 0
        assert polled(consumer) == [b"a", b"b"]


def test_columns_are_those_of_the_table_records(store: LogStore):
    store.producer().send("orders", key="k", value="v", headers=[("h", b"x")], partition=2, timestamp_ms=5)
    with store.producer() as producer:
        producer.send("orders", key="k", value="v", headers=[("h", b"x")], partition=2, timestamp_ms=5)
    with store.consumer() as consumer:
        consumer.subscribe(["orders"])
        assert (
            consumer.poll().to_pylist() == kraftlog.open(store.path, topics=["orders"]).records().to_table().to_pylist()
        )


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_isolation_levels(store: LogStore, level: str):
    """read_committed stops before an open transaction, goes on behind its end, and leaves out aborted records."""
    is_committed = level == "read_committed"
    producer, other = store.producer("one"), store.producer("two")
    consumer = store.consumer(isolation_level=level)  # type: ignore[arg-type]
    consumer.assign([("orders", 0)])
    producer.begin_transaction()
    producer.send("orders", pa.table({"value": ["open"]}), partition=0)
    with other.transaction():
        other.send("orders", value="committed", partition=0)
    send(store, "plain")
    assert polled(consumer) == ([] if is_committed else [b"open", b"committed", b"plain"])
    producer.abort_transaction()
    assert polled(consumer) == ([b"committed", b"plain"] if is_committed else [])
    assert consumer.position() == {("orders", 0): 5}


def test_a_poll_is_bounded(store: LogStore):
    for at in range(4):
        send(store, *("x" * 1000,) * 40, partition=at)
    with store.consumer() as consumer:
        consumer.subscribe(["orders"])
        sizes = []
        while (rows := consumer.poll(50)).num_rows:
            sizes.append(rows.num_rows)
    assert sizes == [80, 80]


def test_committed_offsets(opened: Opened, tmp_path: Path):
    with opened() as store:
        store.create_topic("orders", 2)
        send(store, "a", "b", "c")
        with store.consumer("g") as consumer:
            consumer.subscribe(["orders"])
            polled(consumer)
            consumer.commit({("orders", 0): OffsetAndMetadata(2, "half")})
    with opened() as store:
        assert store.committed("g") == {("orders", 0): OffsetAndMetadata(2, "half")}
        assert store.groups() == ["g"]
        with store.consumer("g") as consumer:
            consumer.subscribe(["orders"])
            assert polled(consumer) == [b"c"]
            consumer.commit()
            assert consumer.committed() == {("orders", 0): OffsetAndMetadata(3), ("orders", 1): OffsetAndMetadata(0)}
    rows = kraftlog.open(tmp_path / "store").lag().to_table().to_pylist()
    assert sorted((row["group"], row["partition"], row["lag"]) for row in rows) == [("g", 0, 0), ("g", 1, 0)]


def test_where_a_consumer_begins(store: LogStore):
    send(store, "a", "b")
    with store.consumer(auto_offset_reset="latest") as consumer:
        consumer.assign([("orders", 0)])
        assert polled(consumer) == []
        send(store, "c")
        assert polled(consumer) == [b"c"]


def test_a_group_shares_partitions(store: LogStore):
    """As Kafka's range assignor does: in ranges, the first members have one more."""
    first, second = store.consumer("g"), store.consumer("g")
    first.subscribe(["orders"])
    assert first.assignment() == [("orders", n) for n in range(4)]
    second.subscribe(["orders"])
    alone = store.consumer()
    alone.subscribe(["orders"])
    assert (first.assignment(), second.assignment()) == (
        [("orders", 0), ("orders", 1)],
        [("orders", 2), ("orders", 3)],
    )
    assert len(alone.assignment()) == 4
    third = store.consumer("g")
    third.subscribe(["orders"])
    assert [len(each.assignment()) for each in (first, second, third)] == [2, 1, 1]
    assert sorted(first.assignment() + second.assignment() + third.assignment()) == alone.assignment()
    first.close()
    assert [len(each.assignment()) for each in (second, third)] == [2, 2]


def test_a_partition_that_moves_goes_on_where_it_was_committed(store: LogStore):
    send(store, "a", "b", partition=3)
    first, second = store.consumer("g"), store.consumer("g")
    first.subscribe(["orders"])
    assert polled(first) == [b"a", b"b"]
    first.commit({("orders", 3): 1})
    second.subscribe(["orders"])
    assert polled(second) == [b"b"]
    assert polled(first) == []


def test_refusals(store: LogStore):
    with pytest.raises(ValueError, match="neither read_uncommitted nor read_committed"):
        store.consumer(isolation_level="serializable")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="neither earliest nor latest"):
        store.consumer(auto_offset_reset="none")
    consumer = store.consumer()
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer.subscribe(["nowhere"])
    with pytest.raises(UnknownTopicOrPartitionError, match="has 4 partitions, and no 4"):
        consumer.assign([("orders", 4)])
    with pytest.raises(ValueError, match="without a group"):
        consumer.commit()
    with pytest.raises(ValueError, match="not assigned"):
        consumer.seek(("orders", 0), 1)


def louder(rows: pa.Table) -> pa.Table:
    return pa.table({"value": pc.utf8_upper(rows["value"].cast(pa.string()))})


def test_process_goes_on_where_it_was(store: LogStore):
    store.create_topic("loud")
    how = {"group": "g", "transactional_id": "louder"}
    send(store, "a", "b")
    assert process(store, "orders", louder, "loud", **how) == 2
    assert process(store, "orders", louder, "loud", **how) == 0
    send(store, "c", partition=2)
    assert process(store, ["orders"], louder, "loud", **how) == 1
    log = kraftlog.open(store.path, topics=["loud"])
    found = log.records(["value"], isolation_level="read_committed").to_table()["value"].to_pylist()
    assert found == [b"A", b"B", b"C"]


def test_process_of_a_transform_that_fails(store: LogStore):
    """Neither its rows nor the offsets count; the next call is given the same records."""
    store.create_topic("loud")
    how = {"group": "g", "transactional_id": "louder"}
    send(store, "a", "b")
    with pytest.raises(ZeroDivisionError):
        process(store, "orders", lambda rows: 1 // 0, "loud", **how)
    assert store.committed("g") == {}
    assert process(store, "orders", louder, "loud", **how) == 2


def test_rows_that_were_read_before_an_error_are_returned(store: LogStore):
    store.create_topic("z")
    send(store, "a", "b")
    with store.consumer() as consumer:
        consumer.assign([("orders", 0), ("z", 0)])
        store.delete_topic("z")
        assert polled(consumer) == [b"a", b"b"]
        with pytest.raises(UnknownTopicOrPartitionError):
            consumer.poll()


def test_a_topic_alone_is_a_list_of_one(store: LogStore):
    send(store, "a")
    with store.consumer() as consumer:
        consumer.subscribe("orders")
        assert polled(consumer) == [b"a"]


def test_a_transform_without_rows(store: LogStore):
    store.create_topic("loud")
    send(store, "a")
    assert process(store, "orders", lambda rows: None, "loud", group="g", transactional_id="none") == 1
    assert kraftlog.open(store.path).records(["topic"]).to_table()["topic"].to_pylist().count("loud") == 0
    assert process(store, "orders", louder, "loud", group="g", transactional_id="none") == 0


def test_damage_is_met_at_each_poll(store: LogStore):
    """It is not passed over, also behind rows of another partition."""
    send(store, "a", "b")
    send(store, "c", partition=1)
    log = store.path / "orders-1/00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[-2] ^= 1
    log.write_bytes(data)
    with store.consumer() as consumer:
        consumer.subscribe(["orders"])
        assert polled(consumer) == [b"a", b"b"]
        for _ in range(2):
            with pytest.raises(CorruptRecordError, match="crc"):
                consumer.poll()
        assert consumer.position()["orders", 1] == 0


@pytest.mark.parametrize("when", ["before a file is opened", "while a file is replaced"])
def test_a_clean_meanwhile_skips_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str):
    """The byte at which it would begin is one of the file before, and that of another record in the one after."""
    with LogStore(tmp_path, fsync="close") as store, store.consumer() as consumer:
        write_compacted(store, 300)
        consumer.assign([("orders", 0)])
        consumer.seek(("orders", 0), 100)
        found = list[int]()
        read = threading.Thread(target=lambda: found.extend(all_offsets(consumer)))

        def cleaned_first(*arguments: Any) -> Any:
            result = ranges_seek(*arguments)
            monkeypatch.undo()
            store.clean(["orders"])
            return result

        def planned_first(*arguments: Any) -> Any:
            result = ranges_seek(*arguments)
            planned.set()
            assert replaced.wait(LIMIT)
            return result

        def read_meanwhile(path: Path) -> None:
            monkeypatch.setattr(replaced_segments, "_unlink", unlink)
            read.start()
            planned.wait(0.1)  # it has to wait
            unlink(path)

        ranges_seek, unlink = ranges.seek, replaced_segments._unlink
        if when == "before a file is opened":
            monkeypatch.setattr(ranges, "seek", cleaned_first)
            read.run()
        else:
            planned, replaced = threading.Event(), threading.Event()
            monkeypatch.setattr(ranges, "seek", planned_first)
            monkeypatch.setattr(replaced_segments, "_unlink", read_meanwhile)
            store.clean(["orders"])
            replaced.set()
            read.join(LIMIT)
        stays = kraftlog.open(tmp_path, topics=["orders"]).records(["offset"]).to_table()["offset"].to_pylist()
        assert found == [offset for offset in stays if offset >= 100]
        assert 0 < len(found) < 150


def all_offsets(consumer: Consumer) -> Iterator[int]:
    while (table := consumer.poll()).num_rows:
        yield from table["offset"].to_pylist()
