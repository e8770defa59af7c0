"""Clients of two projects that process orders exactly once, at a broker that may be killed at any moment.

Each worker is a group of its own. It reads orders, and in one transaction writes two amounts for each of them, whose
sum is 0, and commits the offsets. Some transactions are aborted, and some are left open by a worker that vanishes.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic
from types import TracebackType
from typing import Self

import aiokafka
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

import kraftlog

ORDERS, AMOUNTS, PARTITIONS = "orders", "amounts", 3
TOPICS = {ORDERS: PARTITIONS, AMOUNTS: 2}
CONFIGS = {"internal.segment.bytes": str(16 << 10)}
CALL, LIMIT = 8.0, 120.0
TIMEOUT_MS = 6000
# A consumer of librdkafka whose first request for its topic is lost does not join its group before the next refresh of
# all topics, by default after 5 minutes.
REFRESH_MS = 1000
SENT = 30  # orders at once
OPEN = "open"  # a transactional id whose transaction nobody ends
_QUIET = {"log_level": 0, "socket.timeout.ms": 3000, "reconnect.backoff.max.ms": 200}
_MOST = 20  # orders in a transaction


class VanishedError(Exception):
    """A worker leaves its transaction open."""


class StuckError(Exception):
    """A call of a client does not return, although it has a timeout."""


def _in_time(call: Callable[[], object]) -> None:
    """Call a method of librdkafka, and leave it when its timeout is long over.

    ``send_offsets_to_transaction`` may wait for ever when its coordinator goes away (librdkafka #5456).
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(2 * CALL)
    if thread.is_alive():
        raise StuckError
    for error in errors:
        raise error


def amounts_of(dice: Random, name: str, partition: int, offset: int) -> list[tuple[int, bytes, bytes]]:
    """Return partition, key and value of the two amounts of an order."""
    key, amount = f"{name} {partition} {offset}".encode(), dice.randrange(1, 100)
    return [(to, key, str(value).encode()) for to, value in zip(dice.sample((0, 1), 2), (amount, -amount), strict=True)]


def draw_end(dice: Random) -> str:
    """Return what becomes of a transaction."""
    return dice.choices(("commit", "abort", "vanish"), (80, 15, 5))[0]


class Orders:
    """The orders, of an idempotent producer that sends each again until it is acknowledged.

    Parameters
    ----------
    bootstrap_servers : str
    dice : Random
        Draws their partitions, and the pauses between them.
    """

    def __init__(self, bootstrap_servers: str, dice: Random) -> None:
        self._dice = dice
        self._sent = 0
        self._acknowledged: list[bytes] = []
        options = {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 0, "log_level": 0}
        self._producer = Producer(options)

    @staticmethod
    def create_topics(path: Path) -> None:
        """Create the topics in a new log directory."""
        with kraftlog.LogStore(path) as store:
            for topic, partitions in TOPICS.items():
                store.create_topic(topic, partitions, CONFIGS)

    def send(self) -> None:
        """Send some orders, and wait for none."""
        for number in range(self._sent, self._sent + SENT):
            at = self._dice.randrange(PARTITIONS)
            self._producer.produce(ORDERS, str(number), partition=at, on_delivery=self._delivered)
            self._producer.poll(self._dice.random() * 0.03)
        self._sent += SENT

    def _delivered(self, error: object, message: Message) -> None:
        assert error is None, error
        self._acknowledged.append(message.value() or b"")

    def finish(self) -> None:
        """Wait until all are acknowledged."""
        assert self._producer.flush(LIMIT) == 0

    def check(self, log: kraftlog.Log) -> None:
        """Check that each is there once."""
        orders = log.of_files(log.found.only(lambda topic, _: topic == ORDERS))
        values = orders.records(["value"]).to_table()["value"].to_pylist()
        assert sorted(values) == sorted(self._acknowledged) == sorted(str(one).encode() for one in range(self._sent))


def _place(thread: threading.Thread) -> str:
    """Return the lines at which a thread is."""
    return "".join(traceback.format_stack(sys._current_frames()[thread.ident or 0]))


class OrderWorkers:
    """Workers of librdkafka and of aiokafka.

    Parameters
    ----------
    bootstrap_servers : str
    seed : int

    Attributes
    ----------
    ends : Counter
        How transactions ended.
    """

    def __init__(self, bootstrap_servers: str, seed: int) -> None:
        self._servers = bootstrap_servers
        self._until = monotonic() + LIMIT
        self._order_ends: dict[int, int] | None = None  # as soon as there are no more orders
        self._failures: list[BaseException] = []
        self.ends: Counter[str] = Counter()
        works: dict[str, Callable[[str, Random], None]] = {
            "librdkafka-0": self._by_librdkafka,
            "librdkafka-1": self._by_librdkafka,
            "aiokafka-0": self._by_aiokafka,
        }
        self.names = list(works)
        self._threads = [
            threading.Thread(target=self._run, args=(work, name, Random(f"{seed} {name}")), name=name, daemon=True)
            for name, work in works.items()
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:  # the workers end, and do not write into the logs of other tests
            self._until = monotonic()

    def finish(self) -> None:
        """Wait until all orders that there are now are processed; no more may come."""
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": "ends", **_QUIET})
        ends = (consumer.get_watermark_offsets(TopicPartition(ORDERS, at), CALL)[1] for at in range(PARTITIONS))
        self._order_ends = dict(enumerate(ends))
        consumer.close()
        for thread in self._threads:
            thread.join(LIMIT)
            assert not thread.is_alive(), f"{thread.name} does not end: {_place(thread)}"
        for failure in self._failures:
            raise failure

    def leave_open(self) -> None:
        """Begin a transaction of which no worker knows, and end it never."""
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "transactional.id": OPEN,
                "transaction.timeout.ms": TIMEOUT_MS,
                **_QUIET,
            }
        )
        producer.init_transactions(LIMIT)
        producer.begin_transaction()
        producer.produce(AMOUNTS, b"1", OPEN.encode(), partition=0)
        assert producer.flush(LIMIT) == 0

    def check(self, log: kraftlog.Log) -> None:
        """Check that each order has both amounts of each worker once, and that the groups have committed the end."""
        amounts = log.of_files(log.found.only(lambda topic, _: topic == AMOUNTS))
        rows = amounts.records(["key", "value"], isolation_level="read_committed").to_table().to_pylist()
        self.check_amounts((row["key"].decode(), int(row["value"])) for row in rows)
        offsets = log.offsets(["group", "partition", "offset", "state"]).to_pylist()
        assert {row["state"] for row in offsets} == {"committed"}
        self.check_offsets({(row["group"], row["partition"]): row["offset"] for row in offsets})
        assert {end.partition(" of ")[2] for end in self.ends if end.startswith("commit")} == {"librdkafka", "aiokafka"}

    def check_amounts(self, amounts: Iterable[tuple[str, int]]) -> None:
        """Check the committed amounts, with their keys."""
        found: dict[str, list[int]] = defaultdict(list)
        for key, amount in amounts:
            found[key].append(amount)
        assert self._order_ends is not None
        expected = {
            f"{name} {at} {one}" for name in self.names for at, end in self._order_ends.items() for one in range(end)
        }
        assert expected, "no order was written"
        assert found.keys() == expected
        wrong = {key: both for key, both in found.items() if len(both) != 2 or sum(both)}
        assert not wrong

    def check_offsets(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Check the committed offsets of the groups, by group and partition."""
        ends = {at: end for at, end in (self._order_ends or {}).items() if end}
        assert offsets == {(name, at): end for name in self.names for at, end in ends.items()}

    def _is_done(self, done: Mapping[int, int]) -> bool:
        assert monotonic() < self._until, f"{threading.current_thread().name} has processed {done}"
        ends = self._order_ends
        return ends is not None and all(done.get(at, 0) >= end for at, end in ends.items())

    def _run(self, work: Callable[[str, Random], None], name: str, dice: Random) -> None:
        try:
            work(name, dice)
        except BaseException as failure:
            self._failures.append(failure)

    # librdkafka

    def _by_librdkafka(self, name: str, dice: Random) -> None:
        done: dict[int, int] = {}
        while not self._is_done(done):
            producer = Producer(
                {
                    "bootstrap.servers": self._servers,
                    "transactional.id": name,
                    "transaction.timeout.ms": TIMEOUT_MS,
                    **_QUIET,
                }
            )
            consumer = Consumer(
                {
                    "bootstrap.servers": self._servers,
                    "group.id": name,
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "session.timeout.ms": TIMEOUT_MS,
                    "topic.metadata.refresh.interval.ms": REFRESH_MS,
                    **_QUIET,
                }
            )
            try:
                producer.init_transactions(CALL)
                partitions = [TopicPartition(ORDERS, at) for at in range(PARTITIONS)]
                done = {one.partition: max(one.offset, 0) for one in consumer.committed(partitions, CALL)}
                consumer.subscribe([ORDERS])
                while not self._is_done(done):
                    done |= self._librdkafka_transaction(name, dice, producer, consumer)
            except (KafkaException, StuckError):
                self.ends["failed"] += 1  # the broker was away; what is open is ended by the next producer
            except VanishedError:
                pass
            finally:
                consumer.close()

    def _librdkafka_transaction(
        self, name: str, dice: Random, producer: Producer, consumer: Consumer
    ) -> dict[int, int]:
        orders = [one for one in consumer.consume(_MOST, 0.1) if one.error() is None]
        if not orders:
            return {}
        producer.begin_transaction()
        for order in orders:
            for to, key, value in amounts_of(dice, name, order.partition(), order.offset()):
                producer.produce(AMOUNTS, value, key, partition=to)
        done = {order.partition(): order.offset() + 1 for order in orders}
        offsets = [TopicPartition(ORDERS, *one) for one in done.items()]
        group = consumer.consumer_group_metadata()
        _in_time(lambda: producer.send_offsets_to_transaction(offsets, group, CALL))
        end = draw_end(dice)
        if end != "commit":
            producer.flush(CALL)
        self.ends[f"{end} of librdkafka"] += 1
        if end == "vanish":
            raise VanishedError
        if end == "abort":
            producer.abort_transaction(CALL)
            raise VanishedError  # the next worker begins where the last transaction was committed
        producer.commit_transaction(CALL)
        return done

    # aiokafka

    def _by_aiokafka(self, name: str, dice: Random) -> None:
        asyncio.run(self._until_done_by_aiokafka(name, dice))

    async def _until_done_by_aiokafka(self, name: str, dice: Random) -> None:
        done: dict[int, int] = {}
        while not self._is_done(done):
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=self._servers,
                transactional_id=name,
                transaction_timeout_ms=TIMEOUT_MS,
                request_timeout_ms=3000,
                retry_backoff_ms=10,
            )
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=self._servers,
                group_id=name,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                request_timeout_ms=3000,
            )
            partitions = [aiokafka.TopicPartition(ORDERS, at) for at in range(PARTITIONS)]
            try:
                async with asyncio.timeout(CALL):
                    await producer.start()
                    await producer.begin_transaction()  # waits for the new epoch: the one before can no longer commit
                    await producer.abort_transaction()
                    await consumer.start()
                    consumer.assign(partitions)
                    done = {one.partition: await consumer.committed(one) or 0 for one in partitions}
                while not self._is_done(done):
                    async with asyncio.timeout(CALL):
                        done |= await self._aiokafka_transaction(name, dice, producer, consumer)
            except (KafkaError, TimeoutError, OSError):
                self.ends["failed"] += 1
            except VanishedError:
                pass
            finally:
                for client in (producer, consumer):
                    with suppress(KafkaError, TimeoutError, OSError, asyncio.CancelledError):
                        await asyncio.wait_for(client.stop(), CALL)

    async def _aiokafka_transaction(
        self, name: str, dice: Random, producer: aiokafka.AIOKafkaProducer, consumer: aiokafka.AIOKafkaConsumer
    ) -> dict[int, int]:
        orders = [one for some in (await consumer.getmany(timeout_ms=100, max_records=_MOST)).values() for one in some]
        if not orders:
            return {}
        await producer.begin_transaction()
        for order in orders:
            for to, key, value in amounts_of(dice, name, order.partition, order.offset):
                await producer.send(AMOUNTS, value, key, partition=to)
        done = {order.partition: order.offset + 1 for order in orders}
        offsets = {aiokafka.TopicPartition(ORDERS, at): end for at, end in done.items()}
        await producer.send_offsets_to_transaction(offsets, name)
        end = draw_end(dice)
        self.ends[f"{end} of aiokafka"] += 1
        if end == "vanish":
            raise VanishedError
        if end == "abort":
            await producer.abort_transaction()
            raise VanishedError
        await producer.commit_transaction()
        return done
