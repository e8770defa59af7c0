"""Frames of connections: each arrives whole and in order, however the client cuts them, and responses as they are."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from kraftlog.errors import InvalidRecordError
from kraftlog.server.connection import SHARED_BYTES, Connection
from kraftlog.server.received_bytes import ReceivedBytes

LIMIT = 30
MIB = 1 << 20
MOST = 64 * MIB
SIZES = (1, 3, SHARED_BYTES - 4, SHARED_BYTES, SHARED_BYTES + 1, MIB - 1, MIB, MIB + 1, 5 * MIB + 3, 2)


@contextmanager
def served(
    run: Callable[[Connection], Coroutine[Any, Any, None]], most: int = MOST, ssl_context: ssl.SSLContext | None = None
) -> Iterator[socket.socket]:
    """Serve with a coroutine in a thread; yield a client, which has not begun TLS."""
    loop = asyncio.new_event_loop()
    shared = memoryview(bytearray(SHARED_BYTES))
    received = ReceivedBytes(most)
    server = loop.run_until_complete(
        loop.create_server(lambda: Connection(run, shared, received, ssl_context), "127.0.0.1", 0)
    )
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        with socket.create_connection(server.sockets[0].getsockname(), LIMIT) as client:
            yield client
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(LIMIT)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def echo(connection: Connection) -> None:
    """Send each frame back, as small and large pieces."""
    while True:
        frame = memoryview(await connection.frame(MOST))
        await connection.send(
            [struct.pack(">i", len(frame)), frame[:1], frame[1:-1], frame[-1:] if len(frame) > 1 else b""]
        )


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def exactly(client: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = client.recv(MIB)
        assert piece, f"closed after {len(data)} bytes of {count}"
        data += piece
    return bytes(data)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("cut", [3, 1000, SHARED_BYTES + 5, 3 * MIB])
def test_frames_arrive_as_they_were_sent(cut: int):
    dice = random.Random(cut)
    sent = framed(*(dice.randbytes(size) for size in (SIZES if cut > 3 else SIZES[:5])))
    with served(echo) as client:
        sender = threading.Thread(
            target=lambda: [client.sendall(sent[at : at + cut]) for at in range(0, len(sent), cut)]
        )
        sender.start()
        assert exactly(client, len(sent)) == sent
        sender.join()


@pytest.mark.parametrize("size", [10, 3 * MIB])
def test_what_was_sent_before_the_end_is_answered(size: int):
    frame = framed(random.Random(1).randbytes(size))

    async def run(connection: Connection) -> None:
        received = await connection.frame(MOST)
        await connection.ended
        await asyncio.sleep(0.001)
        await connection.send([framed(bytes(received))])

    with served(run) as client:
        client.sendall(frame)
        client.shutdown(socket.SHUT_WR)
        assert exactly(client, len(frame)) == frame


def test_a_frame_that_is_announced_takes_no_memory_until_it_arrives():
    connections: list[Connection] = []

    async def run(connection: Connection) -> None:
        connections.append(connection)
        with suppress(ConnectionResetError):
            await connection.frame(MOST)

    with served(run) as client:
        tracemalloc.start()
        client.sendall(struct.pack(">i", MOST) + b"0123456789")
        until(lambda: bool(connections) and connections[0]._filled == 10)
        client.sendall(b"a")
        until(lambda: connections[0]._filled == 11)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2 * MIB


def test_large_frames_of_all_connections_are_bounded_and_the_first_goes_on():
    """What is above the bound waits in sockets; when the first is answered, the next has its memory."""
    received: list[ReceivedBytes] = []
    begun: list[Connection] = []
    whole: list[bytes] = []

    async def run(connection: Connection) -> None:
        received.append(connection._received)
        begun.append(connection)
        whole.append(bytes(await connection.frame(MOST)))
        await connection.send([framed(b"ok")])
        await connection.frame(MOST)

    content = [bytes([number]) * (3 * MIB) for number in range(4)]
    with served(run, 2 * MIB) as first, ExitStack() as opened:
        others = [opened.enter_context(socket.create_connection(first.getpeername(), LIMIT)) for _ in content[1:]]
        first.sendall(framed(content[0])[:MIB])
        until(lambda: len(begun) == 4 and any(one._filled >= MIB - 4 for one in begun))
        senders = [
            threading.Thread(target=client.sendall, args=(framed(one),))
            for client, one in zip(others, content[1:], strict=True)
        ]
        for sender in senders:
            sender.start()
        until(lambda: sum(one._is_paused for one in begun) == 3)
        assert sum(received[0]._sizes.values()) <= 2 * MIB
        assert whole == []
        first.sendall(framed(content[0])[MIB:])
        for client in (first, *others):
            assert exactly(client, 6) == framed(b"ok")
            client.close()  # its last frame gives its memory back when the next begins, or with the connection
        for sender in senders:
            sender.join()
    assert sorted(whole) == content


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_client_that_is_held_back_is_not_idle(is_complete: bool):
    """Its time stands still while its frame waits for memory, and goes on when there is some."""
    begun: list[Connection] = []

    async def run(connection: Connection) -> None:
        begun.append(connection)
        seconds = None if len(begun) == 1 else 0.5
        try:
            await connection.frame(MOST, seconds)
            await connection.send([framed(b"ok")])
        except TimeoutError:
            await connection.send([framed(b"no")])
        await connection.frame(MOST)

    content = framed(bytes(3 * MIB))
    with served(run, 2 * MIB) as first:
        first.sendall(content[: 2 * MIB])
        until(lambda: bool(begun) and begun[0]._filled > MIB)
        with socket.create_connection(first.getpeername(), LIMIT) as second:
            sent = content if is_complete else content[:-1]
            sender = threading.Thread(target=second.sendall, args=(sent,))
            sender.start()
            until(lambda: len(begun) == 2 and begun[1]._is_held_back)
            time.sleep(1)
            assert begun[1]._is_held_back
            first.sendall(content[2 * MIB :])
            assert exactly(first, 6) == framed(b"ok")
            first.sendall(framed(b"next"))  # gives the memory back
            assert exactly(second, 6) == framed(b"ok" if is_complete else b"no")
            sender.join()


def test_a_byte_now_and_then_gives_a_client_no_more_time():
    async def run(connection: Connection) -> None:
        with suppress(TimeoutError):
            await connection.frame(MOST, 1)
            await connection.send([framed(b"ok")])
        await connection.send([framed(b"no")])

    with served(run) as client:
        for at in range(4):
            client.sendall(framed(b"x")[at : at + 1])
            time.sleep(0.6)
        client.sendall(b"x")
        assert exactly(client, 6) == framed(b"no")


def test_a_connection_that_ends_gives_its_memory_back():
    resumed: list[str] = []
    received = ReceivedBytes(10)
    first, second, third = (partial(resumed.append, name) for name in ("first", "second", "third"))
    for one in (first, second, third):
        received.begin(one)
    assert received.grow(first, 30)  # the first always can
    assert not received.grow(second, 1)
    assert not received.grow(third, 1)
    received.end(third)
    assert resumed == []  # it had nothing; the second asks again, and waits on
    assert not received.grow(second, 1)
    received.end(first)
    received.end(first)
    assert resumed == ["second"]
    assert received.grow(second, 7)
    received.begin(third)
    assert not received.grow(third, 4)
    assert received.grow(third, 3)  # exactly what is left


def test_an_aborted_connection_gives_its_memory_back():
    received: list[ReceivedBytes] = []

    async def run(connection: Connection) -> None:
        received.append(connection._received)
        with suppress(ConnectionResetError):
            await connection.frame(MOST)
        connection.abort()

    with served(run) as client:
        client.sendall(framed(b"x" * 3 * MIB)[:MIB])
        until(lambda: bool(received) and sum(received[0]._sizes.values()) >= MIB - 4)
        client.close()
        until(lambda: not received[0]._sizes)


def test_requests_that_nobody_reads_yet_wait_at_the_client():
    begin, connections = threading.Event(), []
    frames = [random.Random(number).randbytes(1000) for number in range(20_000)]
    answers: list[bytes] = []

    async def run(connection: Connection) -> None:
        connections.append(connection)
        while not begin.is_set():
            await asyncio.sleep(0.001)
        for _ in frames:
            answers.append(bytes(await connection.frame(MOST)))
            assert len(connection._waiting) <= 2 * SHARED_BYTES

    with served(run) as client:
        sender = threading.Thread(target=client.sendall, args=(framed(*frames),))
        sender.start()
        until(lambda: bool(connections) and connections[0]._is_paused)
        assert len(connections[0]._waiting) <= 2 * SHARED_BYTES
        begin.set()
        sender.join()
        until(lambda: len(answers) == len(frames))
    assert answers == frames


def test_a_request_whose_length_is_cut_is_read_on():
    """The connection is paused, and has no complete request: it reads on, or would wait for itself."""
    begin, connections, answers = threading.Event(), list[Connection](), list[bytes]()
    frames = [bytes(SHARED_BYTES - 4 - 1), b"next"]

    async def run(connection: Connection) -> None:
        connections.append(connection)
        while not begin.is_set():
            await asyncio.sleep(0.001)
        for _ in frames:
            answers.append(bytes(await connection.frame(MOST)))

    with served(run) as client:
        sent = framed(*frames)
        client.sendall(sent[: SHARED_BYTES + 1])  # with two bytes of the second length
        until(lambda: bool(connections) and connections[0]._is_paused)
        client.sendall(sent[SHARED_BYTES + 1 :])
        begin.set()
        until(lambda: len(answers) == 2)
    assert answers == frames


def test_a_response_waits_for_a_client_that_reads_slowly():
    response = random.Random(2).randbytes(40 * MIB)
    connections: list[Connection] = []

    async def run(connection: Connection) -> None:
        connections.append(connection)
        await connection.send([b"head", response, b"tail"])
        await connection.frame(MOST)

    with served(run) as client:
        until(lambda: bool(connections) and not connections[0]._writable.is_set())
        assert connections[0]._transport.get_write_buffer_size() <= MIB
        assert exactly(client, len(response) + 8) == b"head" + response + b"tail"


@pytest.mark.parametrize("sent", [b"", b"\0\0", framed(b"x" * 100)[:50], framed(b"x" * 3 * MIB)[: 2 * MIB]])
def test_a_client_that_is_gone_ends_the_connection(sent: bytes):
    errors: list[Exception] = []

    async def run(connection: Connection) -> None:
        try:
            await connection.frame(MOST)
        except ConnectionResetError as error:
            errors.append(error)

    with served(run) as client:
        client.sendall(sent)
        client.close()
        until(lambda: bool(errors))


def test_a_response_to_a_client_that_is_gone_fails():
    errors: list[Exception] = []

    async def run(connection: Connection) -> None:
        try:
            while True:
                await connection.send([bytes(MIB)])
        except ConnectionResetError as error:
            errors.append(error)

    with served(run) as client:
        client.close()
        until(lambda: bool(errors))


def test_no_more_is_written_when_the_client_is_found_to_be_gone(caplog: pytest.LogCaptureFixture):
    """The event loop would warn of each write."""
    ends: list[Exception | None] = []

    async def run(connection: Connection) -> None:
        with suppress(ConnectionResetError):
            await connection.frame(MOST)
        try:
            await connection.send([bytes(SHARED_BYTES)] * 20)
        except ConnectionResetError as error:
            ends.append(error)
        else:
            ends.append(None)

    with served(run) as client:
        client.close()
        until(lambda: bool(ends))
    assert isinstance(ends[0], ConnectionResetError)
    assert caplog.messages == []


def test_a_response_that_waits_for_a_client_that_is_gone_fails():
    errors, connections = list[Exception](), list[Connection]()

    async def run(connection: Connection) -> None:
        connections.append(connection)
        try:
            await connection.send([bytes(40 * MIB)])
        except ConnectionResetError as error:
            errors.append(error)

    with served(run) as client:
        until(lambda: bool(connections) and not connections[0]._writable.is_set())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        client.close()
        until(lambda: bool(errors))


@pytest.mark.parametrize("size", [1, 100])
def test_a_length_that_is_allowed(size: int):
    frames: list[bytes] = []

    async def run(connection: Connection) -> None:
        frames.append(bytes(await connection.frame(100)))

    with served(run) as client:
        client.sendall(framed(bytes(size)))
        until(lambda: bool(frames))
    assert frames == [bytes(size)]


@pytest.mark.parametrize("size", [0, -1, 101])
def test_a_length_that_is_not_allowed_is_refused(size: int):
    errors: list[str] = []

    async def run(connection: Connection) -> None:
        try:
            await connection.frame(100)
        except InvalidRecordError as error:
            errors.append(str(error))

    with served(run) as client:
        client.sendall(struct.pack(">i", size))
        until(lambda: bool(errors))
    assert errors == [f"a request of {size} bytes, of at most 100"]
