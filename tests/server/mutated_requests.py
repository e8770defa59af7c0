"""Requests of clients, and mutations of them: the input of the fuzzer."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiokafka
import confluent_kafka
from broker_client import PRODUCE, batch
from test_broker_bad_clients import changed_values
from test_broker_faults import request_of

from kraftlog.messages.one_message import decode_message, encoded
from kraftlog.protocol.api import apis
from kraftlog.protocol.request import Request
from kraftlog.server.broker import Broker

NUMBERS = [0, 1, -1, 2, 127, 128, 255, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**31 - 2, 2**63 - 1, -(2**63)]
LAYOUTS = tuple(struct.Struct(layout) for layout in (">b", ">h", ">i", ">q"))


@contextmanager
def recorded() -> Iterator[list[bytes]]:
    """Record the frames that servers of this process parse."""
    frames: list[bytes] = []
    parse = Request.__dict__["parse"]

    def recording(frame: bytes, client_host: str) -> Request:
        frames.append(bytes(frame))
        return parse.__get__(None, Request)(frame, client_host)  # type: ignore[no-any-return]

    Request.parse = staticmethod(recording)  # type: ignore[method-assign, assignment]
    try:
        yield frames
    finally:
        Request.parse = parse  # type: ignore[method-assign]


def traffic(path: Path) -> list[bytes]:
    """Return the requests of clients that produce, consume, commit and administrate."""
    with recorded() as frames, Broker(path) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        for compression in ("none", "gzip", "lz4", "snappy", "zstd"):
            producer = confluent_kafka.Producer(servers | {"compression.type": compression})
            for number in range(20):
                producer.produce("orders", b"value" * 20, str(number).encode(), headers=[("h", b"x")])
            producer.flush(10)
        transactional = confluent_kafka.Producer(servers | {"transactional.id": "t"})
        transactional.init_transactions(10)
        consumer = confluent_kafka.Consumer(servers | {"group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        for is_commit in (True, False):
            transactional.begin_transaction()
            transactional.produce("orders", b"one")
            messages = consumer.consume(10, 10)
            positions = [confluent_kafka.TopicPartition(one.topic(), one.partition(), one.offset()) for one in messages]
            transactional.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 10)
            (transactional.commit_transaction if is_commit else transactional.abort_transaction)(10)
        consumer.commit(asynchronous=False)
        consumer.close()

        async def other() -> None:
            reader = aiokafka.AIOKafkaConsumer("orders", **options, group_id="h", auto_offset_reset="earliest")
            await reader.start()
            await reader.getmany(timeout_ms=1000)
            await reader.commit()
            await reader.stop()

        options = {"bootstrap_servers": broker.bootstrap_servers}
        asyncio.run(asyncio.wait_for(other(), 60))
    return frames


def one_of_each_version() -> Iterator[bytes]:
    """Yield a request of each kind and version."""
    for key, api in sorted(apis().items()):
        for version in range(api.request.versions.first, api.request.versions.last + 1):
            tags = b"\0" if version in api.request.flexible else b""
            header = struct.pack(">hhih", key, version, 1, 1) + b"c" + tags
            yield header + request_of(key, version)
            if key == PRODUCE:
                values = decode_message(api.request, version, request_of(key, version))
                for topic in values["topic_data"]:
                    for one in topic["partition_data"]:
                        one["records"] = batch("one", "two")
                yield header + b"".join(encoded(api.request, version, values))


class Mutations:
    """Changes of frames, by chance.

    Parameters
    ----------
    dice : random.Random
    corpus : list of bytes
        The frames; others may be appended.
    values_rate : float
        How many frames have other values of their fields; the others have other bytes.
    """

    def __init__(self, dice: random.Random, corpus: list[bytes], values_rate: float) -> None:
        self._dice = dice
        self._corpus = corpus
        self._values_rate = values_rate

    def frame(self) -> bytes:
        """Return a frame with changed bytes, or with changed values of its fields."""
        frame = self._dice.choice(self._corpus)
        return self._with_values(frame) if self._dice.random() < self._values_rate else self._with_bytes(frame)

    def _with_values(self, frame: bytes) -> bytes:
        try:
            request = Request.parse(frame, "")
            values = changed_values(request.values, self._dice, self._dice.choice((0.02, 0.1, 0.4)))
            body = b"".join(encoded(request.api.request, request.version, values))
        except Exception:  # a defect is found where frames are judged
            return self._with_bytes(frame)
        tags = b"\0" if request.version in request.api.request.flexible else b""
        return struct.pack(">hhih", request.api.key, request.version, 1, 1) + b"c" + tags + body

    def _with_bytes(self, frame: bytes) -> bytes:
        data = bytearray(frame)
        for _ in range(self._dice.choice((1, 1, 1, 2, 3, 8))):
            self._dice.choice(self._all)(self, data)
        return bytes(data)

    def _at(self, data: bytearray) -> int:
        """Return a byte, seldom one of the header."""
        first = 0 if self._dice.random() < 0.02 else min(8, len(data))
        return self._dice.randint(first, len(data))

    def _bit(self, data: bytearray) -> None:
        at = self._at(data)
        if at < len(data):
            data[at] ^= 1 << self._dice.randrange(8)

    def _byte(self, data: bytearray) -> None:
        at = self._at(data)
        data[at : at + 1] = self._dice.randbytes(1)

    def _number(self, data: bytearray) -> None:
        layout = self._dice.choice(LAYOUTS)
        half = 1 << (8 * layout.size - 1)
        value = (self._dice.choice(NUMBERS) + half) % (2 * half) - half
        at = self._at(data)
        data[at : at + layout.size] = layout.pack(value)

    def _varint(self, data: bytearray) -> None:
        at = self._at(data)
        data[at : at + self._dice.randrange(3)] = b"\xff" * self._dice.randrange(1, 6) + self._dice.randbytes(1)

    def _removed(self, data: bytearray) -> None:
        at = self._at(data)
        del data[at : at + self._dice.choice((1, 2, 4, 8, 40))]

    def _inserted(self, data: bytearray) -> None:
        at = self._at(data)
        data[at:at] = self._dice.randbytes(self._dice.choice((1, 2, 4, 8)))

    def _repeated(self, data: bytearray) -> None:
        at = self._at(data)
        data[at:at] = data[at : at + self._dice.choice((2, 8, 40, 200))] * self._dice.choice((1, 2, 20))

    def _spliced(self, data: bytearray) -> None:
        other = self._dice.choice(self._corpus)
        start = self._dice.randrange(len(other) + 1)
        at = self._at(data)
        data[at : at + self._dice.choice((0, 40, 10_000))] = other[start : start + self._dice.choice((4, 40, 400))]

    def _version(self, data: bytearray) -> None:
        if len(data) >= 4:
            data[2:4] = struct.pack(">h", self._dice.randrange(20))

    _all: tuple[Callable[[Mutations, bytearray], None], ...] = (
        _bit,
        _byte,
        _number,
        _number,
        _varint,
        _removed,
        _inserted,
        _repeated,
        _spliced,
        _version,
    )
