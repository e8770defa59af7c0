"""What a server does with connections that come while it is closed, and with errors that are its own."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from test_connections import METADATA, Client

from kraftlog.errors import KraftlogError, RecordTooLargeError
from kraftlog.log_store.errors import (
    ForkedStoreError,
    InvalidTransactionError,
    StorageError,
    UnknownTopicOrPartitionError,
)
from kraftlog.log_store.partition import Partition
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.broker import Broker
from kraftlog.server.options import LOOPBACK, ServerOptions
from kraftlog.server.outcome import Outcome
from kraftlog.server.server import Server
from kraftlog.server.unread_bytes import UnreadBytes
from kraftlog.topics import TopicPartition

TURNS = 12  # of the event loop, within which a connection is accepted and its request is received


@pytest.mark.parametrize("turns", range(TURNS))
def test_a_connection_that_was_accepted_is_not_answered_after_the_end(turns: int):
    """A store that is closed would answer it with errors, which its client takes for the broker's last word."""
    handled: list[int] = []

    async def handler(request: Request) -> Mapping[str, Any]:
        handled.append(request.correlation_id)
        return {"brokers": [], "topics": []}

    async def run() -> None:
        with socket.create_server((LOOPBACK, 0)) as listening:
            address = listening.getsockname()
            server = Server({METADATA: handler}, ServerOptions(), listening, UnreadBytes(0))
            await server.start()
            with socket.create_connection(address) as connected:
                client = Client.__new__(Client)
                client.correlation_id = 0
                connected.sendall(client.frame(METADATA, 12, {"topics": []}))
                for _ in range(turns):
                    await asyncio.sleep(0)
                await server.close()
                handled.clear()
                connected.setblocking(False)
                for _ in range(20):
                    await asyncio.sleep(0.001)
                assert handled == []

    asyncio.run(run())


def test_a_kill_while_a_thread_opens_a_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    abandon, other = Partition.abandon, TopicPartition("other", 0)
    with Broker(tmp_path) as broker:
        store = broker.store
        store.create_topic("one")
        store.parts.partition_of(TopicPartition("one", 0))
        with monkeypatch.context() as opening:
            opening.setattr(Partition, "abandon", lambda one: (store._partitions.setdefault(other, one), abandon(one)))
            broker.kill()
        broker.restart()
        assert [*broker.store.topics] == ["one"]


@pytest.mark.parametrize("error", [ForkedStoreError("of a child"), KraftlogError("unexpected"), OSError("of a disk")])
def test_an_error_of_the_server_is_a_line_in_its_log(error: Exception, caplog: pytest.LogCaptureFixture):
    """Its client gets a code that says nothing, such as UNKNOWN_SERVER_ERROR."""
    assert _outcome_of(error).error is error
    (line,) = caplog.messages
    assert line == f"a part of a request has failed: {type(error).__name__}: {error}"
    assert caplog.records[0].levelno == logging.ERROR


def test_an_error_of_a_client_is_its_own(caplog: pytest.LogCaptureFixture):
    assert _outcome_of(InvalidTransactionError("nothing to end")).error is not None
    assert caplog.records == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageError("of a disk"), ErrorCode.NOT_COORDINATOR),
        (OSError("of a disk"), ErrorCode.NOT_COORDINATOR),
        (UnknownTopicOrPartitionError("no topic"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (RecordTooLargeError("large"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (InvalidTransactionError("nothing to end"), ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_an_error_of_a_log_is_another_one_to_clients_of_a_coordinator(error: Exception, code: ErrorCode):
    assert _outcome_of(error).coordinator_code == code


def _outcome_of(error: Exception) -> Outcome[None]:
    def fail() -> None:
        raise error

    return Outcome.of(fail)
