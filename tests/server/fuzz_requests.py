"""Mutates recorded requests and gives them to the handlers of both servers, in this process and without sockets.

The corpus is the traffic of three clients, and a request of each kind and version. A mutated frame whose answer is of a
new kind joins the corpus. An exception other than those that end a connection, a request that takes too long, a fault
in the log afterwards or a growing process is a defect; the frame is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import random
import resource
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
from broker_client import batch
from test_broker_bad_clients import changed_values
from test_broker_faults import request_of

import kraftlog
from kraftlog.errors import InvalidRecordError
from kraftlog.messages.one_message import decode_message, encoded
from kraftlog.protocol.api import apis
from kraftlog.protocol.request import Request, UnsupportedRequestError
from kraftlog.server.broker import Broker
from kraftlog.server.log_server import LogServer
from kraftlog.server.server import ConnectionEndedError

GOLDEN = Path(__file__).parents[1] / "golden" / "transactions" / "log"
REFUSALS = (InvalidRecordError, UnsupportedRequestError, ConnectionEndedError)
LIMIT_S = 30
FRAMES_OF_A_STORE = 20_000
MOST_WAITING = 100
MOST_GROWTH = 256 << 20  # of the memory of this process, after the first round of both servers
LARGEST = 1 << 16  # of frames that join the corpus
PRODUCE = 0
NUMBERS = [0, 1, -1, 2, 127, 128, 255, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**31 - 2, 2**63 - 1, -(2**63)]
WIDTHS = (">b", ">h", ">i", ">q")


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
    """Changes of frames, by chance."""

    def __init__(self, dice: random.Random, corpus: list[bytes]) -> None:
        self._dice = dice
        self._corpus = corpus

    def frame(self) -> bytes:
        """Return a frame with changed bytes, or with changed values of its fields."""
        frame = self._dice.choice(self._corpus)
        return self._with_values(frame) if self._dice.random() < 0.5 else self._with_bytes(frame)

    def _with_values(self, frame: bytes) -> bytes:
        try:
            request = Request.parse(frame, "")
            values = changed_values(request.values, self._dice, self._dice.choice((0.02, 0.1, 0.4)))
            body = b"".join(encoded(request.api.request, request.version, values))
        except (*REFUSALS, ValueError):
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
        layout = self._dice.choice(WIDTHS)
        size = struct.calcsize(layout)
        half = 1 << (8 * size - 1)
        value = (self._dice.choice(NUMBERS) + half) % (2 * half) - half
        at = self._at(data)
        data[at : at + size] = struct.pack(layout, value)

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


class Fuzzer:
    """Gives mutated frames to the handlers of servers, and counts what comes of them."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._dice = random.Random(seed)
        self._folder = folder
        self.corpus = [*one_of_each_version(), *traffic(folder / "recorded")]
        self._mutations = Mutations(self._dice, self.corpus)
        self._seen: set[Any] = set()
        self.counts: Counter[str] = Counter()
        self.defects: dict[str, tuple[bytes, str]] = {}

    def run(self, until: float, most_frames: int) -> None:
        """Run until a time, or for so many frames; report every half minute."""
        asyncio.to_thread = _in_place  # type: ignore[assignment]
        rounds, reported, began, first = 0, 0.0, time.monotonic(), 0
        while time.monotonic() < until and self.counts["frames"] < most_frames:
            rounds += 1
            if rounds % 4 == 0:
                with LogServer(GOLDEN) as server:
                    self._give_to(server, until)
            else:
                with tempfile.TemporaryDirectory(dir=self._folder) as name:
                    with Broker(name, fsync="close") as broker:
                        broker.store.create_topic("orders", 2)
                        self._give_to(broker, until)
                    faults = kraftlog.open(name).errors().to_pylist()
                    if faults:
                        self._defect(b"", f"a damaged log: {faults[:3]}")
            if rounds <= 4:
                first = resident_bytes()
            elif resident_bytes() - first > MOST_GROWTH:
                self._defect(b"", f"the memory has grown from {first:,} bytes to {resident_bytes():,}")
            if time.monotonic() - reported > 30:
                reported = time.monotonic()
                print(f"{reported - began:.0f} s: {self}", flush=True)

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.most_common())
        return (
            f"{counts}; corpus {len(self.corpus):,}, defects {len(self.defects)}, memory {resident_bytes() >> 20} MiB"
        )

    def _give_to(self, server: Broker | LogServer, until: float) -> None:
        thread = server._thread
        assert thread._server is not None
        handlers = thread._server._handlers
        asyncio.run_coroutine_threadsafe(self._frames(handlers, until), thread.loop).result()

    async def _frames(self, handlers: Mapping[int, Any], until: float) -> None:
        waiting: deque[tuple[bytes, asyncio.Task[Any]]] = deque()
        for number in range(FRAMES_OF_A_STORE):
            if number % 100 == 0 and time.monotonic() > until:
                break
            frame = self._mutations.frame()
            faulthandler.dump_traceback_later(LIMIT_S, exit=True)
            self.counts["frames"] += 1
            task = asyncio.get_running_loop().create_task(self._answered(handlers, frame))
            for _ in range(4):
                await asyncio.sleep(0)
                if task.done():
                    break
            else:
                self.counts["waited"] += 1
                waiting.append((frame, task))
            while len(waiting) > MOST_WAITING:
                _, oldest = waiting.popleft()
                oldest.cancel()
        for _, task in waiting:
            task.cancel()
        await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)
        faulthandler.cancel_dump_traceback_later()

    async def _answered(self, handlers: Mapping[int, Any], frame: bytes) -> None:
        try:
            request = Request.parse(frame, "127.0.0.1")
            handler = handlers.get(request.api.key)
            if handler is None:
                raise UnsupportedRequestError(request.api.name)
            values = await handler(request)
            pieces = [] if values is None else request.response(values)
        except REFUSALS:
            self.counts["refused"] += 1
            return
        except Exception:
            self._defect(frame, traceback.format_exc())
            return
        self.counts["answered"] += 1
        codes = frozenset(_codes(values))
        if -1 in codes:
            self._defect(frame, f"{request.api.name}: UNKNOWN_SERVER_ERROR")
        self._note(frame, (request.api.key, request.version, codes, sum(map(len, pieces)).bit_length()))

    def _note(self, frame: bytes, kind: Any) -> None:
        if kind not in self._seen and len(frame) <= LARGEST and len(self._seen) < 50_000:
            self._seen.add(kind)
            self.corpus.append(frame)

    def _defect(self, frame: bytes, text: str) -> None:
        where = "\n".join(line for line in text.split("\n") if "File" in line)[-400:] or text[:200]
        self.counts["defects"] += 1
        if where not in self.defects:
            self.defects[where] = frame, text
            print(f"{frame.hex()}\n{text}", flush=True)


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _codes(value: Any) -> Iterator[int]:
    if isinstance(value, Mapping):
        for name, one in value.items():
            if name.endswith("error_code"):
                yield int(one)
            else:
                yield from _codes(one)
    elif isinstance(value, list):
        for one in value:
            yield from _codes(one)


async def _in_place(run: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
    """Run as ``asyncio.to_thread``, without a thread: many times as fast."""
    result = run(*arguments, **options)
    return await result if isinstance(result, Coroutine) else result


def main() -> int:
    """Run for so long; 1 if there are defects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-frames", type=int, default=10**9)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        fuzzer = Fuzzer(arguments.seed, Path(name))
        fuzzer.run(time.monotonic() + arguments.seconds, arguments.most_frames)
    print(fuzzer)
    return 1 if fuzzer.defects else 0


if __name__ == "__main__":
    sys.exit(main())
