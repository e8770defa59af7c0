"""A connection of a client: the frames that it sends, and the responses to them."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias

import numpy as np

from kraftlog.disk.file_bytes import FileBytes
from kraftlog.errors import InvalidRecordError
from kraftlog.server.received_bytes import ReceivedBytes
from kraftlog.types import Buffer

Piece: TypeAlias = bytes | memoryview | FileBytes
Run: TypeAlias = Callable[["Connection"], Coroutine[Any, Any, None]]

SHARED_BYTES = 1 << 16
_LENGTH_BYTES = 4
_TLS_HANDSHAKE = b"\x16\x03"  # type and version of its first record
_MOST_WAITING = 1 << 16
_FIRST_BYTES = 1 << 20  # of a frame; more is allocated as it arrives: a client may announce what it never sends
_PIECE_BYTES = 1 << 20  # of a response, as much as a fetch has of a partition; what the socket does not take is copied


class Connection(asyncio.BufferedProtocol):
    """Receives each large frame into memory of its own, without a copy.

    A stream of asyncio copies each frame twice, and stops and resumes reading many times within a large one.

    Parameters
    ----------
    run : callable
        Returns the coroutine that reads and answers, which runs from the beginning of the connection on.
    shared : memoryview
        Memory for what arrives before the size of its frame is known; all connections of a loop can share it.
    received : ReceivedBytes
        The memory of large frames, which all connections of a loop share.
    ssl_context : ssl.SSLContext, optional
        ``encrypt`` begins TLS with it, before which nothing is received.
    """

    def __init__(
        self, run: Run, shared: memoryview, received: ReceivedBytes, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._run = run
        self._shared = shared
        self._received = received
        self._ssl_context = ssl_context
        self._waiting = bytearray()  # what has arrived, from the length of the next frame on
        self._frame: memoryview | None = None  # a large one, while it arrives
        self._filled = self._room = self._size = 0
        self._is_paused = self._is_held_back = False
        self._left: float | None = None  # of the time that the client has for a frame
        self._arrival: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport
        self._socket: socket.socket
        self._ended: asyncio.Future[None]
        self._task: asyncio.Task[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to run."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ended = asyncio.get_running_loop().create_future()
        if self._ssl_context is not None:
            transport.pause_reading()
        self._socket = transport.get_extra_info("socket")
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._task = asyncio.get_running_loop().create_task(self._run(self))

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes are received."""
        if self._frame is None or self._filled == self._size:
            return self._shared
        if len(self._frame) < self._room:
            grown = np.empty(self._room, np.uint8).data  # a bytearray would be filled with zeros first
            grown[: self._filled] = self._frame[: self._filled]
            self._frame = grown
        return self._frame[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that were received."""
        if self._frame is None or self._filled == self._size:
            self._waiting += self._shared[:nbytes]
            if len(self._waiting) > _MOST_WAITING:
                self._is_paused = True
                self._transport.pause_reading()
        else:
            self._filled += nbytes
            if self._filled < self._size:
                if self._filled == self._room:
                    self._grow()
                return
        self._wake()

    def _grow(self) -> None:
        """Take room for more of a large frame, or stop to read until there is some."""
        room = min(max(2 * self._room, _FIRST_BYTES), self._size)
        self._is_held_back = not self._received.grow(self._grow, room)
        if not self._is_held_back:
            self._room = room
            self._resume()
        elif not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()  # the time that the client has stops, or goes on

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        """Keep the connection open: the client may wait for responses. TLS does not allow this."""
        self._end()
        return self._ssl_context is None

    def connection_lost(self, exc: Exception | None) -> None:
        """Let readers and writers fail."""
        self._end()
        self._writable.set()

    def pause_writing(self) -> None:
        """Let writers wait."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self._writable.set()

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    async def encrypt(self) -> None:
        """Begin TLS; nothing without a context.

        A server of asyncio would do so before it calls ``connection_made``, and not tell what failed.

        Raises
        ------
        ssl.SSLError
            When the client does not speak TLS, or refuses the certificate, or has none that is accepted.
        ConnectionResetError
            When the connection is lost.
        """
        if self._ssl_context is None:
            return
        plain = self._transport
        try:
            encrypted = await asyncio.get_running_loop().start_tls(plain, self, self._ssl_context, server_side=True)
        except ssl.SSLError:
            raise
        except OSError as error:
            raise ConnectionResetError("the connection is lost") from error
        if encrypted is None:  # it was lost without an error
            raise ConnectionResetError("the connection is lost")
        self._transport = encrypted
        if self._is_paused:  # by requests that arrived together with the end of the handshake
            self._is_paused = False
            plain.resume_reading()

    async def _arrived(self) -> None:
        """Wait until more bytes have arrived, or a frame is complete; the end of memory or its return end it, too."""
        if self._ended.done():
            raise ConnectionResetError("the client has closed the connection")
        loop = asyncio.get_running_loop()
        self._arrival = loop.create_future()
        began, is_held_back = loop.time(), self._is_held_back
        async with asyncio.timeout(None if is_held_back else self._left):
            await self._arrival
        if self._left is not None and not is_held_back:
            self._left -= loop.time() - began

    @property
    def ended(self) -> asyncio.Future[None]:
        """Is done when the client sends no more: most are gone then, and some still read responses."""
        return self._ended

    @property
    def client_host(self) -> str:
        """Address of the client, with the slash that Java prints before it and Kafka keeps in groups."""
        return f"/{self._transport.get_extra_info('peername')[0]}"

    async def frame(self, max_bytes: int, idle_seconds: float | None = None) -> Buffer:
        """Return the next frame without its length.

        Parameters
        ----------
        max_bytes : int
        idle_seconds : float, optional
            Time that the client has for a complete frame, without that in which the frame waits for memory here.

        Raises
        ------
        InvalidRecordError
            When it is larger than ``max_bytes``, or its length is not positive.
        ConnectionResetError
            When the client has closed the connection.
        TimeoutError
            When the client has used up its time.
        """
        self._left = idle_seconds
        self._received.end(self._grow)  # the frame before is answered
        waiting = self._waiting
        while len(waiting) < _LENGTH_BYTES:
            await self._arrived()
        size = int.from_bytes(waiting[:_LENGTH_BYTES], "big", signed=True)
        if not 0 < size <= max_bytes:
            begins_tls = self._ssl_context is None and waiting.startswith(_TLS_HANDSHAKE)
            remark = "; the client begins TLS, and this server has no certificate" if begins_tls else ""
            raise InvalidRecordError(f"a request of {size} bytes, of at most {max_bytes}{remark}")
        end = _LENGTH_BYTES + size
        frame: Buffer
        if len(waiting) >= end:
            frame = bytes(memoryview(waiting)[_LENGTH_BYTES:end])
            del waiting[:end]
        else:
            frame = await self._large_frame(size)
        if len(waiting) < _MOST_WAITING:
            self._resume()
        return frame

    async def _large_frame(self, size: int) -> memoryview:
        """Return a frame of which only the beginning has arrived."""
        self._received.begin(self._grow)
        self._frame = memoryview(self._waiting[_LENGTH_BYTES:])
        self._size, self._filled = size, len(self._frame)
        self._room = self._filled
        self._waiting.clear()
        self._grow()
        while self._filled < size:
            await self._arrived()
        frame, self._frame = self._frame, None
        return frame

    async def send(self, pieces: Sequence[Piece], seconds: float | None = None) -> None:
        """Send the pieces of a response; return when little of them waits in memory.

        Parameters
        ----------
        pieces : sequence of bytes, memoryview or FileBytes
        seconds : float, optional
            Time that the client has to read.

        Raises
        ------
        ConnectionResetError
            When the connection is lost.
        TimeoutError
            When the client has used up its time.
        """
        self._check_open()  # of a connection that was lost meanwhile, the socket is closed
        is_corked = len(pieces) > 1
        if is_corked:
            self._cork(is_corked)
        rest = self._send_at_once(pieces)
        if rest or not self._writable.is_set():
            async with asyncio.timeout(seconds):
                await self._send_rest(rest)
        if is_corked:
            self._cork(False)

    def _send_at_once(self, pieces: Sequence[Piece]) -> list[memoryview]:
        """Send as much as the socket takes, files without a copy; return the rest, for which no file remains open."""
        for number, piece in enumerate(pieces):
            self._check_open()
            if self._ssl_context is not None or self._transport.get_write_buffer_size() or len(piece) > _PIECE_BYTES:
                return _in_memory(pieces[number:])
            if not isinstance(piece, FileBytes):
                self._transport.write(piece)
                continue
            with piece:
                sent = piece.send(self._socket.fileno())
                if sent < len(piece):
                    return [memoryview(piece[sent:]), *_in_memory(pieces[number + 1 :])]
        return []

    async def _send_rest(self, pieces: Sequence[memoryview]) -> None:
        await self._writable.wait()
        for piece in pieces:
            for start in range(0, len(piece), _PIECE_BYTES):
                self._transport.write(piece[start : start + _PIECE_BYTES])
                await self._writable.wait()
                self._check_open()

    def _check_open(self) -> None:
        if self._transport.is_closing():  # the transport says so before it calls connection_lost
            raise ConnectionResetError("the connection is lost")

    def _cork(self, is_corked: bool) -> None:
        """Let the socket hold back segments that are not full, which would wake the client for a few bytes."""
        if hasattr(socket, "TCP_CORK"):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, is_corked)

    def abort(self) -> None:
        """Close the connection at once; with TLS, the client learns that this is the end."""
        if self._ssl_context is not None:
            self._transport.close()
        self._received.end(self._grow)
        self._transport.abort()


def _in_memory(pieces: Sequence[Piece]) -> list[memoryview]:
    """Return the bytes of all pieces, and close their files."""
    found = []
    for piece in pieces:
        if isinstance(piece, FileBytes):
            with piece:
                found.append(memoryview(piece[:]))
        else:
            found.append(memoryview(piece))
    return found
