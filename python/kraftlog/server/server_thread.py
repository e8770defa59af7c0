"""The thread with the event loop of a server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeAlias

from kraftlog.server.server import Server

_THREADS = 8  # num.io.threads

OnEnd: TypeAlias = Callable[[], Awaitable[None]]
Background: TypeAlias = Coroutine[Any, Any, None] | None


class ServerThread:
    """A thread that runs a server.

    Attributes
    ----------
    loop : asyncio.AbstractEventLoop
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # each may decompress a batch at the same time: with asyncio's number, memory would grow with the processors
        self.loop.set_default_executor(ThreadPoolExecutor(_THREADS, "kraftlog-io"))
        self._is_to_end = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._server: Server | None = None

    def start(self, server: Server, on_end: OnEnd, background: Background = None) -> None:
        """Start to accept connections.

        Parameters
        ----------
        server : Server
        on_end : callable
            Is called in the loop when all connections are closed.
        background : coroutine, optional
            Runs in the same loop until the end.
        """
        self._server = server
        self._thread = threading.Thread(
            target=self._run, args=(server, on_end, background), name="kraftlog-server", daemon=True
        )
        self._thread.start()

    def _run(self, server: Server, on_end: OnEnd, background: Background) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._serve(server, on_end, background))

    async def _serve(self, server: Server, on_end: OnEnd, background: Background) -> None:
        task = None if background is None else asyncio.create_task(background)
        await server.start()
        await self._is_to_end.wait()
        await server.close()
        await on_end()
        if task is not None:
            task.cancel()

    def lose_connections(self) -> None:
        """Close all connections at once; the requests under way go on, and their clients get no answer."""
        if self._server is not None and not self.loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._server.close(), self.loop).result()

    def stop(self) -> None:
        """Close all connections, and wait until the requests under way are done; a second call does nothing."""
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self._is_to_end.set)
        if self._thread is not None:
            self._thread.join()
