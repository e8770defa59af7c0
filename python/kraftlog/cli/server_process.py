"""A command that serves until a signal."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from kraftlog.disk.durable import write_file
from kraftlog.server.options import LOOPBACK, ServerArguments
from kraftlog.server.tls import Tls
from kraftlog.server.users import MECHANISMS, Users

Command = TypeVar("Command", bound=Callable[..., None])
_PORT = 9092
_ENDS = (signal.SIGINT, signal.SIGTERM)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def listener_options(command: Command) -> Command:
    """Add the options that say where a server listens, how others learn it, and whom it lets in.

    The command gets ``listener``, the arguments of a server, and ``ready_file``.
    """

    @wraps(command)
    def with_listener(
        host: str,
        port: int,
        advertised_host: str | None,
        ssl_certificate: Path | None,
        ssl_key: Path | None,
        ssl_client_ca: Path | None,
        users: Path | None,
        sasl_mechanisms: tuple[str, ...],
        **others: Any,
    ) -> None:
        if ssl_certificate is None and (ssl_key or ssl_client_ca):
            raise click.UsageError("--ssl-key and --ssl-client-ca need --ssl-certificate")
        if users is None and sasl_mechanisms:
            raise click.UsageError("--sasl-mechanism needs --users")
        listener: ServerArguments = {"host": host, "port": port, "advertised_host": advertised_host}
        if ssl_certificate is not None:
            listener["tls"] = Tls(ssl_certificate, ssl_key, ssl_client_ca)
        if users is not None:
            listener["users"] = Users.read(users, sasl_mechanisms or MECHANISMS)
        command(listener=listener, **others)

    wrapped: Any = with_listener
    for option in (
        click.option(
            "--sasl-mechanism",
            "sasl_mechanisms",
            type=click.Choice(MECHANISMS),
            multiple=True,
            help="How clients may log in; by default all three. Can be given more than once.",
        ),
        click.option(
            "--users",
            type=_FILE,
            help="JSON object of users and passwords, which only its owner can read: clients log in by SASL.",
        ),
        click.option(
            "--ssl-client-ca", type=_FILE, help="PEM file: only clients with a certificate of these authorities."
        ),
        click.option("--ssl-key", type=_FILE, help="PEM file with the key, if it is not in that of the certificate."),
        click.option(
            "--ssl-certificate", type=_FILE, help="PEM file with the certificate chain: TLS for all connections."
        ),
        click.option(
            "--ready-file",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Write host and port to this file when clients can connect.",
        ),
        click.option("--advertised-host", help="Host that clients connect to, if it is not --host."),
        click.option(
            "--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="0 for any free port."
        ),
        click.option("--host", default=LOOPBACK, show_default=True, help="Address to listen at."),
    ):
        wrapped = option(wrapped)
    found: Command = wrapped
    return found


class EndSignal:
    """Ctrl-C or SIGTERM; made before the server starts, so that neither is missed.

    A signal that another thread gets, or that comes just before the main thread begins to wait for a lock, does not
    wake the main thread, and only there Python runs handlers. It waits for the byte that each signal writes instead.
    """

    def __init__(self) -> None:
        self._received, self._sent = socket.socketpair()
        self._sent.setblocking(False)
        signal.set_wakeup_fd(self._sent.fileno())
        for number in _ENDS:
            signal.signal(number, lambda *_: None)

    def wait(self, bootstrap_servers: str, ready_file: Path | None) -> None:
        """Say where clients connect, and wait."""
        print(bootstrap_servers, flush=True)
        if ready_file is not None:
            write_file(ready_file, f"{bootstrap_servers}\n".encode())
        while self._received.recv(1)[0] not in _ENDS:
            pass
        signal.set_wakeup_fd(-1)  # the sockets are closed with this object
