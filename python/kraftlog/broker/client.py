"""The client of a broker: a transactional producer, and the offsets that its transactions commit with their records."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kraftlog.broker.errors import NotDeliveredError, ReplayError
from kraftlog.stream import optional_package

TRANSACTION_TIMEOUT_MS = 300_000
BATCH_BYTES = 1_000_000
_OWN = frozenset({"bootstrap.servers", "transactional.id", "enable.idempotence", "group.id", "isolation.level", "acks"})
_PRODUCER = {
    "linger.ms": 20,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 128 << 10,
    "message.max.bytes": 1_000_000_000,  # the client's maximum; the broker sets the actual limit
    "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
    "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
}
_PASSING = {"LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "UNKNOWN_TOPIC_OR_PART"}
_PAUSE = 0.05  # seconds
_CLOSING_SECONDS = 5.0
_AT_ONCE = 1.0  # seconds between two checks for delivery

Place = tuple[str, int]

_FAILED = "TXNERR"  # the client's log line for a transaction that can only be aborted


@dataclass(frozen=True)
class NewTopic:
    """A topic to create.

    Attributes
    ----------
    name : str
    partitions_count : int
    replication_factor : int
        -1 for the cluster's default.
    configs : mapping of str to str
        Those that differ from the cluster's defaults.
    """

    name: str
    partitions_count: int
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BrokerOfCluster:
    """A broker of the cluster, and where clients connect to it."""

    node_id: int
    host: str
    port: int


class _Log(logging.Handler):
    """Keeps the client's log line of a failed transaction; until the abort nothing else reports it."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Check a line of the client's log."""
        line = record.getMessage()
        if line.startswith(_FAILED):
            self.failure = line.partition(": ")[2] or line


class Client:
    """A connection to a cluster.

    Parameters
    ----------
    to : str
        HOST:PORT; several are comma-separated.
    name : str
        The transactional id, and the group whose offsets are the progress of the replay.
    settings : mapping of str to str
        Properties of librdkafka, such as ``security.protocol``.
    timeout : float
        Seconds to wait for an answer of the broker.

    Raises
    ------
    ImportError
        When confluent-kafka is not installed.
    ValueError
        For a property that is unknown to librdkafka, or that the replay sets itself.
    """

    def __init__(self, to: str, name: str, settings: Mapping[str, str], timeout: float) -> None:
        kafka = optional_package("confluent_kafka", "replaying", "'kraftlog[replay]'")
        optional_package("confluent_kafka.admin", "replaying", "'kraftlog[replay]'")
        own = sorted(_OWN & settings.keys())
        if own:
            raise ValueError(f"client setting {own[0]} cannot be set: the replay sets it itself")
        self.to, self.timeout = to, timeout
        self._kafka, self._name = kafka, name
        self._log = _Log()
        logger = logging.Logger("kraftlog.broker")
        logger.addHandler(self._log)
        self._settings = {"bootstrap.servers": to, "logger": logger, "error_cb": self._note, **settings}
        self._said = ""
        self._producer: Any = None
        self._is_open = False  # milliseconds of a transaction
        self._group: Any = None
        try:
            self._admin = kafka.admin.AdminClient(self._settings)
        except kafka.KafkaException as error:
            raise ValueError(f"client settings: {error.args[0].str()}") from None

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Turn errors of the client into a ReplayError that names the request."""
        try:
            yield
        except self._kafka.KafkaException as error:
            raise self.refusal(what, error.args[0]) from None

    def refusal(self, what: str, error: Any) -> ReplayError:
        """Return an error of the client as a ReplayError."""
        if error.code() == self._kafka.KafkaError._FENCED or error.code() == self._kafka.KafkaError.PRODUCER_FENCED:
            return ReplayError(f"{self.to}: {what}: another replay with the same mapping has taken over")
        said = f" ({self._said})" if self._said and self._said not in error.str() else ""
        kind = ReplayError if error.fatal() or not error.txn_requires_abort() else NotDeliveredError
        return kind(f"{self.to}: {what}: {error.str()}{said}")

    def _note(self, error: Any) -> None:
        self._said = error.str()

    def topics(self) -> dict[str, int]:
        """Return the partition count of each topic."""
        return {name: len(topic.partitions) for name, topic in self._topics().items()}

    def replicas(self) -> dict[Place, tuple[int, ...]]:
        """Return the node ids of the replicas of each partition, the preferred leader first."""
        return {
            (name, number): tuple(partition.replicas)
            for name, topic in self._topics().items()
            for number, partition in topic.partitions.items()
        }

    def _topics(self) -> dict[str, Any]:
        with self._asking("reading the list of topics"):
            found = self._admin.list_topics(timeout=self.timeout).topics
        return {name: topic for name, topic in found.items() if topic.error is None}

    def cluster_id(self) -> str:
        """Return the id of the cluster."""
        with self._asking("reading the id of the cluster"):
            return str(self._admin.list_topics(timeout=self.timeout).cluster_id)

    def brokers(self) -> list[BrokerOfCluster]:
        """Return the brokers of the cluster, by node id."""
        with self._asking("reading the list of brokers"):
            found = self._admin.list_topics(timeout=self.timeout).brokers
        return [BrokerOfCluster(one.id, one.host, one.port) for _, one in sorted(found.items())]

    def refused_topics(self, topics: Sequence[NewTopic]) -> dict[str, str]:
        """Return why the cluster would not create topics, by name; nothing is created."""
        refused = {}
        for name, done in self._create(topics, validate_only=True).items():
            try:
                done.result()
            except self._kafka.KafkaException as error:
                refused[name] = error.args[0].str()
        return refused

    def create_topics(self, topics: Sequence[NewTopic]) -> None:
        """Create topics, and wait until they are in the list of topics."""
        for name, done in self._create(topics, validate_only=False).items():
            with self._asking(f"creating the topic {name}"):
                done.result()
        deadline = time.monotonic() + self.timeout
        while not {one.name for one in topics} <= self.topics().keys():
            if time.monotonic() > deadline:
                raise ReplayError(f"{self.to}: the new topics do not exist after {self.timeout:g} seconds")
            time.sleep(0.1)

    def _create(self, topics: Sequence[NewTopic], *, validate_only: bool) -> dict[str, Any]:
        new = [
            self._kafka.admin.NewTopic(one.name, one.partitions_count, one.replication_factor, config=dict(one.configs))
            for one in topics
        ]
        found: dict[str, Any] = self._admin.create_topics(
            new, request_timeout=self.timeout, validate_only=validate_only
        )
        return found

    def busy_groups(self) -> dict[str, str]:
        """Return groups with members, whose offsets nobody else can set, and their states."""
        at_rest = {"EMPTY", "DEAD", "UNKNOWN"}
        with self._asking("reading the list of groups"):
            found = self._admin.list_consumer_groups(request_timeout=self.timeout).result()
        if found.errors:
            raise self.refusal("reading the list of groups", found.errors[0].args[0])
        return {one.group_id: one.state.name for one in found.valid if one.state.name not in at_rest}

    def group_offsets(self, group: str, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offsets that a group has committed, for those partitions where it has."""
        asked = [self._kafka.TopicPartition(*place) for place in places]
        what = f"reading the offsets of the group {group}"
        with self._asking(what):
            request = [self._kafka.ConsumerGroupTopicPartitions(group, asked)]
            (answer,) = self._admin.list_consumer_group_offsets(request, request_timeout=self.timeout).values()
            found = answer.result().topic_partitions
        self._check_each(what, found)
        return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}

    def set_group_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Commit offsets for a group without members; without metadata, which the client ends with a zero byte."""
        given = [self._kafka.TopicPartition(*place, offset) for place, offset in offsets.items()]
        what = f"setting the offsets of the group {group}"
        with self._asking(what):
            request = [self._kafka.ConsumerGroupTopicPartitions(group, given)]
            (answer,) = self._admin.alter_consumer_group_offsets(request, request_timeout=self.timeout).values()
            found = answer.result().topic_partitions
        self._check_each(what, found)

    def _check_each(self, what: str, partitions: Iterable[Any]) -> None:
        for one in partitions:
            if one.error is not None:
                raise self.refusal(f"{what} in {one.topic}-{one.partition}", one.error)

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the settings of topics; a topic that the cluster does not describe is left out."""
        admin, found = self._kafka.admin, dict[str, dict[str, str]]()
        asked = [admin.ConfigResource(admin.ConfigResource.Type.TOPIC, name) for name in topics]
        answers = self._admin.describe_configs(asked, request_timeout=self.timeout) if asked else {}
        for resource, answer in answers.items():
            try:
                found[resource.name] = {name: entry.value for name, entry in answer.result().items()}
            except self._kafka.KafkaException:  # usually for lack of permission; the settings are only needed for notes
                found[resource.name] = {}
        return found

    def ends(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        """Return the first and end offsets of partitions."""
        with self._reader() as consumer:

            def ends(place: Place) -> Any:
                return consumer.get_watermark_offsets(self._kafka.TopicPartition(*place), self.timeout)

            return {
                place: self._again(f"reading the ends of {place[0]}-{place[1]}", partial(ends, place))
                for place in places
            }

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        consumer = self._kafka.Consumer(
            {
                **self._settings,
                "group.id": self._name,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        try:
            yield consumer
        finally:
            consumer.close()

    def open(self, compression: str | None, batch_bytes: int) -> None:
        """Open the producer: an open transaction of an earlier one with the same name is aborted or finished."""
        settings = {**_PRODUCER, "batch.size": batch_bytes, **self._settings, "transactional.id": self._name}
        if compression is not None:
            settings["compression.type"] = compression
        with self._asking("opening a transactional producer"):
            self._producer = self._kafka.Producer(settings)
            self._producer.init_transactions(self.timeout)
        with self._reader() as consumer:
            self._group = consumer.consumer_group_metadata()

    def reached(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offsets of the log at which partitions continue, for those with a commit."""
        asked = [self._kafka.TopicPartition(*place) for place in places]
        with self._reader() as consumer, self._asking("reading how far the replay came"):
            found = consumer.committed(asked, self.timeout)
        for one in found:
            if one.error is not None:
                raise self.refusal(f"reading how far the replay of {one.topic}-{one.partition} came", one.error)
        return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}

    def begin(self) -> None:
        """Begin a transaction."""
        self._log.failure = None
        with self._asking("beginning a transaction"):
            self._producer.begin_transaction()
        self._is_open = True

    def produce(self, place: Place, rows: Iterable[tuple[Any, ...]]) -> None:
        """Produce records to a partition: rows of key, value, timestamp, headers and delivery callback."""
        topic, partition = place
        produce, poll = self._producer.produce, self._producer.poll
        try:
            for key, value, timestamp, headers, on_delivery in rows:
                deadline = 0.0
                while True:
                    try:
                        produce(topic, value, key, partition, on_delivery, timestamp=timestamp, headers=headers)
                        break
                    except BufferError:
                        deadline = deadline or time.monotonic() + self.timeout
                        self._check_time(deadline)
                        poll(0.01)
                        self._check_transaction()
            poll(0)
        except self._kafka.KafkaException as error:
            self._take_reports()
            refusal = self.refusal(f"{topic}-{partition}", error.args[0])
            raise (refusal if error.args[0].fatal() else NotDeliveredError(str(refusal))) from None

    def pause(self, seconds: float) -> None:
        """Wait, while records are delivered."""
        self._producer.poll(seconds)

    def deliver(self) -> None:
        """Wait until all records are delivered.

        Raises
        ------
        NotDeliveredError
            When the transaction can only be aborted.
        """
        deadline, left = time.monotonic() + self.timeout, len(self._producer)
        with self._asking("producing"):
            while still := self._producer.flush(_AT_ONCE):
                if still < left:
                    deadline, left = time.monotonic() + self.timeout, still
                self._check_time(deadline)
                self._check_transaction()

    def commit(self, reached: Mapping[Place, int]) -> None:
        """Commit the transaction, and with it the offsets of the log at which partitions continue."""
        at = [self._kafka.TopicPartition(*place, offset) for place, offset in reached.items()]
        self._again(
            "keeping how far the replay came",
            lambda: self._producer.send_offsets_to_transaction(at, self._group, self.timeout),
        )
        self._again("committing a transaction", lambda: self._producer.commit_transaction(self.timeout))
        self._is_open = False

    def abort(self) -> None:
        """Abort the transaction; purge undelivered records, for which the client would wait."""
        self._producer.purge()
        self._producer.flush(self.timeout)
        self._again("aborting a transaction", lambda: self._producer.abort_transaction(self.timeout))
        self._is_open = False

    def _again(self, what: str, step: Callable[[], Any]) -> Any:
        """Run a step, and retry it for temporary errors: a new topic has no leader at first."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return step()
            except self._kafka.KafkaException as error:
                passes = error.args[0].retriable() or error.args[0].name() in _PASSING
                if not passes or time.monotonic() > deadline:
                    raise self.refusal(what, error.args[0]) from None
                time.sleep(_PAUSE)

    def _check_transaction(self) -> None:
        if self._log.failure is not None:
            self._take_reports()
            raise NotDeliveredError(f"{self.to}: {self._log.failure}")

    def _take_reports(self) -> None:
        """Wait for the delivery report of the failed record: the client fails the transaction before it reports."""
        deadline = time.monotonic() + _AT_ONCE
        while not self._producer.poll(_PAUSE) and time.monotonic() < deadline:
            pass

    def _check_time(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            said = f" ({self._said})" if self._said else ""
            raise ReplayError(f"{self.to}: no records were delivered for {self.timeout:g} seconds{said}")

    def close(self) -> None:
        """Drop undelivered records; abort an open transaction, so that no consumer waits for its end."""
        if self._producer is not None:
            self._producer.purge()
            if self._is_open:
                with suppress(self._kafka.KafkaException):  # the next start does it, or the broker after a timeout
                    self._producer.abort_transaction(min(self.timeout, _CLOSING_SECONDS))
            self._producer = None
