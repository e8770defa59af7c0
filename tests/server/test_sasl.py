"""SASL: who is a user can do all, and who is not gets Kafka's errors and the end of the connection."""

from __future__ import annotations

import asyncio
import os
import shlex
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import pytest
from broker_client import BrokerClient
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource
from test_connections import API_VERSIONS, LIMIT, METADATA

import kraftlog
from certificates import certificates
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.tls import Tls
from kraftlog.server.users import MECHANISMS, Users

HANDSHAKE, AUTHENTICATE = 17, 36
# the last two have letters that SASLprep would replace, remove or refuse; Kafka's clients and brokers do not
PASSWORDS = {"alice": "secret", "bob=,": "pass,word=é", "ªⅨ": "pass\u00adwordⅨ", "ا1": "\u0007ا1"}  # noqa: RUF001
QUIET = {"log_level": 0}


@pytest.fixture(scope="module")
def broker() -> Iterator[kraftlog.Broker]:
    with kraftlog.Broker(users=Users(PASSWORDS)) as running:
        yield running


def settings_of(broker: kraftlog.Broker, mechanism: str, name: str, password: str) -> dict[str, object]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        **QUIET,
    }


@pytest.mark.parametrize("name", PASSWORDS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(broker: kraftlog.Broker, mechanism: str, name: str):
    topic = f"{mechanism}-{len(name)}"
    settings = settings_of(broker, mechanism, name, PASSWORDS[name])
    producer = Producer({**settings, "transactional.id": topic})
    producer.init_transactions(LIMIT)
    producer.begin_transaction()
    producer.produce(topic, b"one")
    producer.commit_transaction(LIMIT)
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(LIMIT)
    consumer.close()
    assert message is not None
    assert message.value() == b"one"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", ["alice", "ªⅨ"])
def test_aiokafka(broker: kraftlog.Broker, mechanism: str, name: str):
    async def run() -> bytes | None:
        options = {
            "bootstrap_servers": broker.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": name,
            "sasl_plain_password": PASSWORDS[name],
        }
        topic = f"aio-{mechanism}-{len(name)}"
        async with aiokafka.AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait(topic, b"one")
        async with aiokafka.AIOKafkaConsumer(topic, auto_offset_reset="earliest", **options) as consumer:
            return (await asyncio.wait_for(consumer.getone(), LIMIT)).value

    assert asyncio.run(run()) == b"one"


@pytest.mark.parametrize(("name", "password"), [("alice", "Secret"), ("alice", "secret2"), ("eve", "secret")])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_is_no_user(broker: kraftlog.Broker, mechanism: str, name: str, password: str):
    errors: list[KafkaError] = []
    settings = settings_of(broker, mechanism, name, password) | {"group.id": "g", "error_cb": errors.append}
    consumer = Consumer(settings)
    with pytest.raises(KafkaException):
        consumer.list_topics(timeout=1)
    consumer.poll(0.1)
    consumer.close()
    assert KafkaError._AUTHENTICATION in [one.code() for one in errors]


def test_with_tls(tmp_path: Path):
    files = certificates(tmp_path / "files")
    with kraftlog.Broker(tls=Tls(files.server, files.server_key), users=Users(PASSWORDS)) as broker:
        settings = settings_of(broker, "SCRAM-SHA-512", "alice", PASSWORDS["alice"])
        settings |= {"security.protocol": "SASL_SSL", "ssl.ca.location": str(files.authority)}
        producer = Producer(settings)
        producer.produce("orders", b"one")
        assert producer.flush(LIMIT) == 0


@pytest.mark.parametrize("is_encrypted", [False, True])
@pytest.mark.parametrize("has_users", [False, True])
def test_the_node_says_how_clients_connect(tmp_path: Path, is_encrypted: bool, has_users: bool):
    files = certificates(tmp_path / "files")
    tls = Tls(files.server, files.server_key) if is_encrypted else None
    protocol = ("SASL_" if has_users else "") + ("SSL" if is_encrypted else "PLAINTEXT")
    with kraftlog.Broker(tls=tls, users=Users(PASSWORDS) if has_users else None) as broker:
        settings = settings_of(broker, "SCRAM-SHA-256", "alice", PASSWORDS["alice"])
        settings |= {"security.protocol": protocol, "ssl.ca.location": str(files.authority)}
        node = ConfigResource(ConfigResource.Type.BROKER, "1")
        admin = AdminClient(settings)
        configs = admin.describe_configs([node])[node].result(LIMIT)
        assert configs["advertised.listeners"].value == f"{protocol}://{broker.bootstrap_servers}"


def log_in(client: BrokerClient, token: bytes, mechanism: str = "PLAIN") -> dict[str, object]:
    assert client.ask(HANDSHAKE, 1, {"mechanism": mechanism})["error_code"] == 0
    return client.ask(AUTHENTICATE, 2, {"auth_bytes": token})


def test_only_versions_are_answered_before(broker: kraftlog.Broker):
    with BrokerClient(broker) as client:
        keys = {one["api_key"] for one in client.ask(API_VERSIONS, 4, {})["api_keys"]}
        assert {HANDSHAKE, AUTHENTICATE, METADATA} <= keys
        client.send(client.frame(METADATA, 12, {"topics": []}))
        assert client.is_closed()
    with BrokerClient(broker) as client:
        assert client.ask(HANDSHAKE, 1, {"mechanism": "PLAIN"}) == {"error_code": 0, "mechanisms": list(MECHANISMS)}
        client.send(client.frame(METADATA, 12, {"topics": []}))
        assert client.is_closed()
    with BrokerClient(broker) as client:
        assert log_in(client, b"\0alice\0secret") == {
            "error_code": 0,
            "error_message": None,
            "auth_bytes": b"",
            "session_lifetime_ms": 0,
        }
        assert client.ask(METADATA, 12, {"topics": []})["brokers"]


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"alice",
        b"\0alice",
        b"\0alice\0",
        b"\0alice\0secre",
        b"\0alice\0secret\0",
        b"bob=,\0alice\0secret",
        b"\0\0",
        b"\0eve\0",
        b"\0alice\0\xff",
    ],
)
def test_tokens_that_are_refused(broker: kraftlog.Broker, token: bytes):
    with BrokerClient(broker) as client:
        answer = log_in(client, token)
        assert answer["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "invalid credentials" in str(answer["error_message"])
        assert client.is_closed()


@pytest.mark.parametrize("token", [b"n,,n=alice", b"n,,n=eve,r=abc", b"p=tls-unique,,n=alice,r=abc", b"\xff", b""])
def test_first_messages_of_scram_that_are_refused(broker: kraftlog.Broker, token: bytes):
    with BrokerClient(broker) as client:
        answer = log_in(client, token, "SCRAM-SHA-256")
        assert answer["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert client.is_closed()


def test_salts_and_nonces_differ(broker: kraftlog.Broker):
    """A client that is shown the same challenge again could answer with what it has overheard."""
    challenges = []
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        with BrokerClient(broker) as client:
            challenge = log_in(client, b"n,,n=alice,r=abc", mechanism)["auth_bytes"]
            challenges.append(dict(part.split("=", 1) for part in bytes(challenge).decode().split(",")))  # type: ignore[call-overload]
    assert all(one["r"].startswith("abc") and one["i"] == "4096" for one in challenges)
    assert len({one["r"] for one in challenges}) == 3
    assert len({one["s"] for one in challenges}) == 2


def test_the_order_of_requests(broker: kraftlog.Broker):
    with BrokerClient(broker) as client:  # no handshake
        answer = client.ask(AUTHENTICATE, 2, {"auth_bytes": b"\0alice\0secret"})
        assert answer["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
        assert client.is_closed()
    with BrokerClient(broker) as client:  # two of them
        client.ask(HANDSHAKE, 1, {"mechanism": "PLAIN"})
        assert client.ask(HANDSHAKE, 1, {"mechanism": "PLAIN"})["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
        assert client.is_closed()
    with BrokerClient(broker) as client:  # again afterwards
        log_in(client, b"\0alice\0secret")
        answer = client.ask(AUTHENTICATE, 2, {"auth_bytes": b"\0alice\0secret"})
        assert (answer["error_code"], bytes(answer["auth_bytes"])) == (ErrorCode.ILLEGAL_SASL_STATE, b"")
        assert client.ask(HANDSHAKE, 1, {"mechanism": "PLAIN"})["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
        assert client.ask(METADATA, 12, {"topics": []})["brokers"]


@pytest.mark.parametrize(
    ("mechanism", "token"), [("PLAIN", "\0{}\0secret"), ("SCRAM-SHA-256", "n,,n={},r=abc"), ("{}", "")]
)
def test_a_long_name_does_not_fill_the_log(
    broker: kraftlog.Broker, caplog: pytest.LogCaptureFixture, mechanism: str, token: str
):
    name = "a" * 20_000
    with BrokerClient(broker) as client:
        if client.ask(HANDSHAKE, 1, {"mechanism": mechanism.format(name)})["error_code"] == 0:
            answer = client.ask(AUTHENTICATE, 2, {"auth_bytes": token.format(name).encode()})
            assert answer["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert client.is_closed()
    (line,) = caplog.messages
    assert "'aaaa" in line
    assert len(line) < 250


def test_what_is_not_answered_is_not_parsed(broker: kraftlog.Broker, caplog: pytest.LogCaptureFixture):
    """Half a MiB of it can become many times as much memory."""
    with BrokerClient(broker) as client:
        client.send(struct.pack(">ihhih", 10, METADATA, 12, 1, -1))  # without the fields of any version
        assert client.is_closed()
    assert "Metadata is not supported, or not before SASL has authenticated" in caplog.text


@pytest.mark.parametrize("is_user", [True, False])
def test_a_client_that_does_not_authenticate_is_closed(is_user: bool):
    """Also if it asks for versions again and again: it holds one of the connections."""

    def ask_for(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            client.ask(API_VERSIONS, 0, {})
            time.sleep(0.1)

    with kraftlog.Broker(users=Users(PASSWORDS), max_idle_ms=2000) as broker, BrokerClient(broker) as client:
        if is_user:
            log_in(client, b"\0alice\0secret")
            ask_for(2.5)
        else:
            with pytest.raises(ConnectionError):
                ask_for(LIMIT)


def test_an_unknown_mechanism(broker: kraftlog.Broker):
    with BrokerClient(broker) as client:
        answer = client.ask(HANDSHAKE, 1, {"mechanism": "GSSAPI"})
        assert answer == {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": list(MECHANISMS)}
        assert client.is_closed()


@pytest.mark.parametrize("enabled", [["SCRAM-SHA-512"], ["SCRAM-SHA-256", "PLAIN"]])
def test_mechanisms_that_are_enabled(enabled: list[str]):
    with kraftlog.Broker(users=Users(PASSWORDS, enabled)) as broker:
        for mechanism in MECHANISMS:
            with BrokerClient(broker) as client:
                answer = client.ask(HANDSHAKE, 1, {"mechanism": mechanism})
                code = ErrorCode.NONE if mechanism in enabled else ErrorCode.UNSUPPORTED_SASL_MECHANISM
                assert answer == {"error_code": code, "mechanisms": enabled}
                if mechanism not in enabled:
                    assert client.is_closed()
        producer = Producer(settings_of(broker, enabled[0], "alice", PASSWORDS["alice"]))
        producer.produce("orders", b"one")
        assert producer.flush(LIMIT) == 0


@pytest.mark.parametrize("mechanisms", [[], ["PLAIN", "GSSAPI"], ["plain"], "PLAIN"])
def test_mechanisms_that_cannot_be_enabled(mechanisms: list[str]):
    with pytest.raises(ValueError, match="mechanisms: expected some of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, found"):
        Users(PASSWORDS, mechanisms)


@pytest.mark.parametrize(("password", "is_user"), [(b"secret", True), (b"wrong", False)])
def test_tokens_without_a_header(broker: kraftlog.Broker, password: bytes, is_user: bool):
    """Of clients that send version 0 of the handshake."""
    token = b"\0alice\0" + password
    with BrokerClient(broker) as client:
        assert client.ask(HANDSHAKE, 0, {"mechanism": "PLAIN"})["error_code"] == 0
        client.send(struct.pack(">i", len(token)) + token)
        if is_user:
            assert client.exactly(4) == bytes(4)
            assert client.ask(METADATA, 12, {"topics": []})["brokers"]
        else:
            assert client.is_closed()


def test_a_token_that_is_too_large_is_not_received(broker: kraftlog.Broker, caplog: pytest.LogCaptureFixture):
    with BrokerClient(broker) as client:
        client.send(struct.pack(">i", (1 << 19) + 1))
        assert client.is_closed()
    assert "a request of 524289 bytes, of at most 524288" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '"alice"',
        '{"alice": 1}',
        '{"alice": ""}',
        '{"": "a"}',
        '{"a": "1", "a": "2"}',
        '{"a": "\\u0000"}',
        '{"a\\u0000": "b"}',
        '{"a": "\\ud800"}',
    ],
)
def test_files_that_name_no_users(tmp_path: Path, text: str):
    path = tmp_path / "users.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ValueError, match=r"users\.json: .*expected (a JSON|each|one|a name)"):
        Users.read(path)


def test_a_file_of_users(tmp_path: Path):
    path = tmp_path / "users.json"
    path.write_text('{"alice": "secret"}')
    path.chmod(0o600)
    users = Users.read(path, ["PLAIN"])
    assert users.has("alice", "secret")
    assert not users.has("alice", "")
    assert not users.has("eve", "")
    assert users.mechanisms == ("PLAIN",)


@pytest.mark.parametrize("permissions", [0o640, 0o604, 0o620, 0o601, 0o444, 0o644, 0o400, 0o700])
def test_a_file_of_users_that_others_can_read(tmp_path: Path, permissions: int):
    """It is refused as ssh refuses a private key, and the message has the command that mends it."""
    path, link = tmp_path / "the users.json", tmp_path / "link.json"
    path.write_text('{"alice": "secret"}')
    link.symlink_to(path)
    path.chmod(permissions)
    for one in (path, link):
        if permissions & 0o077:
            with pytest.raises(ValueError, match="expected a file that only its owner can read") as refused:
                Users.read(one)
            command = str(refused.value).rpartition(": ")[2]
        else:
            assert Users.read(one).has("alice", "secret")
    if permissions & 0o077:
        subprocess.run(shlex.split(command), check=True)
        assert Users.read(link).has("alice", "secret")


def test_a_file_of_users_of_another_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A secret that a container mounts can be everybody's to read, and its reader cannot change that."""
    path = tmp_path / "users.json"
    path.write_text('{"alice": "secret"}')
    path.chmod(0o444)
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert Users.read(path).has("alice", "secret")
