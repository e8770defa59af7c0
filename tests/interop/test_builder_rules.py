"""What Kafka's own builder of batches refuses, every way of encoding refuses, and nothing else."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import product
from typing import Any

import pyarrow as pa
from jvm import Jvm

import kraftlog

ONE = pa.table({"value": [b"v"]})
STATES = [
    {"timestamp_ms": timestamp_ms, "is_transactional": is_transactional}
    | {"producer_id": producer_id, "producer_epoch": producer_epoch, "base_sequence": base_sequence}
    for timestamp_ms in (-(2**63), -7, -2, -1, 0, 1, 2**63 - 1)
    for producer_id in (-1, 0, 2**63 - 1)
    for producer_epoch, base_sequence in product((-1, 0, 2**15 - 1), (-1, 0, 2**31 - 1))
    for is_transactional in (False, True)
]
LEVELS = [
    {"compression": compression, "level": level}
    for compression in ("gzip", "lz4", "zstd")
    for level in (-(2**31), -131073, -131072, -7, -1, 0, 1, 9, 10, 12, 17, 18, 22, 23, 2**31 - 1)
]


def takes(encode: Any, **options: Any) -> bool:
    with suppress(ValueError):
        encode(**options)
        return True
    return False


def built(timestamp_ms: int, **state: Any) -> None:
    builder = kraftlog.RecordBatchBuilder()
    builder.append(value=b"v", timestamp_ms=timestamp_ms)
    builder.close(**state)


def built_at(timestamp_ms: int, **state: Any) -> None:
    builder = kraftlog.RecordBatchBuilder(timestamp_ms=timestamp_ms)
    builder.append(value=b"v")
    builder.close(**state)


def set_later(timestamp_ms: int, **state: Any) -> None:
    encoder = kraftlog.Encoder(**state)
    encoder.timestamp_ms = timestamp_ms
    encoder.write(ONE)
    encoder.finish()


def kafkas(java: Jvm, lines: list[dict[str, Any]]) -> list[bool]:
    return [json.loads(line)["taken"] for line in java.run("BuilderRules", lines=lines)]


def test_producers_and_timestamps(java: Jvm):
    expected = kafkas(java, STATES)
    assert 0 < sum(expected) < len(expected)
    for encode in (built, built_at, set_later, lambda **state: kraftlog.encode(ONE, **state)):
        assert [takes(encode, **state) for state in STATES] == expected


def test_levels(java: Jvm):
    expected = kafkas(java, LEVELS)
    assert 0 < sum(expected) < len(expected)
    for encode in (
        kraftlog.Encoder,
        kraftlog.RecordBatchBuilder,
        lambda **options: kraftlog.encode(ONE, **options),
    ):
        found = [takes(encode, compression=each["compression"], compression_level=each["level"]) for each in LEVELS]
        assert found == expected
