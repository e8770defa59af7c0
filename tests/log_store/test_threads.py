"""Threads share a store: each has producers and consumers of its own."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.log_store.errors import ConcurrentModificationError, StoreError

THREADS, COMMITS, PARTITIONS = 4, 12, 3
SENDS = 60


@pytest.mark.parametrize("sync_threads", [0, 2])
def test_commits_of_several_threads(tmp_path: Path, sync_threads: int):
    """Nothing is lost, nothing comes twice, each transaction is whole; a reader sees whole ones all the while."""
    with LogStore(tmp_path, sync_threads=sync_threads) as store:
        store.create_topic("t", PARTITIONS, {"internal.segment.bytes": 4096})

        def write(thread: int) -> None:
            producer = store.producer(f"id-{thread}")
            for commit in range(COMMITS):
                rows = {"value": [f"{thread}.{commit}"] * PARTITIONS, "partition": list(range(PARTITIONS))}
                producer.begin_transaction()
                producer.send("t", pa.table(rows))
                producer.send_offsets_to_transaction({("source", thread): commit + 1}, "g")
                producer.abort_transaction() if commit % 4 == 3 else producer.commit_transaction()

        def read() -> Counter[tuple[int, bytes]]:
            seen: Counter[tuple[int, bytes]] = Counter()
            with store.consumer(isolation_level="read_committed") as consumer:
                consumer.subscribe(["t"])
                while sum(seen.values()) < THREADS * COMMITS * 3 // 4 * PARTITIONS:
                    rows = consumer.poll(timeout=1)
                    seen.update(zip(rows["partition"].to_pylist(), rows["value"].to_pylist(), strict=True))
            return seen

        with ThreadPoolExecutor(THREADS + 1) as pool:
            reader = pool.submit(read)
            for writer in [pool.submit(write, thread) for thread in range(THREADS)]:
                writer.result(timeout=120)
            seen = reader.result(timeout=120)
        committed = [f"{thread}.{commit}".encode() for thread in range(THREADS) for commit in range(COMMITS)]
        expected = [value for value in committed if int(value.split(b".")[1]) % 4 != 3]
        assert seen == {(partition, value): 1 for partition in range(PARTITIONS) for value in expected}
        offsets = {key[1]: each.offset for key, each in store.committed("g").items()}
        assert offsets == dict.fromkeys(range(THREADS), COMMITS - 1)
    assert kraftlog.open(tmp_path).errors().num_rows == 0


def test_producers_of_one_id(tmp_path: Path):
    """Threads that take an id from each other: one of them has it in the end, and nothing is there in part."""
    with LogStore(tmp_path) as store:
        store.create_topic("t", PARTITIONS)

        def write(thread: int) -> int:
            done, codes = 0, set()
            for commit in range(COMMITS):
                producer = store.producer("one")
                rows = {"value": [f"{thread}.{commit}"] * PARTITIONS, "partition": list(range(PARTITIONS))}
                try:
                    with producer.transaction():
                        producer.send("t", pa.table(rows))
                    done += 1
                except StoreError as error:
                    codes.add(error.kafka_code)
            assert codes <= {47, 90}  # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
            return done

        with ThreadPoolExecutor(THREADS) as pool:
            done = sum(pool.map(write, range(THREADS)))
    shown = kraftlog.open(tmp_path, topics=["t"]).records(["value"], isolation_level="read_committed").to_table()
    counts = Counter(shown["value"].to_pylist())
    assert set(counts.values()) <= {PARTITIONS}
    assert len(counts) == done > 0


@pytest.mark.parametrize("kind", ["table", "single", "transaction"])
def test_threads_of_one_producer(tmp_path: Path, kind: str):
    """What any thread sent is there once, in the order in which it sent it; sequences have no gap."""
    with LogStore(tmp_path, fsync="close") as store:
        store.create_topic("t", PARTITIONS)
        producer = store.producer("etl" if kind == "transaction" else None)
        if kind == "transaction":
            producer.begin_transaction()

        def write(thread: int) -> None:
            for each in range(SENDS):
                if kind == "single":
                    producer.send("t", value=f"{thread}.{each}", partition=thread % PARTITIONS)
                else:
                    producer.send("t", pa.table({"value": [f"{thread}.{each}"]}), partition=thread % PARTITIONS)
                if each % 10 == 9:
                    producer.flush()

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-4)
        try:
            with ThreadPoolExecutor(THREADS) as pool:
                for done in [pool.submit(write, thread) for thread in range(THREADS)]:
                    done.result(timeout=120)
        finally:
            sys.setswitchinterval(interval)
        producer.commit_transaction() if kind == "transaction" else producer.flush()
    log = kraftlog.open(tmp_path, topics=["t"])
    table = log.records(["value"], isolation_level="read_committed").to_table()
    shown = [tuple(map(int, value.split(b"."))) for value in table["value"].to_pylist()]
    for thread in range(THREADS):
        assert [each for own, each in shown if own == thread] == list(range(SENDS))
    assert len(shown) == THREADS * SENDS
    assert list(log.verify()) == []


def test_a_consumer_refuses_a_second_thread(tmp_path: Path):
    with LogStore(tmp_path, fsync="close") as store:
        store.create_topic("t")
        consumer = store.consumer("g")
        consumer.subscribe(["t"])
        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(consumer.poll, timeout=5.0)
            uses = [consumer.poll, consumer.position, consumer.commit, consumer.assignment, consumer.close]
            while not consumer._user and not waits.done():
                pass
            for use in uses:
                with pytest.raises(ConcurrentModificationError, match="one thread at a time"):
                    use()
            with store.producer() as producer:
                producer.send("t", value="one")
            assert waits.result(timeout=60).num_rows == 1
        assert consumer.position() == {("t", 0): 1}
