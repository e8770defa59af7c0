"""TLS: clients of two projects over it, certificates of clients, and what is no TLS."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from pathlib import Path

import aiokafka
import pytest
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, KafkaException, Producer
from test_connections import LIMIT, LOG, METADATA, Client

import kraftlog
from certificates import Certificates, certificates
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


def test_a_client_needs_the_certificate_that_is_asked_for(files: Certificates):
    with kraftlog.Broker(tls=Tls(files.server, files.server_key, files.authority)) as broker:
        without = settings_of(broker, files)
        with pytest.raises(KafkaException):
            Consumer({**without, "group.id": "g"}).list_topics(timeout=1)
        certificate = {"ssl.certificate.location": str(files.client), "ssl.key.location": str(files.client_key)}
        assert Consumer({**without, **certificate, "group.id": "g"}).list_topics(timeout=LIMIT).brokers


def test_a_client_does_not_trust_another_authority(files: Certificates, tmp_path: Path):
    other = certificates(tmp_path / "other")
    with kraftlog.Broker(tls=Tls(other.server, other.server_key)) as broker, pytest.raises(KafkaException):
        Consumer({**settings_of(broker, files), "group.id": "g"}).list_topics(timeout=1)


def test_what_is_no_tls_closes_the_connection(files: Certificates, caplog: pytest.LogCaptureFixture):
    with kraftlog.LogServer(LOG, tls=Tls(files.server, files.server_key)) as server:
        with Client(server) as client:  # type: ignore[arg-type]
            client.send(client.frame(METADATA, 1, {"topics": None}))
            while client.socket.recv(1 << 10):  # an alert of TLS, and the end
                pass
        host, _, port = server.bootstrap_servers.rpartition(":")
        context = ssl.create_default_context(cafile=str(files.authority))
        with context.wrap_socket(
            socket.create_connection((host, int(port)), LIMIT), server_hostname="127.0.0.1"
        ) as whole:
            assert whole.version() in ("TLSv1.2", "TLSv1.3")
    assert [one for one in caplog.records if one.levelno > logging.WARNING] == []


def test_tls_at_a_plain_port_closes_the_connection():
    with kraftlog.LogServer(LOG) as server:
        host, _, port = server.bootstrap_servers.rpartition(":")
        plain = socket.create_connection((host, int(port)), LIMIT)
        with pytest.raises(OSError):
            ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1")


@pytest.mark.parametrize(
    ("certificate", "key", "authorities", "message"),
    [
        ("server", "client_key", None, "expected a certificate and its private key"),
        ("server", None, None, "expected a certificate and its private key"),
        ("server_key", None, None, "expected a certificate and its private key"),
        ("server", "server_key", "server_key", "expected certificates as PEM"),
    ],
)
def test_files_that_are_something_else(
    files: Certificates, certificate: str, key: str | None, authorities: str | None, message: str
):
    paths = [None if name is None else getattr(files, name) for name in (certificate, key, authorities)]
    with pytest.raises(ValueError, match=message):
        kraftlog.Broker(tls=Tls(*paths))


def test_a_missing_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"missing\.pem"):
        kraftlog.Broker(tls=Tls(tmp_path / "missing.pem"))
