"""TLS: clients of two projects over it, certificates of clients, and what is no TLS."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import ssl
import struct
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiokafka
import pytest
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, KafkaException, Producer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from test_connections import FETCH, LIMIT, LOG, METADATA, Client, connections_of, fetch_of, until_none
from test_frames import MIB, SIZES, echo, framed, served

import kraftlog
from certificates import Certificates, certificates
from kraftlog.server.connection import SHARED_BYTES, Connection
from kraftlog.server.tls import Tls

QUIET = {"log_level": 0}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("tls") / "files")


def settings_of(broker: kraftlog.Broker, files: Certificates) -> dict[str, object]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.ca.location": str(files.authority),
        **QUIET,
    }


def test_a_transaction_of_librdkafka(files: Certificates, tmp_path: Path):
    """Large requests and responses as well, which are received and sent in pieces."""
    values = [bytes([number]) * 300_000 for number in range(20)]
    with kraftlog.Broker(tmp_path / "log", tls=Tls(files.server, files.server_key)) as broker:
        producer = Producer({**settings_of(broker, files), "transactional.id": "t"})
        producer.init_transactions(LIMIT)
        producer.begin_transaction()
        for value in values:
            producer.produce("orders", value)
        producer.commit_transaction(LIMIT)
        consumer = Consumer({**settings_of(broker, files), "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        found = [consumer.poll(LIMIT) for _ in values]
        consumer.close()
    assert [one.value() for one in found if one is not None] == values


def test_aiokafka_with_a_certificate(files: Certificates):
    async def run(broker: kraftlog.Broker) -> bytes | None:
        context = create_ssl_context(
            cafile=str(files.authority), certfile=str(files.client), keyfile=str(files.client_key)
        )
        options = {"bootstrap_servers": broker.bootstrap_servers, "security_protocol": "SSL", "ssl_context": context}
        async with aiokafka.AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait("orders", b"one")
        async with aiokafka.AIOKafkaConsumer("orders", auto_offset_reset="earliest", **options) as consumer:
            return (await asyncio.wait_for(consumer.getone(), LIMIT)).value

    with kraftlog.Broker(tls=Tls(files.server, files.server_key, files.authority)) as broker:
        assert asyncio.run(run(broker)) == b"one"


def test_a_client_needs_the_certificate_that_is_asked_for(files: Certificates, caplog: pytest.LogCaptureFixture):
    with kraftlog.Broker(tls=Tls(files.server, files.server_key, files.authority)) as broker:
        without = settings_of(broker, files)
        with pytest.raises(KafkaException):
            Consumer({**without, "group.id": "g"}).list_topics(timeout=1)
        assert set(reasons(caplog)) == {"expected a TLS handshake, found PEER_DID_NOT_RETURN_A_CERTIFICATE"}
        certificate = {"ssl.certificate.location": str(files.client), "ssl.key.location": str(files.client_key)}
        assert Consumer({**without, **certificate, "group.id": "g"}).list_topics(timeout=LIMIT).brokers


def test_a_client_does_not_trust_another_authority(files: Certificates, tmp_path: Path):
    other = certificates(tmp_path / "other")
    with kraftlog.Broker(tls=Tls(other.server, other.server_key)) as broker, pytest.raises(KafkaException):
        Consumer({**settings_of(broker, files), "group.id": "g"}).list_topics(timeout=1)


class TlsClient(Client):
    """A client that encrypts its requests by hand."""

    def __init__(self, server: kraftlog.LogServer, context: ssl.SSLContext) -> None:
        super().__init__(server)
        # an end without close_notify is an error: it may be an attacker's
        self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1", suppress_ragged_eofs=False)


@pytest.fixture(scope="module")
def server(files: Certificates) -> Iterator[kraftlog.LogServer]:
    with kraftlog.LogServer(LOG, tls=Tls(files.server, files.server_key)) as running:
        yield running


def trusting(files: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(files.authority))


def is_well(server: kraftlog.LogServer, context: ssl.SSLContext) -> bool:
    with TlsClient(server, context) as client:
        return len(client.ask(METADATA, 12, {"topics": None})["topics"]) == 3


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return why the server has closed connections; nothing else was said, and no traceback was printed."""
    assert [one for one in caplog.records if one.exc_info or one.name != "kraftlog.server"] == []
    return [one.message.removeprefix("a connection is closed: ") for one in caplog.records]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions(server: kraftlog.LogServer, files: Certificates, version: ssl.TLSVersion):
    context = trusting(files)
    context.minimum_version = context.maximum_version = version
    assert is_well(server, context)


