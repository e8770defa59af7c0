"""Limits of a server."""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypedDict

from kraftlog.server.tls import Tls
from kraftlog.server.users import Users

_log = logging.getLogger("kraftlog.server")
LOOPBACK = "127.0.0.1"
_BACKLOG = 128
_EVERY_INTERFACE = ("0.0.0.0", "::", "")


@dataclass(frozen=True)
class ServerOptions:
    """Where a server listens, and what it accepts.

    Attributes
    ----------
    host : str
        Address to listen at; clients are told the same one unless ``advertised_host`` is another.
    port : int
        0 for any free port.
    advertised_host : str or None
        Host that clients connect to.
    max_request_bytes : int
        A connection that announces a larger request is closed.
    max_response_bytes : int
        Of records in a response, apart from the first batch, which is sent whole.
    max_queued_bytes : int
        Of large requests on all connections together, until they are answered (``queued.max.request.bytes``); above
        it, connections wait with what they send. The same number of responses, until clients have read them; above it,
        a fetch returns one batch.
    max_connections : int
        Others are closed. One whose client sends no more makes room for another.
    tls : Tls or None
        Encryption of all connections; by default there is none.
    users : Users or None
        Who has to log in by SASL, and by which of its mechanisms; by default nobody.
    max_idle_ms : int
        Time after which a connection without a complete request is closed (``connections.max.idle.ms``); that in which
        the request waits for memory of the server does not count.
    """

    host: str = LOOPBACK
    port: int = 0
    advertised_host: str | None = None
    tls: Tls | None = None
    users: Users | None = None
    max_request_bytes: int = 1 << 20
    max_response_bytes: int = 16 << 20
    max_queued_bytes: int = 256 << 20
    max_connections: int = 1000
    max_idle_ms: int = 600_000

    @property
    def client_host(self) -> str:
        """The host that clients are told to connect to.

        Raises
        ------
        ValueError
            When it is unknown, because the server listens at all interfaces.
        """
        if self.advertised_host is None and self.host in _EVERY_INTERFACE:
            raise ValueError(
                f"host {self.host!r}: expected the host that clients connect to as advertised_host, found none"
            )
        return self.advertised_host or self.host

    @property
    def security_protocol(self) -> str:
        """What clients have as ``security.protocol``."""
        encryption = "PLAINTEXT" if self.tls is None else "SSL"
        return encryption if self.users is None else f"SASL_{encryption}"

    def listen(self) -> socket.socket:
        """Return a listening socket; warn if other hosts can connect to it without encryption or authentication.

        Raises
        ------
        OSError
            When the address is in use, or is not one of this host, or a file of TLS cannot be read.
        ValueError
            When the certificate cannot be used, or there is no host that clients can connect to.
        """
        _ = self.client_host
        if self.tls is not None:
            self.tls.context()  # what is wrong with it is said before anything is opened
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.create_server((self.host, self.port), family=family, backlog=_BACKLOG)
        address = listening.getsockname()[0]
        if self._lack is not None and not ip_address(address).is_loopback:
            _log.warning("%s: other hosts can connect, and connections are %s", address, self._lack)
        return listening

    @property
    def _lack(self) -> str | None:
        """What connections are not; None if they are encrypted and authenticated."""
        is_authenticated = self.users is not None or (self.tls is not None and self.tls.client_authorities is not None)
        if self.tls is None:
            return "not encrypted" if is_authenticated else "neither encrypted nor authenticated"
        return None if is_authenticated else "not authenticated"


class ServerArguments(TypedDict, total=False):
    """``ServerOptions`` as arguments, for type checkers."""

    host: str
    port: int
    advertised_host: str | None
    tls: Tls | None
    users: Users | None
    max_request_bytes: int
    max_response_bytes: int
    max_queued_bytes: int
    max_connections: int
    max_idle_ms: int
