"""Connections of clients, and the requests on them."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from kraftlog.errors import InvalidRecordError, KraftlogError
from kraftlog.messages.one_message import Pieces
from kraftlog.protocol.api import apis
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import API_VERSIONS, UNKNOWN_VERSION, Request, UnsupportedRequestError, api_key
from kraftlog.server.authentication import SASL_AUTHENTICATE, SASL_HANDSHAKE, Authentication
from kraftlog.server.connection import SHARED_BYTES, Connection
from kraftlog.server.error_response import error_response, has_error
from kraftlog.server.options import ServerOptions
from kraftlog.server.received_bytes import ReceivedBytes
from kraftlog.server.unread_bytes import UnreadBytes
from kraftlog.server.users import AuthenticationFailedError
from kraftlog.types import Buffer

Handler: TypeAlias = Callable[[Request], Awaitable[Mapping[str, Any] | None]]
"""Returns the fields of the response; None if the client expects none."""


class ConnectionEndedError(KraftlogError):
    """A request whose only answer is the end of the connection."""


_log = logging.getLogger("kraftlog.server")
_NO_FEATURES: Mapping[str, int] = {}
_FEATURES_FROM_ZERO = 4  # first version of ApiVersions whose clients accept a feature that may be off (KIP-584)
_LEAST_LEVELS = {"metadata.version": 7}  # 3.3-IV3, the first one of Kafka 4
_HANDSHAKE_SECONDS = 30.0  # of TLS and SASL together: until then, a client holds a connection of which nobody knows
_MOST_TOKEN_BYTES = 1 << 19  # sasl.server.max.receive.size
_FAILURE_SECONDS = 0.1  # connection.failed.authentication.delay.ms, which slows down who guesses
_WARNING_SECONDS = 60.0
_FEATURES_EPOCH = 0  # they do not change while a server runs


class Server:
    """Answers requests of clients, those of a connection one after the other, as Kafka does.

    Bytes that are no request, and requests that no handler answers, close the connection. A handler that fails is an
    error for the client, and a line in the log of this process.

    Parameters
    ----------
    handlers : mapping of int to callable
        By API key.
    options : ServerOptions
    listening : socket.socket
        Closed with the server.
    unread : UnreadBytes
        The memory of responses, which handlers share.
    features : mapping of str to int
        Levels of the features of the cluster that clients depend on.
    """

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        options: ServerOptions,
        listening: socket.socket,
        unread: UnreadBytes,
        features: Mapping[str, int] = _NO_FEATURES,
    ) -> None:
        self._features = features
        self._handlers: dict[int, Handler] = {API_VERSIONS: self._api_versions, **handlers}
        if options.users is not None:
            self._handlers |= dict.fromkeys((SASL_HANDSHAKE, SASL_AUTHENTICATE), _authenticated_already)
        self._options = options
        self._listening = listening
        self._unread = unread
        self._connections: set[asyncio.Task[None]] = set()
        self._open: dict[Connection, None] = {}  # those that count, in the order in which they began
        self._server: asyncio.Server | None = None
        self._is_closed = False
        self._next_warning = 0.0

    async def start(self) -> None:
        """Start to accept connections."""
        shared = memoryview(bytearray(SHARED_BYTES))
        received = ReceivedBytes(self._options.max_queued_bytes)
        ssl_context = None if self._options.tls is None else self._options.tls.context()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._failed)
        self._server = await loop.create_server(
            lambda: Connection(self._connected, shared, received, ssl_context), sock=self._listening
        )

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what the event loop could not do.

        Without file descriptors it tries to accept connections each second, each time for the whole backlog.
        """
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() >= self._next_warning:
            self._next_warning = loop.time() + _WARNING_SECONDS
            _log.error("no connection is accepted: %s; raise the limit of open files (ulimit -n)", error)

    async def close(self) -> None:
        """Stop to listen, and close all connections."""
        self._is_closed = True  # for connections that were accepted, and have not begun
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, connection: Connection) -> None:
        task = asyncio.current_task()
        if self._is_closed:
            connection.abort()
            return
        if task is None or not self._has_room():
            _log.warning("a connection is closed: %d are open", len(self._open))
            connection.abort()
            return
        self._connections.add(task)
        self._open[connection] = None
        try:
            async with asyncio.timeout(min(self._options.max_idle_ms / 1000, _HANDSHAKE_SECONDS)):
                await connection.encrypt()
                if self._options.users is not None:
                    await self._authenticate(connection, Authentication(self._options.users))
            while True:
                await self._answer_one(connection)
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            pass  # the client is gone, or idle, or the server is closed
        except (InvalidRecordError, UnsupportedRequestError, ConnectionEndedError, AuthenticationFailedError) as error:
            _log.warning("a connection is closed: %s", error)
        except ssl.SSLError as error:
            _log.warning("a connection is closed: expected a TLS handshake, found %s", error.reason)
        except Exception:  # the client learns of it by the end of the connection, and does not wait
            _log.exception("a connection is closed")
        finally:
            self._connections.discard(task)
            self._open.pop(connection, None)
            connection.abort()

    def _has_room(self) -> bool:
        """Whether one more connection may be open; if necessary, one is closed whose client sends no more.

        Its request goes on, such as a JoinGroup that waits: what a client has asked for is done, as in Kafka.
        """
        if len(self._open) < self._options.max_connections:
            return True
        ended = next((one for one in self._open if one.ended.done()), None)
        if ended is not None:
            del self._open[ended]
            ended.abort()
        return ended is not None

    async def _authenticate(self, connection: Connection, authentication: Authentication) -> None:
        """Answer nothing but versions until the client is a user.

        Raises
        ------
        AuthenticationFailedError
            When it is none.
        """
        handlers = {API_VERSIONS: self._api_versions, **authentication.handlers}
        while not authentication.is_complete:
            frame = await connection.frame(_MOST_TOKEN_BYTES)
            if authentication.takes_raw_tokens:
                token = authentication.token(frame)
                response: Pieces | None = [len(token).to_bytes(4, "big") + token]
            else:
                response = await _answer(handlers, frame, connection.client_host, connection.ended)
            if authentication.failure is not None:
                await asyncio.sleep(_FAILURE_SECONDS)
            await connection.send(response or [])
            if authentication.failure is not None:
                raise AuthenticationFailedError(authentication.failure)

    async def _answer_one(self, connection: Connection) -> None:
        idle_seconds = self._options.max_idle_ms / 1000
        frame = await connection.frame(self._options.max_request_bytes, idle_seconds)
        response = await self.response(frame, connection.client_host, connection.ended)
        if response is None:
            return
        with self._unread.held(sum(map(len, response))):
            await connection.send(response, idle_seconds)

    async def response(
        self, frame: Buffer, client_host: str, ended: asyncio.Future[None] | None = None
    ) -> Pieces | None:
        """Return the frame of the response to a request; None if its client expects none.

        Parameters
        ----------
        frame : buffer
            The request, without its length.
        client_host : str
        ended : asyncio.Future, optional
            Is done when the client sends no more.

        Raises
        ------
        InvalidRecordError, UnsupportedRequestError, ConnectionEndedError
            When the only answer is the end of the connection.
        """
        return await _answer(self._handlers, frame, client_host, ended)

    async def _api_versions(self, request: Request) -> Mapping[str, Any]:
        known = [one for key, one in sorted(apis().items()) if key in self._handlers]
        ranges = [
            {"api_key": one.key, "min_version": one.request.versions.first, "max_version": one.request.versions.last}
            for one in known
        ]
        is_unknown = request.version == UNKNOWN_VERSION
        fields: dict[str, Any] = {
            "error_code": ErrorCode.UNSUPPORTED_VERSION if is_unknown else ErrorCode.NONE,
            "api_keys": ranges,
        }
        if self._features and request.version >= _FEATURES_FROM_ZERO - 1:
            levels = sorted(self._features.items())
            fields["finalized_features_epoch"] = _FEATURES_EPOCH
            fields["finalized_features"] = [
                {"name": name, "max_version_level": level, "min_version_level": level} for name, level in levels
            ]
            if request.version >= _FEATURES_FROM_ZERO:
                fields["supported_features"] = [
                    {"name": name, "min_version": min(_LEAST_LEVELS.get(name, 0), level), "max_version": level}
                    for name, level in levels
                ]
        return fields


async def _answer(
    handlers: Mapping[int, Handler], frame: Buffer, client_host: str, ended: asyncio.Future[None] | None
) -> Pieces | None:
    key = api_key(frame)
    if key in apis() and key not in handlers:  # before it is parsed, which takes memory
        raise UnsupportedRequestError(f"{apis()[key].name} is not supported, or not before SASL has authenticated")
    request = Request.parse(frame, client_host, ended)
    return await _response(handlers[key], request)


async def _authenticated_already(request: Request) -> Mapping[str, Any]:
    """Answer requests of SASL behind its end; a session has no lifetime after which it would begin again."""
    return error_response(request, ErrorCode.ILLEGAL_SASL_STATE)


async def _response(handler: Handler, request: Request) -> Pieces | None:
    try:
        values = await handler(request)
        return None if values is None else request.response(values)
    except (ConnectionEndedError, UnsupportedRequestError):
        raise
    except Exception as error:
        _log.exception("%s of client %r has failed", request.api.name, request.client_id)
        answer = error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)
        if not request.has_response or not has_error(answer):
            raise ConnectionEndedError(f"{request.api.name} has failed: {error!r}") from error
        return request.response(answer)
