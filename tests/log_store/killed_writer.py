"""A process that writes transactions to a store until it kills itself at a chosen moment."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa

from kraftlog import LogStore
from kraftlog.log_store.partition import Partition

PARTITIONS = 3
MOMENTS = ("under way", "before the decision", "behind the decision", "between the markers", "behind the markers")


def kill(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(number: int, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose call of that number kills the process."""
    calls = iter(range(number + 1))

    def called(*arguments: Any, **named: Any) -> Any:
        if next(calls, 0) == number:
            kill()
        return method(*arguments, **named)

    return called


def write(path: Path, acknowledged: Path, seed: int, moment: str) -> None:
    """Commit some transactions, and be killed within the next one; what is acknowledged is noted beside the store."""
    dice = Random(seed)
    store = LogStore(path)
    if "t" not in store.topics:
        store.create_topic("t", PARTITIONS)
    producer = store.producer("writer")
    with acknowledged.open("a") as notes:
        for number in range(dice.randrange(1, 4)):
            print(f"{seed}.{number} begins", file=notes, flush=True)
            send(producer, f"{seed}.{number}")
            producer.commit_transaction()
            print(f"{seed}.{number} committed", file=notes, flush=True)
        print(f"{seed}.last {moment}", file=notes, flush=True)
        send(producer, f"{seed}.last")
        if moment == "under way":
            kill()
        elif moment == "before the decision":
            with mock.patch.object(store._parts.transactions, "_append_state", kill):
                producer.commit_transaction()
        else:
            number = {"behind the decision": 0, "between the markers": dice.randrange(1, PARTITIONS)}.get(moment)
            if number is not None:
                with mock.patch.object(Partition, "append_marker", at_call(number, Partition.append_marker)):
                    producer.commit_transaction()
            producer.commit_transaction()
            kill()


def send(producer: Any, value: str) -> None:
    producer.begin_transaction()
    rows = pa.table({"value": [f"{value} {at}" for at in range(PARTITIONS)], "partition": list(range(PARTITIONS))})
    producer.send("t", rows)
    producer.send_offsets_to_transaction({("source", 0): abs(hash(value)) % 1000}, "g")
