"""``validate`` says of each batch what a broker answers to a producer that sends it."""

from __future__ import annotations

import random
import struct
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from kafka_broker import Broker
from produce_request import RawProducer

import kraftlog
from kraftlog import schema

NOT_AUDITED = "its records have times of the future"
SMALL = 3000
TOPICS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "plain": ({}, {}),
    "compacted": ({"cleanup.policy": "compact"}, {"compacted": True}),
    "small": ({"max.message.bytes": str(SMALL)}, {"max_message_bytes": SMALL}),
    "append-time": ({"message.timestamp.type": "LogAppendTime"}, {"timestamp_type": "LogAppendTime"}),
    "recent": (
        {"message.timestamp.before.max.ms": "86400000", "message.timestamp.after.max.ms": "86400000"},
        {"timestamp_before_max_ms": 86_400_000, "timestamp_after_max_ms": 86_400_000},
    ),
}
FIELDS = {  # of the header, behind its crc, with the widths that struct knows
    "attributes": (21, "h"),
    "last_offset_delta": (23, "i"),
    "base_timestamp": (27, "q"),
    "max_timestamp": (35, "q"),
    "producer_id": (43, "q"),
    "producer_epoch": (51, "h"),
    "base_sequence": (53, "i"),
    "records_count": (57, "i"),
}
BEFORE_CRC = {"base_offset": (0, "q"), "partition_leader_epoch": (12, "i"), "magic": (16, "b"), "crc": (17, "I")}
CODECS = {"none": None, "gzip": gzip_encode, "snappy": snappy_encode, "lz4": lz4_encode, "zstd": zstd_encode}
RECORDS_AT = 61
NONE, UNKNOWN_SERVER_ERROR, INVALID_TIMESTAMP, INVALID_RECORD = 0, -1, 32, 87
NOT_LEADER = (3, 5, 6)  # a topic that was just made: not known yet, without a leader, or its leader not ready
NO_BATCH = INVALID_RECORD  # of a request without a whole batch
BATCHES = 60  # for each topic and compression
DAMAGED = 250  # batches for each compression


def sealed(batch: bytearray) -> bytearray:
    """Make the checksum match again."""
    struct.pack_into(">I", batch, 17, kraftlog.crc32c(batch[21:]))
    return batch


def plain_batch(random_: random.Random, now: int) -> bytearray:
    count = random_.randint(1, 6)
    ages = [0, 1, 1000, 10_000_000, 200_000_000, -10_000_000, -200_000_000]
    stamps = [now - i for i in range(count)]
    if random_.random() < 0.4:
        stamps = [now - random_.choice(ages) for _ in range(count)]
    if random_.random() < 0.1:
        stamps = [-1] * count
    keys = [None if random_.random() < 0.05 else b"key" for _ in range(count)]
    values = [random_.randbytes(random_.choice([0, 10, 300, 900])) for _ in range(count)]
    headers = [[{"key": "h", "value": b"v"}] * random_.randint(0, 2) for _ in range(count)]
    table = pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": values,
            "timestamp_ms": stamps,
            "headers": pa.array(headers, schema.HEADERS),
        }
    )
    return bytearray(kraftlog.encode(table, max_batch_bytes=1 << 20).to_pybytes())


def with_bad_records(random_: random.Random, batch: bytearray) -> bytearray:
    """Flip bits of the records, or cut them off, or let bytes follow."""
    what = random_.randrange(4)
    for _ in range(random_.randint(1, 3) if what < 2 else 0):
        batch[random_.randrange(RECORDS_AT, len(batch))] ^= 1 << random_.randrange(8)
    if what == 2:
        batch = batch[: random_.randrange(RECORDS_AT, len(batch))]
    elif what == 3:
        batch += random_.randbytes(random_.randint(1, 20))
    return batch


def compressed(batch: bytearray, compression: str) -> bytearray:
    encode = CODECS[compression]
    if encode is not None:
        batch[RECORDS_AT:] = encode(bytes(batch[RECORDS_AT:]))
        batch[22] |= list(CODECS).index(compression)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    return sealed(batch)


def with_bad_header(random_: random.Random, batch: bytearray) -> bytearray:
    """Change a field, in most cases with a checksum that matches."""
    if random_.random() < 0.7:
        at, kind = FIELDS[random_.choice(list(FIELDS))]
        (old,) = struct.unpack_from(f">{kind}", batch, at)
        bits = 8 * struct.calcsize(kind)
        new = random_.choice([old + 1, old - 1, -1, 0, 1, old ^ 1 << random_.randrange(bits - 1), -(2 ** (bits - 1))])
        least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        struct.pack_into(f">{kind}", batch, at, min(max(new, least), most))
        return sealed(batch)
    if random_.random() < 0.5:
        at, kind = BEFORE_CRC[random_.choice(list(BEFORE_CRC))]
        struct.pack_into(f">{kind}", batch, at, random_.choice([0, 1, 3, 77]))
    else:
        batch[random_.randrange(len(batch))] ^= 1 << random_.randrange(8)
    return batch


