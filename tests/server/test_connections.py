"""Connections: what is no request closes one and disturbs no other, and none of them holds the server back."""

from __future__ import annotations

import random
import shutil
import socket
import struct
import time
import tracemalloc
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from certificates import certificates
from kraftlog.codec.cursor import uvarint
from kraftlog.errors import InvalidRecordError
from kraftlog.messages.one_message import MOST_ELEMENTS, decode_message, encoded
from kraftlog.protocol.api import apis
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.log_server import LogServer
from kraftlog.server.options import ServerArguments
from kraftlog.server.tls import Tls
from kraftlog.server.users import Users

LOG = Path(__file__).parents[1] / "golden" / "transactions" / "log"
LIMIT = 30
FEW = 10_000
NEGATIVE = b"\x80\x80\x80\x80\x08"  # the least number in a varint of 32 bits
API_VERSIONS, METADATA, FETCH, PRODUCE = 18, 3, 1, 0


@pytest.fixture(scope="module")
def server() -> Iterator[LogServer]:
    with LogServer(LOG, max_connections=50) as running:
        yield running


class Client:
    """A socket, and requests by hand."""

    def __init__(self, server: LogServer) -> None:
        host, _, port = server.bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), LIMIT)
        self.correlation_id = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def frame(self, key: int, version: int, values: dict[str, Any]) -> bytes:
        api = apis()[key]
        self.correlation_id += 1
        tags = b"\0" if version in api.request.flexible else b""
        header = struct.pack(">hhih", key, version, self.correlation_id, 1) + b"c" + tags
        data = header + b"".join(encoded(api.request, version, values))
        return struct.pack(">i", len(data)) + data

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise ConnectionError("closed")
            data += piece
        return data

    def answer(self, key: int, version: int) -> dict[str, Any]:
        api = apis()[key]
        (size,) = struct.unpack(">i", self.exactly(4))
        data = self.exactly(size)
        assert struct.unpack_from(">i", data) == (self.correlation_id,)
        at = 5 if version in api.response.flexible and key != API_VERSIONS else 4
        return decode_message(api.response, version, data[at:])

    def ask(self, key: int, version: int, values: dict[str, Any]) -> dict[str, Any]:
        self.send(self.frame(key, version, values))
        return self.answer(key, version)

    def is_closed(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def is_well(server: LogServer) -> bool:
    with Client(server) as client:
        return len(client.ask(METADATA, 12, {"topics": None})["topics"]) == 3


def test_every_version_of_metadata(server: LogServer):
    with Client(server) as client:
        for version in range(14):
            everything = client.ask(METADATA, version, {"topics": None if version else []})
            assert [one["name"] for one in everything["topics"]] == [
                "__consumer_offsets",
                "__transaction_state",
                "orders",
            ]
            assert [len(one["partitions"]) for one in everything["topics"]] == [1, 2, 3]
            some = client.ask(METADATA, version, {"topics": [{"name": "orders"}, {"name": "nothing"}]})
            codes = [(one["name"], one["error_code"]) for one in some["topics"]]
            assert codes == [("orders", 0), ("nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_a_text_that_is_not_utf8_closes_the_connection(server: LogServer, caplog: pytest.LogCaptureFixture):
    """Kafka replaces what is invalid, so that different names can become the same one."""
    with Client(server) as client:
        frame = client.frame(METADATA, 12, {"topics": [{"name": "orders"}]})
        client.send(frame.replace(b"orders", b"order\xff"))
        assert client.is_closed()
    assert "can't decode byte 0xff" in caplog.text
    assert is_well(server)


def test_partitions_that_are_not_among_the_files_have_no_leader(tmp_path: Path):
    """Clients take the number of entries for the number of partitions."""
    shutil.copytree(LOG, tmp_path, ignore=shutil.ignore_patterns("orders-1"), dirs_exist_ok=True)
    with LogServer(tmp_path) as server, Client(server) as client:
        (topic,) = client.ask(METADATA, 12, {"topics": [{"name": "orders"}]})["topics"]
        rows = [(one["partition_index"], one["leader_id"], one["error_code"]) for one in topic["partitions"]]
        assert rows == [(0, 1, 0), (1, -1, ErrorCode.LEADER_NOT_AVAILABLE), (2, 1, 0)]


def test_an_unknown_version_of_api_versions_is_answered(server: LogServer):
    """As Kafka answers (KIP-511): with the error and the versions of what this server answers, in version 0."""
    with Client(server) as client:
        client.correlation_id = 7
        client.send(struct.pack(">ihhih", 10, API_VERSIONS, 99, 7, -1))
        answer = client.answer(API_VERSIONS, 0)
        assert answer["error_code"] == ErrorCode.UNSUPPORTED_VERSION
        keys = {one["api_key"] for one in answer["api_keys"]}
        assert keys == {*range(4), *range(8, 17), 18, 23, 42, 47, 60, 61, 65, 66, 75}
        assert len(client.ask(METADATA, 1, {"topics": None})["topics"]) == 3  # the connection goes on


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">ih", 2, 3),
        struct.pack(">ihhih", 10, 9999, 0, 1, -1),
        struct.pack(">ihhih", 10, METADATA, 99, 1, -1),
        struct.pack(">ihhih", 10, METADATA, 1, 1, 500),
        struct.pack(">ihhihi", 14, METADATA, 1, 1, -1, 2**31 - 1),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["large", "negative", "empty", "short", "key", "version", "client id", "array", "http"],
)
def test_what_is_no_request_closes_the_connection(server: LogServer, data: bytes):
    with Client(server) as client:
        client.send(data)
        assert client.is_closed()
    assert is_well(server)


def of_empty_topics(count: int) -> bytes:
    """Return a request ``Metadata`` whose topics take two bytes each."""
    body = struct.pack(">hhih", METADATA, 1, 1, -1) + struct.pack(">i", count) + b"\0\0" * count
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("size", range(10))
def test_a_request_without_a_header(size: int):
    with pytest.raises(InvalidRecordError, match=f"a request of {size} bytes has no header"):
        Request.parse(bytes(size), "/127.0.0.1")


@pytest.mark.parametrize("tags", [b"\0", b"\1\5\2ab", b"\2\5\0\6\1a"])
def test_tags_in_the_header_are_skipped(tags: bytes):
    header = struct.pack(">hhih", METADATA, 12, 7, 2) + b"ab" + tags
    values = {"topics": [{"name": "orders"}]}
    request = Request.parse(header + b"".join(encoded(apis()[METADATA].request, 12, values)), "/127.0.0.1")
    assert [one["name"] for one in request.values["topics"]] == ["orders"]


@pytest.mark.parametrize(("size", "client_id"), [(-1, None), (0, ""), (2, "ab"), (3, InvalidRecordError)])
def test_a_client_id_may_be_the_end_of_a_request(size: int, client_id: str | type[Exception] | None):
    """As that of ApiVersions before version 3, which has no fields."""
    frame = struct.pack(">hhih", API_VERSIONS, 0, 7, size) + b"ab"[: max(size, 0)]
    if isinstance(client_id, type):
        with pytest.raises(client_id, match="a client id of 3 bytes in a request of 12 bytes"):
            Request.parse(frame, "/127.0.0.1")
    else:
        request = Request.parse(frame, "/127.0.0.1")
        assert (request.client_id, request.correlation_id) == (client_id, 7)


@pytest.mark.parametrize(
    "body",
    [
        struct.pack(">hhihi", METADATA, 1, 1, -1, FEW + 1) + b"\0\0" * (FEW + 1),
        struct.pack(">hhih", METADATA, 9, 1, -1) + b"\0\1\0\0\0" + uvarint(FEW + 1) + b"\7\0" * FEW,
        struct.pack(">hhih", METADATA, 9, 1, -1)
        + b"\0"
        + uvarint(FEW // 2 + 2)
        + (b"\1" + NEGATIVE) * (FEW // 2 + 1)
        + b"\0\0\0"
        + uvarint(FEW // 2)
        + b"\7\0" * (FEW // 2),
        struct.pack(">hhih", METADATA, 9, 1, -1) + uvarint(10**6) + b"\7\0" * 10**6 + b"\1\0\0\0\0",
        struct.pack(">hhihiiii", FETCH, 4, 1, -1, -1, 0, 0, 0)
        + b"\0"
        + struct.pack(">i", 2)
        + 2 * (b"\0\0" + struct.pack(">i", FEW // 2) + bytes(16) * (FEW // 2)),
    ],
    ids=["elements", "tagged fields", "negative counts", "tagged fields of the header", "elements of several arrays"],
)
def test_small_elements_do_not_fill_the_memory(body: bytes, monkeypatch: pytest.MonkeyPatch):
    """Each of them takes hundreds of times its size; the check comes before the memory."""
    monkeypatch.setattr("kraftlog.messages.one_message.MOST_ELEMENTS", FEW)
    tracemalloc.start()
    with pytest.raises(InvalidRecordError, match=r"leads to more than 10000 |1000000 tagged fields, of at most 1000"):
        Request.parse(body, "")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 << 20


def test_requests_of_ten_thousands_of_topics_are_answered(server: LogServer):
    with Client(server) as client:
        client.correlation_id = 1
        client.send(of_empty_topics(20_000))
        assert len(client.answer(METADATA, 1)["topics"]) == 20_000
        client.send(of_empty_topics(MOST_ELEMENTS + 1))
        assert client.is_closed()
    assert is_well(server)


@pytest.mark.parametrize("seed", range(20))
def test_random_changes_of_requests(server: LogServer, seed: int):
    dice = random.Random(seed)
    for _ in range(10):
        with Client(server) as client:
            frame = bytearray(client.frame(FETCH, 12, fetch_of("orders", 0)))
            for _ in range(dice.randrange(1, 6)):
                frame[dice.randrange(4, len(frame))] = dice.randrange(256)
            client.send(frame)
            client.socket.shutdown(socket.SHUT_WR)
            client.socket.recv(1 << 16)  # an answer, or the end
    assert is_well(server)


def fetch_of(topic: str, offset: int, **others: int) -> dict[str, Any]:
    partitions = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}]
    values = {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": partitions}],
    }
    return values | others


@pytest.mark.parametrize(
    ("topic", "offset", "code"),
    [
        ("orders", 0, ErrorCode.NONE),
        ("orders", 131, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("orders", -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("nothing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_errors_of_a_fetch(server: LogServer, topic: str, offset: int, code: ErrorCode):
    with Client(server) as client:
        answer = client.ask(FETCH, 12, fetch_of(topic, offset))
        (partition,) = answer["responses"][0]["partitions"]
        assert partition["error_code"] == code
        assert bool(partition["records"]) == (code == ErrorCode.NONE)


def test_a_session_of_another_server_is_unknown(server: LogServer):
    with Client(server) as client:
        answer = client.ask(FETCH, 12, fetch_of("orders", 0, session_id=7, session_epoch=1))
        assert answer["error_code"] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_producer_is_refused(server: LogServer):
    with Client(server) as client:
        data = [{"name": "orders", "partition_data": [{"index": 0, "records": b""}]}]
        answer = client.ask(PRODUCE, 9, {"acks": -1, "timeout_ms": 100, "topic_data": data})
        (partition,) = answer["responses"][0]["partition_responses"]
        assert partition["error_code"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert partition["error_message"] == "this log is only read"


def test_slow_and_silent_clients_hold_nobody_back(server: LogServer):
    with Client(server) as silent, Client(server) as slow, Client(server) as waiting:
        silent.send(b"\0")
        slow.send(slow.frame(METADATA, 12, {"topics": None})[:20])
        waiting.send(waiting.frame(FETCH, 12, fetch_of("orders", 130, max_wait_ms=30_000)))
        assert is_well(server)


def test_requests_of_a_connection_are_answered_in_order(server: LogServer):
    with Client(server) as client:
        frames = [client.frame(METADATA, 12, {"topics": [{"name": f"t{number}"}]}) for number in range(50)]
        client.send(b"".join(frames))
        for number in range(50):
            client.correlation_id = number + 1
            assert client.answer(METADATA, 12)["topics"][0]["name"] == f"t{number}"


def test_more_connections_than_allowed():
    with LogServer(LOG, max_connections=2) as server:
        with Client(server) as one, Client(server) as other:
            assert one.ask(METADATA, 1, {"topics": None})
            assert other.ask(METADATA, 1, {"topics": None})
            with Client(server) as third:
                assert third.is_closed()
            assert one.ask(METADATA, 1, {"topics": None})
        assert is_well(server)


def test_an_idle_connection_is_closed():
    with LogServer(LOG, max_idle_ms=100) as server, Client(server) as client:
        assert client.is_closed()


def test_a_client_that_sends_a_byte_now_and_then_is_closed():
    """Only a complete request counts."""
    with LogServer(LOG, max_idle_ms=200) as server, Client(server) as client:
        frame = client.frame(METADATA, 12, {"topics": None})
        client.socket.settimeout(0.02)
        closed = False
        for at in range(len(frame) - 1):
            with suppress(ConnectionError):
                client.send(frame[at : at + 1])
            with suppress(TimeoutError):
                closed = closed or client.is_closed()
        assert closed
        assert is_well(server)


def connections_of(server: LogServer) -> Collection[Any]:
    return server._thread._server._connections  # type: ignore[union-attr]


def until_none(connections: Collection[Any]) -> None:
    deadline = time.monotonic() + LIMIT
    while connections:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_client_that_is_gone_in_a_long_poll_leaves_nothing(is_reset: bool):
    with LogServer(LOG, max_connections=2) as server:
        clients = [Client(server), Client(server)]
        for client in clients:
            assert client.ask(METADATA, 12, {"topics": None})
            client.send(client.frame(FETCH, 12, fetch_of("orders", 130, max_wait_ms=2**31 - 1)))
            if is_reset:
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.socket.close()
        until_none(connections_of(server))
        assert is_well(server)


def test_a_client_that_vanishes_in_a_long_poll_is_answered_when_it_has_been_idle():
    """Nothing tells the server, which learns of it when nobody takes the answer."""
    with LogServer(LOG, max_idle_ms=200) as server, Client(server) as client:
        answer = client.ask(FETCH, 12, fetch_of("orders", 130, max_wait_ms=2**31 - 1))
        assert answer["responses"][0]["partitions"][0]["records"] == b""


def test_a_client_that_sends_no_more_gets_its_answers(server: LogServer):
    """It may have shut down one direction only; what waits for more records is answered with those that are there."""
    with Client(server) as client:
        fetch = fetch_of("orders", 130, max_wait_ms=2**31 - 1)
        frames = [client.frame(FETCH, 12, fetch) for _ in range(2)]
        client.send(b"".join(frames) + client.frame(METADATA, 12, {"topics": None}))
        client.socket.shutdown(socket.SHUT_WR)
        for number in (1, 2):
            client.correlation_id = number
            (partition,) = client.answer(FETCH, 12)["responses"][0]["partitions"]
            assert (partition["error_code"], partition["records"]) == (ErrorCode.NONE, b"")
        client.correlation_id = 3
        assert len(client.answer(METADATA, 12)["topics"]) == 3
        assert client.is_closed()


def test_hundreds_of_connections_at_once_and_more_than_allowed():
    with LogServer(LOG, max_connections=300) as server, ExitStack() as opened:
        clients = [opened.enter_context(Client(server)) for _ in range(400)]
        frames = [client.frame(METADATA, 12, {"topics": None}) for client in clients]
        for client, frame in zip(clients, frames, strict=True):
            with suppress(ConnectionError):
                client.send(frame)
        served = 0
        for client in clients:
            with suppress(ConnectionError):
                served += len(client.answer(METADATA, 12)["topics"]) == 3
        assert served == 300
        assert not [client for client in clients[300:] if not client.is_closed()]
        assert clients[0].ask(METADATA, 12, {"topics": None})


def test_a_closed_server_closes_its_connections():
    server = LogServer(LOG)
    with Client(server) as client:
        assert client.ask(METADATA, 1, {"topics": None})
        client.send(client.frame(FETCH, 12, fetch_of("orders", 130, max_wait_ms=30_000)))
        server.close()
        assert client.is_closed()
    server.close()  # a second time does nothing
    with pytest.raises(ConnectionRefusedError):
        Client(server)


def test_addresses():
    with LogServer(LOG, host="::1") as server:
        assert server.bootstrap_servers.startswith("[::1]:")
    with LogServer(LOG) as server, pytest.raises(OSError, match="in use"):
        LogServer(LOG, port=int(server.bootstrap_servers.split(":")[1]))
    with pytest.raises(ValueError, match="advertised_host"):
        LogServer(LOG, host="0.0.0.0")
    with LogServer(LOG, host="0.0.0.0", advertised_host="localhost") as server:
        assert server.bootstrap_servers.startswith("localhost:")


@pytest.mark.parametrize(
    ("has_tls", "has_users", "has_authorities", "lack"),
    [
        (False, False, False, "neither encrypted nor authenticated"),
        (False, True, False, "not encrypted"),
        (True, False, False, "not authenticated"),
        (True, True, False, None),
        (True, False, True, None),
    ],
)
def test_a_warning_of_what_other_hosts_can_do(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    has_tls: bool,
    has_users: bool,
    has_authorities: bool,
    lack: str | None,
):
    files = certificates(tmp_path / "files")
    options: ServerArguments = {"users": Users({"alice": "secret"}) if has_users else None}
    if has_tls:
        options["tls"] = Tls(files.server, files.server_key, files.authority if has_authorities else None)
    for host in ("127.0.0.1", "::1", "localhost"):
        with LogServer(LOG, host=host, **options):
            assert caplog.messages == []
    for host in ("0.0.0.0", "::"):
        with LogServer(LOG, host=host, advertised_host="localhost", **options):
            pass
        expected = [] if lack is None else [f"{host}: other hosts can connect, and connections are {lack}"]
        assert caplog.messages == expected
        caplog.clear()


def test_a_log_that_is_given_open_and_topics():
    with LogServer(kraftlog.open(LOG, topics=["orders"])) as server:
        assert server.topics == {"orders": 3}
