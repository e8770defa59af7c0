"""Records in the tests' two shapes: JSON lines, which the Java clients take and give, and Arrow tables.

A line is {"topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"}; bytes are hex.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pyarrow as pa
from jvm import Line

TIMESTAMP = 1_700_000_000_000
COLUMNS = ["topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers"]

_KEYS = [b"key", None, b"", "ключ".encode(), b"\x00" * 200]
_HEADERS: list[list[tuple[str, bytes | None]]] = [
    [],
    [("one", b"value")],
    [("null", None), ("empty", b""), ("", b"the empty key")],
    [("twice", b"1"), ("twice", b"2"), ("twice", b"1")],
    [("ключ", "значение".encode()), ("鍵", b"\x00\xff"), ("🔑", None), ("é", b"\xe9")],
    [(f"many-{i}", bytes([i])) for i in range(40)],
]
_TO_ENCODE = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp_ms", pa.int64()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


def made(topic: str, partition: int, count: int) -> list[Line]:
    """Make records of every kind: keys and values null, empty and large, odd headers, times that go back."""
    dice = random.Random(f"{topic}-{partition}")
    return [
        {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timestamp": 0 if offset == 5 else TIMESTAMP + dice.randrange(-1_000, 1_000),
            "timestampType": "CreateTime",
            "key": _hex(dice.choice(_KEYS)),
            "value": _hex(_value(dice, offset)),
            "headers": [[key, _hex(value)] for key, value in dice.choice(_HEADERS)],
        }
        for offset in range(count)
    ]


def table(lines: Iterable[Line]) -> pa.Table:
    """Return what kraftlog.encode takes: topic, partition and offset are the caller's to choose."""
    rows = [
        {
            "key": _bytes(line["key"]),
            "value": _bytes(line["value"]),
            "timestamp_ms": line["timestamp"],
            "headers": [{"key": key, "value": _bytes(value)} for key, value in line["headers"]],
        }
        for line in lines
    ]
    return pa.Table.from_pylist(rows, _TO_ENCODE)


def lines(records: pa.Table) -> Iterator[Line]:
    """Turn what kraftlog read, with these COLUMNS, into lines, one for each row."""
    for row in records.to_pylist():
        yield {
            "topic": row["topic"],
            "partition": row["partition"],
            "offset": row["offset"],
            "timestamp": row["timestamp_ms"],
            "timestampType": row["timestamp_type"],
            "key": _hex(row["key"]),
            "value": _hex(row["value"]),
            "headers": [[header["key"], _hex(header["value"])] for header in row["headers"]],
        }


def by_partition(lines: Iterable[Line]) -> dict[tuple[str, int], list[Line]]:
    """Sort lines into partitions, each in the order it came: Kafka promises none between partitions."""
    partitions: dict[tuple[str, int], list[Line]] = {}
    for line in lines:
        partitions.setdefault((line["topic"], line["partition"]), []).append(line)
    return partitions


def _value(dice: random.Random, offset: int) -> bytes | None:
    match offset % 10:
        case 0:
            return None
        case 1:
            return b""
        case 2 if offset % 50 == 2:  # more than a block of any codec, and compressible
            return f"large {offset} ".encode() * 8_000
        case 3 | 4 | 5:
            return f"text {offset} ".encode() * dice.randrange(1, 60)
        case _:
            return dice.randbytes(dice.randrange(1, 2_000))


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def mixed(topic: str, partition: int, count: int) -> Iterator[Line]:
    """Tell producers to write by turns: plainly, in transactions that are committed, and in some that are not."""
    lines = made(topic, partition, count)
    for number, begin in enumerate(range(0, count, 20)):
        some = [{name: line[name] for name in line if name != "offset"} for line in lines[begin : begin + 20]]
        if number % 3 == 0:
            yield from [{"producer": {"compression.type": "lz4"}}, *some]
        else:
            yield {"producer": {"transactional.id": f"etl-{partition}", "compression.type": "zstd"}}
            yield from [{"transaction": "begin"}, *some, {"transaction": "commit" if number % 3 == 1 else "abort"}]
