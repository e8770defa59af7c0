"""Accounts whose sum is constant: each transaction moves an amount, and commits the offset of the order for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.log_store.partition import Partition
from kraftlog.log_store.producer import Producer
from standing_clock import StandingClock

ACCOUNTS, ORDERS = "accounts", "orders"
STEPS = 80


def values(log: kraftlog.Log, level: str = "read_committed") -> list[int]:
    return [int(value) for value in log.records(["value"], isolation_level=level).to_table()["value"].to_pylist()]


def committed_offsets(log: kraftlog.Log) -> dict[int, int]:
    rows = log.transactions(["state", "input_offsets"]).to_pylist()
    offsets = [each for row in rows if row["state"] == "committed" for each in row["input_offsets"]]
    found: dict[int, int] = {}
    for each in offsets:
        found[each["partition"]] = max(each["offset"], found.get(each["partition"], 0))
    return found


def holds_nothing_back(log: kraftlog.Log) -> bool:
    """Whether each record that a read_committed consumer gets has an offset from which on it does."""
    rows = log.records(["visible_at"], isolation_level="read_committed").to_table()
    return rows["visible_at"].null_count == 0


def is_whole(log: kraftlog.Log) -> bool:
    """Whether sums are constant, and each offset that was committed is of an order that is there."""
    accounts = log.of_files(log.found.only(lambda topic, _: topic == ACCOUNTS))
    ends = {one.partition: one.end_offset for one in log.partitions if one.topic == ORDERS}
    return sum(values(accounts)) == 0 and all(offset <= ends[of] for of, offset in committed_offsets(log).items())


def counted(log: kraftlog.Log) -> Iterator[tuple[str, int, int, int]]:
    """Return markers and plain records: topic, partition, offset, timestamp."""
    columns = ["topic", "partition", "offset", "timestamp_ms", "is_transactional", "is_control"]
    for row in log.records(columns, include_control=True).to_table().to_pylist():
        if row["is_control"] or not row["is_transactional"]:
            yield row["topic"], row["partition"], row["offset"], row["timestamp_ms"]


def with_clocks_of_leaders(monkeypatch: pytest.MonkeyPatch, draw: Random) -> None:
    """Let the markers of one transaction have several times, as the leaders of its partitions set them."""
    append = Partition.append_marker

    def append_later(self: Partition, *args: Any, timestamp_ms: int, **more: Any) -> None:
        append(self, *args, timestamp_ms=timestamp_ms + draw.randrange(100), **more)

    monkeypatch.setattr(Partition, "append_marker", append_later)


def history(folder: Path, draw: Random) -> tuple[int, int]:
    """Write transfers between accounts: each takes an order, and commits its offset; return the times of the log."""
    clock = StandingClock()
    store = LogStore(folder, clock=clock, sync_threads=0)
    store.create_topic(ACCOUNTS, 3)
    store.create_topic(ORDERS, 2)
    plain = store.producer()
    producers = [store.producer(f"transfer-{number}") for number in range(3)]
    written, taken, begin = [0, 0], [0, 0], clock.now
    under_way: dict[Producer, bool] = {}
    for _ in range(STEPS):
        clock.now += draw.choice((0, 1, 50))
        order = draw.randrange(2)
        for _ in range(draw.randrange(3)):
            ahead = draw.randrange(300)  # the clock of another producer
            plain.send(ORDERS, value="order", partition=order, timestamp_ms=clock.now + ahead)
            plain.flush()
            written[order] += 1
        producer = draw.choice(producers)
        if producer not in under_way:
            producer.begin_transaction()
            amount, (to, of) = draw.randrange(1, 100), draw.sample(range(3), 2)
            producer.send(ACCOUNTS, value=str(amount), partition=to)
            producer.flush()
            producer.send(ACCOUNTS, value=str(-amount), partition=of)
            taken[order] = draw.randint(taken[order], written[order])
            producer.send_offsets_to_transaction({(ORDERS, order): taken[order]}, group="transfers")
            producer.flush()
            under_way[producer] = draw.random() < 0.8
        elif under_way.pop(producer):
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    end = clock.now
    store.close()
    return begin, end
