"""Accounts whose sum is constant: each transaction moves an amount, and commits the offset of the order for it."""

from __future__ import annotations

from collections.abc import Iterator

import kraftlog

ACCOUNTS, ORDERS = "accounts", "orders"


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