def with_bad_payload(random_: random.Random, batch: bytearray) -> bytearray:
    """Flip bits of what was compressed, cut it off, or let bytes follow; length and checksum match."""
    batch = with_bad_records(random_, batch)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    return sealed(batch)


def mutated(random_: random.Random, compression: str, now: int) -> bytes:
    batch = plain_batch(random_, now)
    if random_.random() < 0.4:
        batch = with_bad_records(random_, batch)
    batch = compressed(batch, compression)
    if random_.random() < 0.4:
        batch = with_bad_header(random_, batch)
    return bytes(batch)


def is_of_a_producer(batch: bytes, row: dict[str, Any] | None) -> bool:
    """Whether what a broker knows of producers decides as well: of an id, an epoch, a transaction."""
    attributes, producer_id = struct.unpack_from(">h", batch, 21)[0], struct.unpack_from(">q", batch, 43)[0]
    return bool(attributes & 0x10) or (producer_id >= 0 and row is not None and row["error"] == "NONE")


def is_stricter(batch: bytes, row: dict[str, Any]) -> bool:
    """Whether we refuse a record of a compressed batch, whose key, value and headers a broker passes over."""
    return bool(batch[22] & 7) and row["error_code"] == INVALID_RECORD and "record " in row["message"]


@pytest.fixture(scope="module")
def running(broker: Broker):
    with broker:
        broker.create({"name": name, "partitions": 1, "configs": configs} for name, (configs, _) in TOPICS.items())
        yield broker


def is_documented(batch: bytes) -> bool:
    """Whether Kafka reads the payload and we do not, as codec/compression.py says: gzip with reserved flags."""
    return batch[22] & 7 == 1 and len(batch) > RECORDS_AT + 3 and bool(batch[RECORDS_AT + 3] & 0xE0)


def sent(producer: RawProducer, topic: str, batch: bytes) -> tuple[int, list[int], str | None]:
    """Send a batch; anew while the topic, which was just made, has no leader that is ready."""
    for _ in range(100):
        answer = producer.send(topic, batch)
        if answer[0] not in NOT_LEADER:
            break
        time.sleep(0.1)
    return answer


def differences(running: Broker, topic: str, batches: Iterable[bytes]) -> tuple[list[object], Counter[str]]:
    """Send batches to a topic: what the broker answers otherwise than ``validate``, and how often that said what."""
    seen: Counter[str] = Counter()
    different: list[object] = []
    with RawProducer(running.bootstrap_servers) as producer:
        for number, batch in enumerate(batches):
            rows = kraftlog.validate(batch, **TOPICS[topic][1]).to_pylist()
            row = rows[0] if rows else None
            if is_of_a_producer(batch, row) or is_documented(batch):
                continue
            code, indices, message = sent(producer, topic, batch)
            if row is not None and is_stricter(batch, row):
                assert code in (NONE, row["error_code"], UNKNOWN_SERVER_ERROR, INVALID_TIMESTAMP), (row, batch.hex())
                continue
            is_same = code == (row["error_code"] if row else NO_BATCH)
            if not is_same or (indices and row is not None and row["record_index"] not in indices):
                different.append((number, code, indices, message, row, batch.hex()))
            seen[row["error"] if row else "no batch"] += 1
    for line in different:
        print(line)
    print(seen)
    return different, seen


@pytest.mark.sweep(8)
@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("compression", CODECS)
def test_mutated_batches(running: Broker, topic: str, compression: str):
    random_ = random.Random(f"{topic} {compression}")
    now = time.time_ns() // 1_000_000
    different, seen = differences(running, topic, (mutated(random_, compression, now) for _ in range(BATCHES)))
    assert different == []
    assert seen["NONE"] > BATCHES // 5
    assert len(seen) >= 3


@pytest.mark.sweep(2)
@pytest.mark.parametrize("compression", [name for name in CODECS if name != "none"])
def test_damaged_payloads(running: Broker, compression: str):
    """What is damaged is what was compressed, in a batch that is sound as far as its header tells."""
    random_ = random.Random(f"payload {compression}")
    now = time.time_ns() // 1_000_000
    batches = (
        bytes(with_bad_payload(random_, compressed(plain_batch(random_, now), compression))) for _ in range(DAMAGED)
    )
    different, seen = differences(running, "plain", batches)
    assert different == []
    assert seen["UNKNOWN_SERVER_ERROR"] > DAMAGED // 3
    assert seen["NONE"] > DAMAGED // 10


@pytest.mark.sweep(2)
@pytest.mark.parametrize("compression", [name for name in CODECS if name != "none"])
def test_short_payloads(running: Broker, compression: str):
    """Of what was compressed, only some first bytes are there, or none."""
    now = time.time_ns() // 1_000_000
    whole = compressed(plain_batch(random.Random("short"), now), compression)
    batches = []
    for size in range(min(40, len(whole) - RECORDS_AT)):
        batch = whole[: RECORDS_AT + size]
        struct.pack_into(">i", batch, 8, len(batch) - 12)
        batches.append(bytes(sealed(batch)))
    assert differences(running, "plain", batches)[0] == []
