"""What real transactional producers are told to do, several at a time, in the lines that Produce.java takes.

The key of a record says whose transaction it is in, which one, and what becomes of that.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from jvm import Line
from producer_log import START
from records import by_partition, made

TOPIC = "real"
PARTITIONS = range(2)
CONFIGS = {"internal.segment.bytes": str(100 << 10)}  # several segments
TURNS = 12
PRODUCERS = ["one", "two", "three"]
LONG, FENCED, LEFT = "long", "fenced", "left"
STEPS = {"committed": "commit", "aborted": "abort", "open": "leave"}
NONE = b"no transaction"


def program() -> Iterator[Line]:
    """Yield the lines: transactions side by side, a long one around them, one fenced off, one left open at the end."""
    dice = random.Random(TOPIC)
    records = _records()
    for name in (*PRODUCERS, LONG, FENCED, LEFT):
        yield _producer(name)
    yield {"by": LONG, "transaction": "begin"}
    for turn in range(TURNS):
        ends = {name: dice.choice(["committed", "aborted"]) for name in dice.sample(PRODUCERS, 2)}
        for name in ends:
            yield {"by": name, "transaction": "begin"}
        for _ in range(2):
            for name, end in ends.items():
                yield from _sent(records, name, turn, end)
            yield from _sent(records, LONG, 0, "aborted")
        for name, end in ends.items():
            yield {"by": name, "transaction": STEPS[end]}
    yield {"by": LONG, "transaction": "abort"}
    yield from [{"by": PRODUCERS[0], "transaction": "begin"}, {"by": PRODUCERS[0], "transaction": "commit"}]
    yield {"by": FENCED, "transaction": "begin"}
    yield from _sent(records, FENCED, 0, "aborted")
    yield {"by": FENCED, "transaction": "leave"}
    yield _producer(FENCED)  # a second one of the same id, which ends what the first has left
    yield {"by": LEFT, "transaction": "begin"}
    yield from (line for line in _sent(records, LEFT, 0, "open") if line["partition"] == 0)
    yield {"by": LEFT, "transaction": "leave"}
    yield {"by": "", "producer": {}}
    for partition in PARTITIONS:
        yield next(records[partition]) | {"key": NONE.hex()}


def _producer(name: str) -> Line:
    return {"by": name, "producer": {"transactional.id": name, "transaction.timeout.ms": "600000"}}


def _records() -> dict[int, Iterator[Line]]:
    of = {partition: made(TOPIC, partition, 400) for partition in PARTITIONS}
    return {partition: iter(line | {"timestamp": START + line["offset"]} for line in of[partition]) for partition in of}


def _sent(records: dict[int, Iterator[Line]], name: str, number: int, end: str) -> Iterator[Line]:
    key = f"{name} {number} {end}".encode().hex()
    for partition in PARTITIONS:
        for _ in range(2):
            yield next(records[partition]) | {"by": name, "key": key}


def expected(consumed: Iterable[Line], producer_ids: dict[str, int]) -> list[Line]:
    """Return the transactions that are in the records, as rows of kraftlog's table."""
    rows = []
    for (_, partition), lines in by_partition(consumed).items():
        offsets: dict[bytes, list[int]] = {}
        for line in lines:
            offsets.setdefault(bytes.fromhex(line["key"]), []).append(line["offset"])
        for key in offsets.keys() - {NONE}:
            name, _, state = key.decode().split()
            rows.append(
                {
                    "partition": partition,
                    "producer_id": producer_ids[name],
                    "state": state,
                    "first_offset": offsets[key][0],
                    "last_offset": offsets[key][-1],
                    "records_count": len(offsets[key]),
                }
            )
    return rows
