"""A broker in one event loop, without sockets and threads: requests are frames, and their order is that of a seed."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any

from process import Process

from kraftlog import LogStore
from kraftlog.messages.one_message import decode_message, encoded
from kraftlog.protocol.api import apis
from kraftlog.server.broker_requests import BrokerRequests
from kraftlog.server.cluster_requests import Node
from kraftlog.server.options import ServerOptions
from kraftlog.server.server import Server

HOST, PARTITIONS = "sim", 1


class LoopThreads(ThreadPoolExecutor):
    """Runs what ``asyncio.to_thread`` passes on in the loop's own thread, each call at once, in an order of a seed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, dice: Random) -> None:
        super().__init__(1)
        self._loop, self._dice = loop, dice
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Take a call."""
        task: Future[Any] = Future()
        self._waiting.append((task, lambda: call(*arguments, **options)))
        self._loop.call_soon(self._run_one)
        return task

    def _run_one(self) -> None:
        if self._waiting:
            task, call = self._waiting.pop(self._dice.randrange(len(self._waiting)))
            try:
                result = call()
            except Exception as error:
                if not task.cancelled():
                    task.set_exception(error)
            else:
                if not task.cancelled():
                    task.set_result(result)

    def finish(self) -> None:
        """Run all that waits, as a process does that ends in order."""
        while self._waiting:
            self._run_one()

    def drop(self) -> None:
        """Forget all that waits, as a process does that is killed."""
        self._waiting.clear()


class SimBroker:
    """A broker over a store, from its start to its end.

    Parameters
    ----------
    store : LogStore
    loop : asyncio.AbstractEventLoop
    threads : LoopThreads
        The default executor of the loop.
    """

    def __init__(self, store: LogStore, loop: asyncio.AbstractEventLoop, threads: LoopThreads) -> None:
        self.store = store
        self._threads = threads
        self._tasks: set[asyncio.Task[Any]] = set()
        self._others = asyncio.all_tasks(loop)
        options = ServerOptions()
        self._requests = BrokerRequests(store, Node(HOST, 1), options, loop, auto_create_partitions=PARTITIONS)
        with socket.socket() as unused:
            self._server = Server(self._requests.handlers, options, unused, self._requests.unread)
        self._requests.groups.begin_sessions()

    def take(self, frame: bytes) -> asyncio.Task[bytes | None]:
        """Begin to answer a request; the task is cancelled when the broker ends first."""
        return asyncio.create_task(self._answer(frame))

    async def _answer(self, frame: bytes) -> bytes | None:
        pieces = await self._server.response(frame, HOST)
        return None if pieces is None else b"".join(pieces)

    def kill(self) -> None:
        """End at once."""
        self._threads.drop()
        self._end_tasks()
        self.store._abandon()

    async def close(self) -> None:
        """End in order: calls of threads are done, connections end, groups are written, and the store is closed."""
        self._threads.finish()
        self._end_tasks()
        await self._requests.groups.close()
        self._threads.finish()
        self._requests.log.close()
        self.store.close()

    def _end_tasks(self) -> None:
        for task in asyncio.all_tasks() - self._others:
            task.cancel()


@contextmanager
def loop_of(process: Process) -> Iterator[tuple[asyncio.AbstractEventLoop, LoopThreads]]:
    """Return an event loop of a process, and what takes the place of its threads."""
    loop = asyncio.new_event_loop()
    threads = LoopThreads(loop, process.random)
    loop.set_default_executor(threads)
    try:
        yield loop, threads
    finally:
        threads.drop()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
        assert not asyncio.all_tasks(loop), "a task goes on after it was cancelled"
        loop.close()


def request_frame(key: int, version: int, values: dict[str, Any]) -> bytes:
    """Return a request as a client sends it, without its length."""
    api = apis()[key]
    tags = b"\0" if version in api.request.flexible else b""
    header = struct.pack(">hhih", key, version, 1, 1) + b"c" + tags
    return header + b"".join(encoded(api.request, version, values))


def response_values(key: int, version: int, frame: bytes) -> dict[str, Any]:
    """Return the fields of a response, with its length."""
    api = apis()[key]
    at = 9 if version in api.response.flexible else 8
    return decode_message(api.response, version, frame[at:])
