"""Fetch sessions (KIP-227): a client names its partitions once, and is told afterwards only what has changed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request

MOST_SESSIONS = 1000  # max.incremental.fetch.session.cache.slots
MOST_PARTITIONS = 200_000
"""Of all sessions together, which bounds their memory; Kafka bounds only the number of sessions."""
EVICTION_S = 120.0  # min.incremental.fetch.session.eviction.ms
_NO_SESSION, _FINAL_EPOCH, _FIRST_EPOCH = 0, -1, 0
_LARGEST = 2**31 - 1
_BY_TOPIC_ID = 13  # first version of Fetch that names topics by their ids
_UNKNOWN = -1


class FetchedTopic(NamedTuple):
    """A topic as a request names it: by name or by id."""

    name: str
    topic_id: bytes


@dataclass(slots=True)
class PartitionFetch:
    """What a client asks of a partition.

    Attributes
    ----------
    topic : FetchedTopic
    partition : int
    fetch_offset, max_bytes, current_leader_epoch, last_fetched_epoch : int
        As in the last request that named the partition.
    """

    topic: FetchedTopic
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int


Key: TypeAlias = tuple[FetchedTopic, int]
Answer: TypeAlias = tuple[PartitionFetch, dict[str, Any]]
"""With the fields of the response for the partition."""


@dataclass(slots=True)
class _Followed:
    """A partition of a session, and what its client was told last."""

    fetch: PartitionFetch
    high_watermark: int = _UNKNOWN
    log_start_offset: int = _UNKNOWN

    def is_news(self, fields: Mapping[str, Any]) -> bool:
        """Whether a response must have these fields, as in ``CachedPartition.maybeUpdateResponseData``."""
        high_watermark, log_start_offset = fields["high_watermark"], fields.get("log_start_offset", _UNKNOWN)
        is_news = (
            bool(fields["error_code"])
            or "diverging_epoch" in fields
            or bool(fields["records"])
            or (self.high_watermark, self.log_start_offset) != (high_watermark, log_start_offset)
        )
        # with an error both are unknown, so that a response has the partition when the error is over
        self.high_watermark, self.log_start_offset = high_watermark, log_start_offset
        return is_news


@dataclass
class _Session:
    """A session.

    Attributes
    ----------
    epoch : int
        Of the next request.
    partitions : dict
        In the order in which they are read: one that has returned records is the last.
    """

    session_id: int
    by_topic_id: bool
    begun_at: float
    used_at: float
    epoch: int = _FIRST_EPOCH + 1
    partitions: dict[Key, _Followed] = field(default_factory=dict)

    def update(self, request: Request) -> None:
        for one in _fetches(request):
            key = one.topic, one.partition
            followed = self.partitions.get(key)
            if followed is None:
                self.partitions[key] = _Followed(one)
            else:
                followed.fetch = one
        for topic in request.values["forgotten_topics_data"]:
            for number in topic["partitions"]:
                self.partitions.pop((FetchedTopic(topic["topic"], topic["topic_id"]), number), None)


@dataclass(frozen=True)
class FetchContext:
    """A request, as its session completes it.

    Attributes
    ----------
    fetches : list of PartitionFetch
        In the order in which they are read.
    error_code : int
        Of the session.
    """

    fetches: list[PartitionFetch]
    error_code: int = ErrorCode.NONE
    _session: _Session | None = None
    _epoch: int = _FINAL_EPOCH
    _begins: bool = False


class FetchSessions:
    """The sessions of a server, for one thread.

    A session is neither of a connection nor of a client id: whoever knows its id and the next epoch continues it, as in
    Kafka. If there is no room for another session, the least recently used one ends if it was idle for ``EVICTION_S``,
    or else the one with the fewest partitions among those that are so old, if the new one has more. Otherwise the
    client gets no session, and names all partitions each time.

    Parameters
    ----------
    most_sessions, most_partitions : int
    clock : callable
        Returns seconds.
    """

    def __init__(
        self,
        most_sessions: int = MOST_SESSIONS,
        most_partitions: int = MOST_PARTITIONS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most_sessions = most_sessions
        self._most_partitions = most_partitions
        self._clock = clock
        self._sessions: dict[int, _Session] = {}  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions_count(self) -> int:
        """Number of partitions of all sessions."""
        return sum(len(one.partitions) for one in self._sessions.values())

    def begin(self, request: Request) -> FetchContext:
        """Return what a request asks for, with the partitions that its session has."""
        values = request.values
        epoch = values["session_epoch"]
        if epoch in (_FINAL_EPOCH, _FIRST_EPOCH):
            self._sessions.pop(values["session_id"], None)
            return FetchContext(list(_fetches(request)), _begins=epoch == _FIRST_EPOCH)
        session = self._sessions.get(values["session_id"])
        if session is None:
            return FetchContext([], ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext([], ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_topic_id != _is_by_topic_id(request):
            return FetchContext([], ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request)
        fetches = [one.fetch for one in session.partitions.values()]
        del self._sessions[session.session_id]
        if not fetches or self.partitions_count + len(fetches) > self._most_partitions:
            return FetchContext(fetches)  # the answer says that the session has ended
        self._sessions[session.session_id] = session
        session.used_at = self._clock()
        session.epoch = _after(epoch)
        return FetchContext(fetches, _session=session, _epoch=session.epoch)

    def response(self, request: Request, context: FetchContext, answers: Iterable[Answer]) -> dict[str, Any]:
        """Return the fields of a response; a session leaves out partitions about which there is nothing new."""
        session = context._session
        if session is None:
            told = list(answers)
            session = self._begun(request, told) if context._begins else None
        elif session.epoch != context._epoch:  # another request has used it meanwhile
            return {"error_code": ErrorCode.INVALID_FETCH_SESSION_EPOCH, "session_id": session.session_id}
        else:
            told = list(_news(session, answers))
        return {"session_id": _NO_SESSION if session is None else session.session_id, "responses": _by_topic(told)}

    def _begun(self, request: Request, answers: list[Answer]) -> _Session | None:
        """Return a new session, if there is room for it, that has been told all of its first response."""
        followed = {(fetch.topic, fetch.partition): _Followed(fetch) for fetch, _ in answers}
        now = self._clock()
        if not self._make_room(len(followed), now):
            return None
        session_id = random.randint(1, _LARGEST)
        while session_id in self._sessions:
            session_id = random.randint(1, _LARGEST)
        for fetch, fields in answers:
            followed[fetch.topic, fetch.partition].is_news(fields)
        session = _Session(session_id, _is_by_topic_id(request), now, now, partitions=followed)
        self._sessions[session_id] = session
        return session

    def _make_room(self, partitions_count: int, now: float) -> bool:
        if partitions_count > self._most_partitions:
            return False
        while (
            len(self._sessions) >= self._most_sessions
            or self.partitions_count + partitions_count > self._most_partitions
        ):
            oldest = next(iter(self._sessions.values()))
            if now - oldest.used_at <= EVICTION_S:
                old = [one for one in self._sessions.values() if now - one.begun_at > EVICTION_S]
                oldest = min(old, key=lambda one: len(one.partitions), default=oldest)
                if not old or len(oldest.partitions) >= partitions_count:
                    return False
            del self._sessions[oldest.session_id]
        return True


def _fetches(request: Request) -> Iterator[PartitionFetch]:
    for topic in request.values["topics"]:
        named = FetchedTopic(topic["topic"], topic["topic_id"])
        for one in topic["partitions"]:
            yield PartitionFetch(
                named,
                one["partition"],
                one["fetch_offset"],
                one["partition_max_bytes"],
                one["current_leader_epoch"],
                one["last_fetched_epoch"],
            )


def _news(session: _Session, answers: Iterable[Answer]) -> Iterator[Answer]:
    for fetch, fields in answers:
        key = fetch.topic, fetch.partition
        followed = session.partitions[key]
        if followed.is_news(fields):
            if fields["records"]:  # the others are read first the next time
                session.partitions[key] = session.partitions.pop(key)
            yield fetch, fields


def _by_topic(answers: Iterable[Answer]) -> list[dict[str, Any]]:
    return [
        {"topic": topic.name, "topic_id": topic.topic_id, "partitions": [fields for _, fields in some]}
        for topic, some in groupby(answers, lambda answer: answer[0].topic)
    ]


def _is_by_topic_id(request: Request) -> bool:
    return request.version >= _BY_TOPIC_ID


def _after(epoch: int) -> int:
    return 1 if epoch == _LARGEST else epoch + 1
