"""Threads share a store: each has producers and consumers of its own."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.log_store.errors import StoreError

THREADS, COMMITS, PARTITIONS = 4, 12, 3


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
