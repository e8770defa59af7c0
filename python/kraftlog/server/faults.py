"""Faults that a test asks a broker for: late answers, lost connections, errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from kraftlog.protocol.api import apis
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.error_response import error_response
from kraftlog.server.server import ConnectionEndedError, Handler

_PAUSE_S = 0.005


class DroppedConnectionError(ConnectionEndedError):
    """A connection that a test wanted to be lost."""


@dataclass
class _Fault:
    """A fault of the next requests of a kind.

    Attributes
    ----------
    api : str
        Name of the request, such as ``Produce``.
    times : int
        For how many requests.
    seconds : float
        Delay before the request is handled.
    error : int
        Error code that is returned instead.
    drops : {"before", "after"} or None
        Whether the connection is lost, before the request is handled or after it.
    """

    api: str
    times: int
    seconds: float = 0
    error: int = ErrorCode.NONE
    drops: str | None = None


class Faults:
    """Faults of the next requests to a broker; any thread may ask for them.

    Faults of a kind of request take effect in the order in which they were asked for, each for so many requests. Names
    of requests are Kafka's, such as ``Produce``, ``Fetch`` or ``EndTxn``.

    Examples
    --------
    >>> import kraftlog
    >>> from confluent_kafka import Producer
    >>> with kraftlog.Broker() as broker:
    ...     broker.faults.drop_after("Produce")  # the record is written, and the producer does not learn of it
    ...     options = {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
    ...     producer = Producer(options)
    ...     producer.produce("orders", b"once")
    ...     producer.flush()
    ...     log = kraftlog.open(broker.path, topics=["orders"])
    ...     log.records(["offset", "value"]).to_table().to_pylist()
    0
    [{'offset': 0, 'value': b'once'}]
    """

    def __init__(self) -> None:
        self._faults: list[_Fault] = []
        self._is_paused = False
        self._lock = Lock()

    def delay(self, api: str, seconds: float, times: int = 1) -> None:
        """Handle the next requests of a kind so much later."""
        self._add(_Fault(_known(api), times, seconds=seconds))

    def drop_before(self, api: str, times: int = 1) -> None:
        """Lose the connection of the next requests of a kind before they are handled."""
        self._add(_Fault(_known(api), times, drops="before"))

    def drop_after(self, api: str, times: int = 1) -> None:
        """Lose the connection of the next requests of a kind after they are handled: their client gets no answer."""
        self._add(_Fault(_known(api), times, drops="after"))

    def fail(self, api: str, error: int, times: int = 1) -> None:
        """Answer the next requests of a kind with an error, and do nothing else.

        Parameters
        ----------
        api : str
        error : int
            Code of Kafka's error, such as 7 for REQUEST_TIMED_OUT.
        times : int
        """
        self._add(_Fault(_known(api), times, error=error))

    def pause(self) -> None:
        """Handle no request until ``resume``; connections stay open."""
        self._is_paused = True

    def resume(self) -> None:
        """Handle requests again."""
        self._is_paused = False

    def clear(self) -> None:
        """Forget all faults, and resume."""
        with self._lock:
            self._faults.clear()
        self.resume()

    def _add(self, fault: _Fault) -> None:
        if fault.times < 1:
            raise ValueError(f"times {fault.times} is not positive")
        with self._lock:
            self._faults.append(fault)

    def _next(self, api: str) -> _Fault | None:
        with self._lock:
            fault = next((one for one in self._faults if one.api == api), None)
            if fault is not None:
                fault.times -= 1
                if not fault.times:
                    self._faults.remove(fault)
            return fault

    def around(self, handler: Handler) -> Handler:
        """Return a handler that has these faults."""

        async def answer(request: Request) -> Mapping[str, Any] | None:
            while self._is_paused:
                await asyncio.sleep(_PAUSE_S)
            fault = self._next(request.api.name)
            return await (handler(request) if fault is None else _faulty(fault, handler, request))

        return answer


async def _faulty(
    fault: _Fault, handler: Callable[[Request], Awaitable[Mapping[str, Any] | None]], request: Request
) -> Mapping[str, Any] | None:
    await asyncio.sleep(fault.seconds)
    if fault.drops == "before":
        raise DroppedConnectionError(f"{request.api.name}: dropped before it was handled")
    if fault.error:
        return error_response(request, fault.error)
    answer = await handler(request)
    if fault.drops == "after":
        raise DroppedConnectionError(f"{request.api.name}: dropped after it was handled")
    return answer


def _known(api: str) -> str:
    names = sorted(one.name for one in apis().values())
    if api not in names:
        raise ValueError(f"no request {api!r} is known; expected one of {', '.join(names)}")
    return api
