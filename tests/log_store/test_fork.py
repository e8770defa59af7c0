"""A child that inherits a store by fork: it is refused everything, and writes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import kraftlog
from kraftlog import LogStore
from kraftlog.log_store.errors import ForkedStoreError


def in_child(work: Callable[[], object]) -> int:
    """Do something in a child process; return 0 when that is refused by name of the process that has the store."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            work()
            status = 1
        except ForkedStoreError as error:
            status = 0 if f"process {os.getppid()} " in str(error) else 3
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def content(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def test_a_child_is_refused(tmp_path: Path):
    with LogStore(tmp_path, sync_threads=0) as store:
        store.create_topic("t")
        plain, producer = store.producer(), store.producer("etl")
        consumer = store.consumer("g")
        consumer.subscribe(["t"])
        plain.send("t", value="waits")
        producer.begin_transaction()
        producer.send("t", pa.table({"value": ["one"]}))
        uses = [
            lambda: store.create_topic("u"),
            lambda: store.delete_topic("t"),
            lambda: store.topics,
            store.producer,
            store.consumer,
            store.flush,
            store.groups,
            store.transactional_ids,
            store.clean,
            store.apply_retention,
            lambda: store.committed("g"),
            lambda: store.abort_transaction("etl"),
            lambda: plain.send("t", value="child"),
            lambda: plain.send("t", pa.table({"value": ["child"]})),
            plain.flush,
            plain.init_transactions,
            producer.commit_transaction,
            producer.abort_transaction,
            producer.begin_transaction,
            lambda: producer.send_offsets_to_transaction({("t", 0): 1}, "g"),
            lambda: producer.transaction().__enter__(),
            consumer.poll,
            consumer.commit,
            consumer.position,
            consumer.assignment,
            lambda: consumer.seek(("t", 0), 0),
        ]
        before = content(tmp_path)
        assert [in_child(use) for use in uses] == [0] * len(uses)
        closes = [store.close, plain.close, producer.close, consumer.close, lambda: store.__exit__(None, None, None)]
        assert [in_child(close) for close in closes] == [1] * len(closes)
        assert content(tmp_path) == before
        producer.commit_transaction()
    with LogStore(tmp_path, sync_threads=0) as again, again.consumer() as reader:
        reader.subscribe(["t"])
        assert sorted(reader.poll()["value"].to_pylist()) == [b"one", b"waits"]
    assert kraftlog.open(tmp_path).errors().num_rows == 0


def test_a_child_keeps_the_lock_of_its_parent(tmp_path: Path):
    with LogStore(tmp_path, sync_threads=0) as store:

        def close_and_open() -> None:
            store.close()
            try:
                LogStore(tmp_path)
            except OSError:
                store.flush()  # which is refused

        assert in_child(close_and_open) == 0
