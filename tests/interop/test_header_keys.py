"""Keys of headers that are no UTF-8 become the text that Kafka makes of them."""

from __future__ import annotations

import itertools
import json
import random
import struct

import pytest
from jvm import Jvm

import kraftlog

# the first and last byte of each kind of sequence, and of what may follow
EDGES = bytes.fromhex("41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")


def odd_keys() -> list[bytes]:
    keys = [bytes(part) for size in (1, 2, 3) for part in itertools.product(EDGES, repeat=size)]
    random_ = random.Random(1)
    leads = bytes.fromhex("e0 ed ef f0 f1 f4 f5")
    for _ in range(20_000):
        keys.append(bytes([random_.choice(leads), *random_.choices(EDGES, k=random_.randint(2, 5))]))
    for _ in range(5_000):
        keys.append(random_.randbytes(random_.randint(1, 20)))
    return keys


def batch_of(key: bytes) -> bytes:
    """Return a batch of one record with one header, whose value is empty."""
    body = b"\0\0\0\1\1\2" + bytes([2 * len(key)]) + key + b"\0"
    record = bytes([2 * len(body)]) + body
    checked = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1) + record
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, kraftlog.crc32c(checked)) + checked


@pytest.fixture(scope="module")
def answers(java: Jvm) -> dict[bytes, str]:
    keys = odd_keys()
    lines = java.run("HeaderKeys", lines=({"key": key.hex()} for key in keys))
    texts = [bytes.fromhex(json.loads(line)["key"]).decode() for line in lines]
    return dict(zip(keys, texts, strict=True))


def test_columns(answers: dict[bytes, str]):
    data = b"".join(map(batch_of, answers))
    headers = kraftlog.decode(data, columns=["headers"], strict=True).to_table().column("headers").to_pylist()
    found = dict(zip(answers, (pairs[0]["key"] for pairs in headers), strict=True))
    assert {key.hex(): found[key] for key in answers if found[key] != answers[key]} == {}


def test_objects(answers: dict[bytes, str]):
    records = kraftlog.records(b"".join(map(batch_of, answers)), strict=True)
    found = dict(zip(answers, (record.headers[0][0] for record in records), strict=True))
    assert {key.hex(): found[key] for key in answers if found[key] != answers[key]} == {}