def test_older_versions_are_refused(server: kraftlog.LogServer, files: Certificates, caplog: pytest.LogCaptureFixture):
    context = trusting(files)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError):
        TlsClient(server, context)
    assert is_well(server, trusting(files))
    assert reasons(caplog) == ["expected a TLS handshake, found UNSUPPORTED_PROTOCOL"]


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", bytes(100), struct.pack(">ihhih", 10, 18, 0, 1, -1) * 9])
def test_what_is_no_tls_closes_the_connection(
    server: kraftlog.LogServer, files: Certificates, caplog: pytest.LogCaptureFixture, data: bytes
):
    with Client(server) as client:
        client.send(data)
        while client.socket.recv(1 << 10):  # an alert of TLS, and the end
            pass
    assert is_well(server, trusting(files))
    (reason,) = reasons(caplog)
    assert reason.startswith("expected a TLS handshake, found ")


@pytest.mark.parametrize("is_cut", [True, False])
@pytest.mark.parametrize("is_reset", [True, False])
def test_a_client_that_leaves_within_the_handshake(
    server: kraftlog.LogServer, files: Certificates, caplog: pytest.LogCaptureFixture, is_cut: bool, is_reset: bool
):
    with Client(server) as client:
        outgoing = ssl.MemoryBIO()
        session = trusting(files).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
        with pytest.raises(ssl.SSLWantReadError):
            session.do_handshake()
        hello = outgoing.read()
        client.send(hello[: len(hello) // 2] if is_cut else hello)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", is_reset, 0))
    assert is_well(server, trusting(files))
    assert reasons(caplog) == []


@pytest.mark.parametrize("lost", [OSError(113, "No route to host"), None])
def test_a_network_that_fails_within_the_handshake(
    server: kraftlog.LogServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    lost: OSError | None,
):
    async def start_tls(*_: object, **__: object) -> None:
        if lost is not None:
            raise lost

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.start_tls", start_tls)
    with Client(server) as client:
        assert client.is_closed()
    assert reasons(caplog) == []


def test_silent_clients_are_closed_and_counted(files: Certificates):
    """Also before their handshake has ended: anybody can open a connection."""
    tls = Tls(files.server, files.server_key)
    with kraftlog.LogServer(LOG, tls=tls, max_idle_ms=1000, max_connections=2) as server:
        with Client(server) as silent, Client(server) as slow:
            slow.send(b"\x16\x03\x01")
            with Client(server) as third:
                assert third.is_closed()
            assert silent.is_closed()
            assert slow.is_closed()
        assert is_well(server, trusting(files))


def test_a_client_that_is_gone_in_a_long_poll_leaves_nothing(files: Certificates):
    with kraftlog.LogServer(LOG, tls=Tls(files.server, files.server_key), max_connections=1) as server:
        with TlsClient(server, trusting(files)) as client:
            client.send(client.frame(FETCH, 12, fetch_of("orders", 130, max_wait_ms=2**31 - 1)))
        until_none(connections_of(server))
        assert is_well(server, trusting(files))


def test_a_closed_server_ends_the_stream_in_order(files: Certificates):
    with kraftlog.LogServer(LOG, tls=Tls(files.server, files.server_key)) as server:
        client = TlsClient(server, trusting(files))
        assert client.ask(METADATA, 1, {"topics": None})
    with client:
        assert client.socket.recv(1) == b""  # without close_notify, an error


@pytest.mark.parametrize("cut", [1000, SHARED_BYTES + 5, 3 * MIB])
def test_frames_arrive_as_they_were_sent(files: Certificates, cut: int):
    dice = random.Random(cut)
    sent = framed(*map(dice.randbytes, SIZES))

    async def run(plain: socket.socket) -> bytes:
        plain.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=plain, ssl=trusting(files), server_hostname="127.0.0.1")

        async def send() -> None:
            for at in range(0, len(sent), cut):
                writer.write(sent[at : at + cut])
                await writer.drain()

        _, received = await asyncio.gather(send(), reader.readexactly(len(sent)))
        writer.transport.abort()
        return received

    with served(encrypted_echo, ssl_context=Tls(files.server, files.server_key).context()) as client:
        assert asyncio.run(asyncio.wait_for(run(client), LIMIT)) == sent


async def encrypted_echo(connection: Connection) -> None:
    """Send each frame back, some time after the handshake."""
    await connection.encrypt()
    await asyncio.sleep(0.05)
    with suppress(ConnectionResetError):
        await echo(connection)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("size", [10, SHARED_BYTES - 4, 5 * MIB])
def test_requests_that_arrive_with_the_end_of_the_handshake(
    files: Certificates, size: int, is_late: bool, monkeypatch: pytest.MonkeyPatch
):
    """They can fill the memory of the connection before it knows that it is encrypted."""
    start_tls = asyncio.BaseEventLoop.start_tls

    async def start_late(*arguments: Any, **options: Any) -> asyncio.Transport | None:
        transport = await start_tls(*arguments, **options)
        await asyncio.sleep(0.1)
        return transport

    if is_late:
        monkeypatch.setattr(asyncio.BaseEventLoop, "start_tls", start_late)
    sent = framed(random.Random(size).randbytes(size), b"next")
    with served(encrypted_echo, ssl_context=Tls(files.server, files.server_key).context()) as client:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = trusting(files).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with pytest.raises(ssl.SSLWantReadError):
            session.do_handshake()
        client.sendall(outgoing.read())
        while True:
            incoming.write(client.recv(MIB))
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                pass
        session.write(sent)
        sender = threading.Thread(target=client.sendall, args=(outgoing.read(),))
        sender.start()
        received = bytearray()
        while len(received) < len(sent):
            try:
                received += session.read(MIB)
            except ssl.SSLWantReadError:
                piece = client.recv(MIB)
                assert piece
                incoming.write(piece)
        sender.join(LIMIT)
        assert received == sent


def test_tls_at_a_plain_port_closes_the_connection(files: Certificates, caplog: pytest.LogCaptureFixture):
    with kraftlog.LogServer(LOG) as server, pytest.raises(OSError):
        TlsClient(server, trusting(files))
    (reason,) = reasons(caplog)
    assert reason.endswith("; the client begins TLS, and this server has no certificate")


def test_files_that_are_something_else(files: Certificates, tmp_path: Path):
    server, key = files.server, files.server_key
    empty, broken, encrypted, of_rsa = (tmp_path / name for name in ("empty", "broken", "encrypted", "rsa"))
    empty.touch()
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    password = serialization.BestAvailableEncryption(b"a password")
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    encrypted.write_bytes(loaded.private_bytes(serialization.Encoding.PEM, pkcs8, password))
    other = rsa.generate_private_key(65537, 2048)
    of_rsa.write_bytes(other.private_bytes(serialization.Encoding.PEM, pkcs8, plain))
    of_another = f"expected the private key of the certificate in {server}, found another one"
    for tls, message in (
        (Tls(server), f"{server}: expected a private key in PEM, found none"),
        (Tls(key), f"{key}: expected a certificate in PEM, found none"),
        (Tls(empty), f"{empty}: expected a certificate in PEM, found none"),
        (Tls(server, empty), f"{empty}: expected a private key in PEM, found none"),
        (Tls(server, files.client_key), f"{files.client_key}: {of_another}"),
        (Tls(server, of_rsa), f"{of_rsa}: {of_another}"),
        (Tls(server, encrypted), f"{encrypted}: expected a private key without a password, found an encrypted one"),
        (Tls(broken, key), f"{broken} and {key}: expected a certificate and its key in PEM, found "),
        (Tls(server, key, key), f"{key}: expected a certificate in PEM, found none"),
        (Tls(server, key, broken), f"{broken}: expected certificates in PEM, found "),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            kraftlog.Broker(tmp_path / "log", tls=tls)
    with kraftlog.Broker(tmp_path / "log", tls=Tls(server, key)):  # nothing has kept the directory
        pass


def test_a_key_in_the_file_of_the_certificate(files: Certificates, tmp_path: Path):
    both = tmp_path / "both.pem"
    both.write_bytes(files.server_key.read_bytes() + files.server.read_bytes())
    with kraftlog.LogServer(LOG, tls=Tls(str(both))) as server:
        assert is_well(server, trusting(files))


def test_a_missing_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"missing\.pem"):
        kraftlog.Broker(tls=Tls(tmp_path / "missing.pem"))
