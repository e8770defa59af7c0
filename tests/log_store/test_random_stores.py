"""Random work on a store: consumers, and readers of the files, see what a model in plain Python says."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kraftlog
from kraftlog import LogStore
from kraftlog.log_store.consumer import Consumer
from kraftlog.log_store.producer import Producer

PARTITIONS = 2
NAMES = ("one", "two")
SEND = st.tuples(
    st.just("send"), st.sampled_from([*NAMES, "plain"]), st.integers(0, PARTITIONS - 1), st.integers(1, 40)
)
END = st.tuples(st.sampled_from(["commit", "abort"]), st.sampled_from(NAMES))
OTHER = st.tuples(st.sampled_from(["poll", "close", "crash", "init one"]))
STEPS = st.lists(st.one_of(SEND, SEND, END, OTHER), max_size=60)


@dataclass
class Model:
    """Records of each partition in order: value, and the transaction that it belongs to; what became of each."""

    records: dict[int, list[tuple[bytes, int | None]]] = field(default_factory=lambda: defaultdict(list))
    states: dict[int, str] = field(default_factory=dict)
    open: dict[str, int] = field(default_factory=dict)

    def send(self, name: str, partition: int, values: list[bytes]) -> None:
        transaction = None
        if name != "plain":
            transaction = self.open.setdefault(name, len(self.states))
            self.states.setdefault(transaction, "open")
        self.records[partition] += [(value, transaction) for value in values]

    def end(self, name: str, state: str) -> None:
        if name in self.open:
            self.states[self.open.pop(name)] = state

    def restart(self) -> None:
        for name in list(self.open):
            self.end(name, "abort")

    def committed(self, partition: int) -> list[bytes]:
        found = []
        for value, transaction in self.records[partition]:
            state = "commit" if transaction is None else self.states[transaction]
            if state == "open":
                break
            if state == "commit":
                found.append(value)
        return found

    def written(self, partition: int) -> list[bytes]:
        return [value for value, _ in self.records[partition]]


class Reader:
    """A consumer, and what it has seen over all restarts."""

    def __init__(self, isolation_level: str) -> None:
        self.isolation_level = isolation_level
        self.seen: dict[int, list[bytes]] = defaultdict(list)
        self.positions: dict[tuple[str, int], int] = {}
        self.consumer: Consumer

    def start(self, store: LogStore) -> None:
        self.consumer = store.consumer(isolation_level=self.isolation_level)  # type: ignore[arg-type]
        self.consumer.assign([("t", partition) for partition in range(PARTITIONS)])
        for key, offset in self.positions.items():
            self.consumer.seek(key, offset)

    def poll(self) -> None:
        rows = self.consumer.poll()
        for partition, value in zip(rows["partition"].to_pylist(), rows["value"].to_pylist(), strict=True):
            self.seen[partition].append(value)
        self.positions = self.consumer.position()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, segment_bytes=st.sampled_from([1024, 4096, 1 << 20]))
def test_random_work(steps: list[tuple], segment_bytes: int):
    model, count = Model(), 0
    readers = Reader("read_committed"), Reader("read_uncommitted")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        store, producers = opened(path)
        store.create_topic("t", PARTITIONS, {"internal.segment.bytes": segment_bytes})
        for reader in readers:
            reader.start(store)
        for step in steps:
            match step:
                case "send", who, partition, rows:
                    values = [f"{count + at}".encode() for at in range(rows)]
                    count += rows
                    producer = producers[who]
                    if who != "plain" and who not in model.open:
                        producer.begin_transaction()
                    producer.send("t", pa.table({"value": values}), partition=partition)
                    producer.flush()
                    model.send(who, partition, values)
                case "commit" | "abort" as state, who:
                    if who in model.open:
                        producer = producers[who]
                        producer.commit_transaction() if state == "commit" else producer.abort_transaction()
                    model.end(who, state)
                case ("poll",):
                    for reader in readers:
                        reader.poll()
                case ("init one",):
                    producers["one"].init_transactions()
                    model.end("one", "abort")
                case (how,):
                    store.close() if how == "close" else store._abandon()
                    store, producers = opened(path)
                    model.restart()
                    for reader in readers:
                        reader.start(store)
        for reader in readers:
            reader.poll()
        for partition in range(PARTITIONS):
            assert readers[0].seen[partition] == model.committed(partition)
            assert readers[1].seen[partition] == model.written(partition)
        store.close()
        model.restart()
        log = kraftlog.open(path, topics=["t"]) if count else None
        for partition in range(PARTITIONS if log is not None else 0):
            shown = log.records(["partition", "value"], isolation_level="read_committed").to_table()  # type: ignore[union-attr]
            rows = [row["value"] for row in shown.to_pylist() if row["partition"] == partition]
            assert rows == model.committed(partition)
        if log is not None:
            assert log.errors().num_rows == 0


def opened(path: Path) -> tuple[LogStore, dict[str, Producer]]:
    store = LogStore(path, sync_threads=0)
    producers = {name: store.producer(name, transaction_timeout_ms=900_000) for name in NAMES}
    return store, {**producers, "plain": store.producer()}
