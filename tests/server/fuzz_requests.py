"""Mutates recorded requests and gives them to the parser, or to the handlers of both servers without sockets.

The corpus is the traffic of two clients, and a request of each kind and version. A mutated frame that shows something
new joins it. These are defects, and the frame is printed: an exception other than those that end a connection, values
that are others after they were encoded and decoded, an unknown server error, a fault in the log afterwards, a growing
process. Some frames are parsed by the twin as well, the decoder of the tests: both have to agree, also on what is no
request. A frame that takes too long ends the process with a traceback.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import random
import re
import resource
import struct
import sys
import tempfile
import time
import traceback
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

import twin
from mutated_requests import Mutations, one_of_each_version, traffic
from test_one_message import without_unknown
from test_requests import plain, with_uuids

import kraftlog
from kraftlog.errors import InvalidRecordError
from kraftlog.messages.definition import Definition
from kraftlog.messages.one_message import decode_message, encoded
from kraftlog.protocol.api import apis
from kraftlog.protocol.request import Request, UnsupportedRequestError
from kraftlog.server.broker import Broker
from kraftlog.server.log_server import LogServer
from kraftlog.server.server import ConnectionEndedError

GOLDEN = Path(__file__).parents[1] / "golden" / "transactions" / "log"
REFUSALS = (InvalidRecordError, UnsupportedRequestError, ConnectionEndedError)
LIMIT_S = 30  # for so many frames:
WATCHED = 500  # because each watch starts a thread, which takes half a millisecond
FRAMES_OF_A_ROUND = 20_000
FIRST_ROUNDS = 4  # until then, both servers have run, and memory may grow
MOST_WAITING = 100
MOST_GROWTH = 128 << 20
MOST_FRAMES = 20_000  # of the corpus,
LARGEST = 1 << 13  # each of at most so many bytes
TWIN_EVERY = 20
HEADER = struct.Struct(">hhih")
NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")


class Fuzzer(ABC):
    """Gives mutated frames to a part of the server, and counts what comes of them."""

    values_rate: float

    def __init__(self, seed: int, corpus: list[bytes]) -> None:
        self.dice = random.Random(seed)
        self.corpus = corpus
        self.mutations = Mutations(self.dice, corpus, self.values_rate)
        self._seen: set[Any] = set()
        self.counts: Counter[str] = Counter()
        self.defects: dict[str, tuple[bytes, str]] = {}

    def run(self, until: float, most_frames: int) -> None:
        """Run until a time, or for so many frames; report every half minute."""
        rounds, reported, began, first = 0, 0.0, time.monotonic(), 0
        while time.monotonic() < until and self.counts["frames"] < most_frames:
            rounds += 1
            self.round(rounds, until)
            if rounds <= FIRST_ROUNDS:
                first = resident_bytes()
            elif resident_bytes() - first > MOST_GROWTH:
                self.defect(b"", f"the memory has grown from {first:,} bytes to {resident_bytes():,}")
            if time.monotonic() - reported > 30:
                reported = time.monotonic()
                print(f"{reported - began:.0f} s: {self}", flush=True)

    @abstractmethod
    def round(self, number: int, until: float) -> None:
        """Run for the frames of a round."""

    def frames(self, until: float) -> Iterator[bytes]:
        """Yield the frames of a round; watch that each is done in time."""
        for number in range(FRAMES_OF_A_ROUND):
            if number % WATCHED == 0:
                if time.monotonic() > until:
                    break
                faulthandler.dump_traceback_later(LIMIT_S, exit=True)
            self.counts["frames"] += 1
            yield self.mutations.frame()
        faulthandler.cancel_dump_traceback_later()

    def note(self, frame: bytes, shown: set[Any]) -> bool:
        """Keep a frame that has shown something for the first time; return whether it has."""
        if shown <= self._seen:
            return False
        self._seen |= shown
        if len(frame) <= LARGEST and len(self.corpus) < MOST_FRAMES:
            self.corpus.append(frame)
        return True

    def defect(self, frame: bytes, text: str) -> None:
        """Print a defect, the first time."""
        where = "\n".join(line for line in text.split("\n") if "File" in line)[-400:] or NUMBERS.sub("", text)[:200]
        self.counts["defects"] += 1
        if where not in self.defects:
            self.defects[where] = frame, text
            print(f"{frame.hex()}\n{text}", flush=True)

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.most_common())
        return (
            f"{counts}; {self.counts['frames'] / time.process_time():,.0f} frames a second of CPU, "
            f"corpus {len(self.corpus):,}, defects {len(self.defects)}, memory {resident_bytes() >> 20} MiB"
        )


class ParserFuzzer(Fuzzer):
    """Parses frames, and compares what is parsed with itself after it was encoded and decoded, and with the twin."""

    values_rate = 0.05

    def round(self, number: int, until: float) -> None:
        """Parse the frames of a round."""
        for frame in self.frames(until):
            request = None
            try:
                request = Request.parse(frame, "127.0.0.1")
            except (InvalidRecordError, UnsupportedRequestError) as error:
                self.counts["refused"] += 1
                is_new = self.note(frame, {NUMBERS.sub("", str(error))})  # in any version: they have few valid children
            except Exception:
                self.defect(frame, traceback.format_exc())
                continue
            else:
                self.counts["parsed"] += 1
                kind = request.api.key, request.version
                is_new = self.note(frame, {(kind, *one) for one in shapes(request.values)})
                if request.version >= 0:
                    self._compare_again(frame, request)
            if is_new or self.counts["frames"] % TWIN_EVERY == 0:
                self._compare_twin(frame, request)

    def _compare_again(self, frame: bytes, request: Request) -> None:
        definition, version = request.api.request, request.version
        try:
            again = decode_message(definition, version, b"".join(encoded(definition, version, request.values)))
        except Exception:
            self.defect(frame, traceback.format_exc())
            return
        if again != request.values:
            self.defect(frame, f"{request.api.name}, version {version}: {request.values} becomes {again}")

    def _compare_twin(self, frame: bytes, request: Request | None) -> None:
        found = body_of(frame)
        if found is None:
            return
        definition, version, body = found
        self.counts["compared with the twin"] += 1
        values = None if request is None else with_uuids(definition, plain(request.values))
        try:
            expected = without_unknown(twin.decode_first(definition, version, body)[0])
        except twin.MalformedError:
            expected = None
        if values != expected and not (values is None and "\ufffd" in repr(expected)):  # a text that is not UTF-8
            self.defect(frame, f"{definition.name}, version {version}: {values}, but the twin has {expected}")


def body_of(frame: bytes) -> tuple[Definition, int, bytes] | None:
    """Return the definition, the version and the bytes of a message; None if the header is unusual."""
    if len(frame) < HEADER.size:
        return None
    key, version, _, size = HEADER.unpack_from(frame)
    definition = apis()[key].request if key in apis() else None
    if definition is None or version not in definition.versions or not -1 <= size <= len(frame) - HEADER.size:
        return None
    body = frame[HEADER.size + max(size, 0) :]
    if version not in definition.flexible:
        return definition, version, body
    return (definition, version, body[1:]) if body[:1] == b"\0" else None


class HandlerFuzzer(Fuzzer):
    """Gives frames to the handlers of both servers."""

    values_rate = 0.5

    def __init__(self, seed: int, corpus: list[bytes], folder: Path) -> None:
        super().__init__(seed, corpus)
        self._folder = folder

    def round(self, number: int, until: float) -> None:
        """Start a server, give it the frames of a round, and check its log."""
        asyncio.to_thread = _in_place  # type: ignore[assignment]
        if number % FIRST_ROUNDS == 0:
            with LogServer(GOLDEN) as server:
                self._give_to(server, until)
            return
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            with Broker(name, fsync="close") as broker:
                broker.store.create_topic("orders", 2)
                self._give_to(broker, until)
            faults = kraftlog.open(name).errors().to_pylist()
            if faults:
                self.defect(b"", f"a damaged log: {faults[:3]}")

    def _give_to(self, server: Broker | LogServer, until: float) -> None:
        thread = server._thread
        assert thread._server is not None
        handlers = thread._server._handlers
        asyncio.run_coroutine_threadsafe(self._give(handlers, until), thread.loop).result()

    async def _give(self, handlers: Mapping[int, Any], until: float) -> None:
        waiting: deque[asyncio.Task[Any]] = deque()
        for frame in self.frames(until):
            task = asyncio.get_running_loop().create_task(self._answered(handlers, frame))
            for _ in range(4):
                await asyncio.sleep(0)
                if task.done():
                    break
            else:
                self.counts["waited"] += 1
                waiting.append(task)
            while len(waiting) > MOST_WAITING:
                waiting.popleft().cancel()
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

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
            self.defect(frame, traceback.format_exc())
            return
        self.counts["answered"] += 1
        codes = frozenset(_codes(values))
        if -1 in codes:
            self.defect(frame, f"{request.api.name}: UNKNOWN_SERVER_ERROR")
        self.note(frame, {(request.api.key, request.version, codes, sum(map(len, pieces)).bit_length())})


def shapes(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield, for each field, the kind of its value: null, sign and bytes of a number, or bits of a length."""
    for name, value in values.items():
        if isinstance(value, int):
            yield name, (value < 0, value.bit_length() + 7 >> 3)
        elif isinstance(value, dict):
            yield from shapes(value)
        elif value is None:
            yield name, None
        else:
            yield name, len(value).bit_length()
            if isinstance(value, list):
                for one in value:
                    if isinstance(one, dict):
                        yield from shapes(one)


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _codes(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
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
    parser.add_argument("level", choices=("parser", "handlers"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-frames", type=int, default=10**9)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        corpus = [*one_of_each_version(), *traffic(folder / "recorded")]
        fuzzer: Fuzzer
        if arguments.level == "parser":
            fuzzer = ParserFuzzer(arguments.seed, corpus)
        else:
            fuzzer = HandlerFuzzer(arguments.seed, corpus, folder)
        fuzzer.run(time.monotonic() + arguments.seconds, arguments.most_frames)
    print(fuzzer)
    return 1 if fuzzer.defects else 0


if __name__ == "__main__":
    sys.exit(main())
