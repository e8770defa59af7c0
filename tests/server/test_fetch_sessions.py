"""Fetch sessions (KIP-227), by hand: what a session remembers, what it leaves out, and when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from broker_client import FETCH, BrokerClient, batch, values_of

from kraftlog.protocol.api import apis
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.broker import Broker
from kraftlog.server.fetch_sessions import EVICTION_S, FetchSessions

NOT_FOUND, BAD_EPOCH = ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH
BY_NAME, BY_ID = 12, 13
LARGEST = 2**31 - 1


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "log") as running:
        running.store.create_topic("orders", 3)
        running.store.create_topic("other", 1)
        yield running


class Reader(BrokerClient):
    """A client with a session."""

    def __init__(self, broker: Broker, version: int = BY_NAME) -> None:
        super().__init__(broker)
        self.version = version
        self.ids = {name: one.topic_id for name, one in broker.store.topics.items()}
        self.session_id = self.epoch = 0

    def topic(self, name: str) -> dict[str, Any]:
        if self.version < BY_ID:
            return {"topic": name}
        return {"topic_id": self.ids[name]}

    def read(self, wanted: Mapping[tuple[str, int], int], *forgotten: tuple[str, int], **others: Any) -> dict[str, Any]:
        """Fetch partitions from offsets, besides those that the session has."""
        topics = [
            self.topic(name)
            | {"partitions": [{"partition": number, "fetch_offset": offset, "partition_max_bytes": 1 << 20}]}
            for (name, number), offset in wanted.items()
        ]
        left_out = [self.topic(name) | {"partitions": [number]} for name, number in forgotten]
        values = {"max_wait_ms": 0, "min_bytes": 0, "session_id": self.session_id, "session_epoch": self.epoch}
        self.send(
            self.frame(FETCH, self.version, values | {"topics": topics, "forgotten_topics_data": left_out} | others)
        )
        return self.read_answer()

    def read_answer(self) -> dict[str, Any]:
        answer = self.answer(FETCH, self.version)
        if not answer["error_code"]:
            self.session_id = answer["session_id"]
            self.epoch += 1
        return answer

    def told(self, answer: Mapping[str, Any]) -> list[tuple[str, int]]:
        names = {topic_id: name for name, topic_id in self.ids.items()}
        return [
            (topic["topic"] or names[topic["topic_id"]], one["partition_index"])
            for topic in answer["responses"]
            for one in topic["partitions"]
        ]


@pytest.mark.parametrize("version", [7, BY_NAME, BY_ID, 18])
def test_only_what_is_new_is_told(broker: Broker, version: int):
    everything = {("orders", 0): 0, ("orders", 1): 0, ("other", 0): 0}
    with Reader(broker, version) as reader, BrokerClient(broker) as writer:
        first = reader.read(everything)
        assert (reader.told(first), first["session_id"] > 0) == ([*everything], True)
        again = reader.read({})
        assert (again["error_code"], reader.told(again)) == (0, [])
        assert again["session_id"] == first["session_id"]
        writer.produce(batch("one"), "orders", 1)
        news = reader.read({})
        assert reader.told(news) == [("orders", 1)]
        assert values_of(news["responses"][0]["partitions"][0]["records"]) == ["one"]
        assert reader.told(reader.read({})) == [("orders", 1)]  # its position is still the old one
        assert reader.told(reader.read({("orders", 1): 1})) == []
        assert reader.told(reader.read({("orders", 2): 0})) == [("orders", 2)]
        assert reader.told(reader.read({})) == []
        writer.produce(batch("two"), "other")
        writer.produce(batch("three"), "orders", 1)
        assert reader.told(reader.read({}, ("other", 0))) == [("orders", 1)]
        assert reader.told(reader.read({("other", 0): 0, ("orders", 1): 2})) == [("other", 0)]


def test_partitions_with_records_are_read_last_the_next_time(broker: Broker):
    """So that a limit of the response does not always meet the same partitions."""
    wanted = {("orders", number): 0 for number in range(3)}
    with Reader(broker) as reader, BrokerClient(broker) as writer:
        reader.read(wanted)
        for number in range(3):
            writer.produce(batch("x" * 100), "orders", number)
        first = [
            [
                one["partition_index"]
                for one in reader.read({}, max_bytes=1)["responses"][0]["partitions"]
                if one["records"]
            ]
            for _ in range(6)
        ]
    assert first == [[0], [1], [2], [0], [1], [2]]


def test_marks_of_the_log_are_news(broker: Broker):
    with Reader(broker) as reader, BrokerClient(broker) as writer:
        writer.produce(batch("one", "two"))
        reader.read({("orders", 0): 2, ("orders", 1): 0})
        assert reader.told(reader.read({})) == []
        broker.store.delete_records("orders", 0, 1)
        assert reader.told(reader.read({})) == [("orders", 0)]  # another start of the log
        assert reader.told(reader.read({})) == []
        writer.produce(batch("one"), "orders", 1)
        answer = reader.read({}, max_bytes=0)  # no records fit, and the end of the log is another
        assert [(one["records"], one["high_watermark"]) for one in answer["responses"][0]["partitions"]] == [(b"", 1)]


def test_errors_are_told_each_time_and_their_end_once(broker: Broker):
    with Reader(broker) as reader:
        reader.read({("orders", 0): 7, ("orders", 9): 0, ("orders", 1): 0})
        for _ in range(2):
            answer = reader.read({})
            assert [(one["partition_index"], one["error_code"]) for one in answer["responses"][0]["partitions"]] == [
                (0, ErrorCode.OFFSET_OUT_OF_RANGE),
                (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ]
        broker.store.create_partitions("orders", 10)
        assert reader.told(reader.read({("orders", 0): 0})) == [("orders", 0), ("orders", 9)]
        assert reader.told(reader.read({})) == []


def test_a_topic_that_is_deleted(broker: Broker):
    with Reader(broker, BY_ID) as reader:
        reader.read({("other", 0): 0, ("orders", 0): 0})
        broker.store.delete_topic("other")
        broker.store.create_topic("other", 1)  # another one of this name
        for _ in range(2):
            answer = reader.read({})
            assert reader.told(answer) == [("other", 0)]
            assert answer["responses"][0]["partitions"][0]["error_code"] == ErrorCode.UNKNOWN_TOPIC_ID
        assert reader.told(reader.read({}, ("other", 0))) == []


def test_epochs_and_ids_that_are_not_expected(broker: Broker):
    wanted = {("orders", 0): 0}
    with Reader(broker) as reader:
        reader.read(wanted)
        for epoch in (reader.epoch + 1, reader.epoch + 2, LARGEST, -2, -(2**31)):
            assert reader.read({}, session_epoch=epoch)["error_code"] == BAD_EPOCH
        for session_id in (0, -1, reader.session_id ^ 1):
            refused = reader.read({}, session_id=session_id)
            assert (refused["error_code"], refused["session_id"], refused["responses"]) == (NOT_FOUND, 0, [])
        assert reader.read({})["error_code"] == 0  # the session is as before
        assert reader.read({}, session_epoch=reader.epoch - 1)["error_code"] == BAD_EPOCH
        # a client continues with a new session, and ends the old one
        old, reader.epoch = reader.session_id, 0
        assert reader.told(reader.read(wanted)) == [*wanted]
        assert reader.session_id != old
        assert reader.read({}, session_id=old)["error_code"] == NOT_FOUND
        assert reader.read({})["error_code"] == 0
        reader.epoch = -1  # the client says goodbye
        old = reader.session_id
        assert reader.read(wanted)["session_id"] == 0
        assert reader.read({}, session_id=old, session_epoch=3)["error_code"] == NOT_FOUND


def test_a_session_continues_on_another_connection(broker: Broker):
    with Reader(broker) as reader, Reader(broker) as other:
        reader.read({("orders", 0): 0})
        other.session_id, other.epoch = reader.session_id, reader.epoch
        assert (other.read({})["error_code"], other.read({})["error_code"]) == (0, 0)
        assert reader.read({})["error_code"] == BAD_EPOCH


def test_a_session_that_is_used_while_it_waits(broker: Broker):
    """The later request counts; the client of the first one is told that it has lost the session."""
    with Reader(broker) as reader, Reader(broker) as other, BrokerClient(broker) as writer:
        reader.read({("orders", 0): 0})
        values = {"max_wait_ms": 600_000, "min_bytes": 1, "session_id": reader.session_id, "session_epoch": 1}
        reader.send(reader.frame(FETCH, BY_NAME, values))
        other.session_id, other.epoch = reader.session_id, 2
        while other.read({})["error_code"]:  # until the first one waits
            pass
        writer.produce(batch("one"))
        assert reader.read_answer()["error_code"] == BAD_EPOCH
        assert other.told(other.read({})) == [("orders", 0)]


def test_sessions_of_names_and_of_ids(broker: Broker):
    with Reader(broker, BY_NAME) as reader:
        reader.read({("orders", 0): 0})
        reader.version = BY_ID
        assert reader.read({})["error_code"] == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        reader.version = 7
        assert reader.read({})["error_code"] == 0


def test_a_session_without_partitions_ends(broker: Broker):
    with Reader(broker) as reader:
        session_id = reader.read({("orders", 0): 0})["session_id"]
        ended = reader.read({}, ("orders", 0), ("orders", 1))
        assert (ended["error_code"], ended["session_id"]) == (0, 0)
        assert reader.read({}, session_id=session_id)["error_code"] == NOT_FOUND


# the cache, without a server


class Cache:
    """Sessions whose clock is set by hand."""

    def __init__(self, **limits: int) -> None:
        self.now = 0.0
        self.sessions = FetchSessions(**limits, clock=lambda: self.now)

    def ask(self, session_id: int, epoch: int, partitions: Iterable[int]) -> dict[str, Any]:
        asked = [
            {
                "partition": one,
                "fetch_offset": 0,
                "partition_max_bytes": 1,
                "current_leader_epoch": -1,
                "last_fetched_epoch": -1,
            }
            for one in partitions
        ]
        topics = [{"topic": "orders", "topic_id": bytes(16), "partitions": asked}]
        values = {"session_id": session_id, "session_epoch": epoch, "topics": topics, "forgotten_topics_data": []}
        request = Request(apis()[FETCH], BY_NAME, 1, "c", "127.0.0.1", values)
        context = self.sessions.begin(request)
        if context.error_code:
            return {"error_code": context.error_code}
        fields = {"error_code": 0, "high_watermark": 0, "records": b""}
        answers = [(one, dict(fields)) for one in context.fetches]
        return {"error_code": 0} | self.sessions.response(request, context, answers)

    def begin(self, partitions: int) -> int:
        """Return the id of a new session, or 0."""
        session_id = self.ask(0, 0, range(partitions))["session_id"]
        assert isinstance(session_id, int)
        return session_id

    def is_there(self, session_id: int) -> bool:
        return self.ask(session_id, LARGEST, range(0))["error_code"] == BAD_EPOCH


def test_the_number_of_sessions_is_limited():
    cache = Cache(most_sessions=2)
    one, two = cache.begin(1), cache.begin(5)
    assert cache.begin(9) == 0  # nothing is old enough
    cache.now += EVICTION_S
    assert cache.begin(9) == 0
    assert cache.ask(two, 1, range(0))["session_id"] == two
    cache.now += 1
    three = cache.begin(1)  # the first one was idle for too long
    assert three
    assert [cache.is_there(each) for each in (one, two, three)] == [False, True, True]


def test_larger_sessions_replace_smaller_old_ones():
    cache = Cache(most_sessions=3)
    sizes = {cache.begin(size): size for size in (4, 2, 3)}
    for _ in range(3):
        cache.now += EVICTION_S / 2
        for session_id in sizes:
            assert cache.ask(session_id, 1 + int(cache.now / EVICTION_S * 2 - 1), range(0))["error_code"] == 0
    assert cache.begin(2) == 0
    assert cache.begin(3) != 0
    assert sorted(size for session_id, size in sizes.items() if cache.is_there(session_id)) == [3, 4]
    assert len(cache.sessions) == 3


def test_the_number_of_partitions_is_limited():
    cache = Cache(most_partitions=10)
    assert cache.begin(11) == 0
    one = cache.begin(6)
    assert cache.begin(5) == 0
    assert cache.begin(4) != 0
    grown = cache.ask(one, 1, range(100, 101))  # the session that grows ends; its client begins another one
    assert (grown["session_id"], len(grown["responses"][0]["partitions"])) == (0, 7)
    assert not cache.is_there(one)
    assert cache.sessions.partitions_count == 4


def test_partitions_that_a_request_names_twice_count_once():
    cache = Cache()
    asked = [*range(3), *range(3)]
    session_id = cache.ask(0, 0, asked)["session_id"]
    assert cache.sessions.partitions_count == 3
    assert cache.ask(session_id, 1, asked)["error_code"] == 0


def test_epochs_begin_again_after_the_largest():
    cache = Cache()
    session_id = cache.begin(1)
    (session,) = cache.sessions._sessions.values()
    session.epoch = LARGEST
    assert cache.ask(session_id, LARGEST, range(0))["error_code"] == 0
    assert cache.ask(session_id, 1, range(0))["error_code"] == 0
