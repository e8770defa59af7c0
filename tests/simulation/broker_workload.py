"""The broker: clients process inputs exactly once by its requests, over kills, restarts and lost answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from faults import INTERRUPTS, KINDS
from process import Process
from runner import Notes, Workload
from sim_broker import LoopThreads, SimBroker, loop_of, request_frame, response_values
from store_workload import committed_rows, judge_epochs, small_segments, tables

import kraftlog
from kraftlog import LogStore
from kraftlog.errors import KraftlogError
from kraftlog.log_store.cluster import FEATURES
from kraftlog.log_store.errors import StorageError
from kraftlog.protocol.error_code import ErrorCode

LOGS = Path("/sim/logs")
PRODUCE, FETCH, COMMIT, OFFSETS, INIT, ADD_PARTITIONS, ADD_OFFSETS, END, COMMIT_OFFSETS = 0, 1, 8, 9, 22, 24, 25, 26, 28
TOPIC, PARTITIONS, SOURCE = "t", 3, "source"  # those of ``committed_rows``
INPUTS, WORKERS = 9, ("one", "two", "three")  # of each worker its own partition of the source
AUDITED = 0.1  # share of the recoveries that are audited, which takes longer than all else
PLAIN, READER = "plain", "reader"
PRODUCE_OF = {"old": 11, "new": 12}  # the newer one takes partitions into the transaction (KIP-890)
MOST_TIMEOUT_MS = 900_000
FAILS_LATER = (ErrorCode.UNSTABLE_OFFSET_COMMIT,)
ACTORS = ("old clients", "new clients", "a lost answer", "a request sent twice", "a zombie", "a kill", "a close")


class BrokerWorkload(Workload):
    """Clients that process inputs in transactions, one without transactions, and a reader.

    Each worker writes the outputs of some inputs, and commits their offsets, in one transaction; some it aborts, some
    it leaves open. Judged is that the outputs are those of the inputs before the committed offset, each once; that what
    was acknowledged is there, once and in order; that what a reader was shown stays; that nothing counts before its
    transaction is committed; and that all is refused which a producer asks for that another one has replaced.

    Parameters
    ----------
    transaction_version : int
        The level of the feature, with which newer clients take the protocol of KIP-890.
    """

    failures = (OSError, KraftlogError)
    faults = tuple(kind for kind in KINDS if kind not in INTERRUPTS)  # a broker has threads, which no signal interrupts

    def __init__(self, transaction_version: int = 2) -> None:
        self.version = transaction_version

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({self.version})"

    @property
    def actors(self) -> tuple[str, ...]:
        return ACTORS if self.version == 2 else tuple(one for one in ACTORS if one != "new clients")

    def prepare(self, process: Process) -> None:
        process.disk.make_folder(LOGS.parent)

    def open(self, process: Process, threads: int) -> LogStore:
        with patch.dict(FEATURES, {"transaction.version": self.version}):
            store = LogStore(
                LOGS,
                clock=process.clock,
                new_uuid=lambda: process.uuid4().bytes,
                sync_threads=threads,
                transaction_log_partitions=1,
                continues_transactions=True,
            )
        for topic in (TOPIC, SOURCE):
            if topic not in store.topics:
                store.create_topic(topic, PARTITIONS, {"internal.segment.bytes": 1500})
        return store

    def run(self, process: Process) -> None:
        with small_segments(), loop_of(process) as (loop, threads):
            loop.run_until_complete(self._live(process, loop, threads))

    async def _live(self, process: Process, loop: asyncio.AbstractEventLoop, threads: LoopThreads) -> None:
        dice, network = process.random, Network(process)
        kinds = [dice.choice(tuple(PRODUCE_OF)) if self.version == 2 else "old" for _ in WORKERS]
        workers = [Worker(network, who, kind).run() for who, kind in zip(WORKERS, kinds, strict=True)]
        clients = [loop.create_task(one) for one in (*workers, produces(network), reads(network))]
        for life in range(3):
            network.broker = SimBroker(self.open(process, dice.choice((0, 2))), loop, threads)
            for _ in range(dice.randrange(50, 250)):
                await asyncio.sleep(0)
                process.let_threads_run()
                for client in clients:
                    if client.done():
                        client.result()
            broker, network.broker = network.broker, None
            if life < 2 and dice.random() < 0.7:
                process.plays("a kill")
                broker.kill()
            else:
                process.plays("a close")
                await broker.close()

    def recover(self, process: Process) -> Any:
        with small_segments(), loop_of(process) as (loop, threads):
            return loop.run_until_complete(self._recovered(process, loop, threads))

    async def _recovered(self, process: Process, loop: asyncio.AbstractEventLoop, threads: LoopThreads) -> Any:
        network = Network(process)
        broker = network.broker = SimBroker(self.open(process, 0), loop, threads)
        workers = [Worker(network, who, "new" if self.version == 2 else "old", is_calm=True) for who in WORKERS]
        for worker in workers:
            await worker.resume()
        outputs = committed_outputs()
        for worker in workers:
            process.note("shown", worker.who, worker.at, tuple(outputs.get(worker.who, ())))
            await worker.run()
        await Reader(network).read()
        await broker.close()
        seen = {"outputs": committed_outputs(), **tables()}
        findings = kraftlog.open(LOGS).findings().to_pylist() if process.random.random() < AUDITED else []
        seen["findings"] = [row for row in findings if row["severity"] != "note"]  # such as what waits for the cleaner
        return seen

    def judge(self, notes: Notes, seen: Any) -> None:
        assert seen["errors"] == [], seen["errors"]
        assert seen["open"] == [], seen["open"]
        assert seen["findings"] == [], seen["findings"]
        judge_epochs(notes)
        sent, plain = [], seen["outputs"].get(PLAIN, [])
        possible = {who: {0} for who in WORKERS}
        shown: set[str] = set()
        for kind, *what in notes:
            if kind == "committing":
                possible[what[0]].add(what[1])
            elif kind == "committed":
                possible[what[0]] = {what[1]}
            elif kind == "shown":
                who, at, outputs = what
                assert at in possible[who], f"{who}: offset {at}, not one of {possible[who]}"
                assert sorted(outputs) == list(range(at)), f"{who}: offset {at}, and the outputs {sorted(outputs)}"
                possible[who] = {at}
            elif kind == "sending":
                sent.append(what[0])
            elif kind == "sent":
                assert what[0] in plain, f"acknowledged, and not there: {what[0]}"
            elif kind == "read":
                shown.update(what[0])
        for who in WORKERS:
            assert sorted(seen["outputs"][who]) == list(range(INPUTS)), f"{who}: {sorted(seen['outputs'][who])}"
        assert plain == sorted(set(plain)), f"twice, or out of order: {plain}"
        assert set(plain) <= set(sent)
        there = {f"{who} {number}" for who, numbers in seen["outputs"].items() for number in numbers}
        assert shown <= there, f"shown to a reader at read_committed, and gone: {shown - there}"


def committed_outputs() -> dict[str, list[int]]:
    """Return the committed values of each client, by partition and offset."""
    outputs: dict[str, list[int]] = {}
    for values in committed_rows().values():
        for value in values:
            who, number = value.split()[:2]
            outputs.setdefault(who, []).append(int(number))
    return outputs


class Network:
    """What is between clients and the broker, where answers are lost and requests come twice.

    Attributes
    ----------
    broker : SimBroker or None
        None between a broker's end and the start of the next one.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self.broker: SimBroker | None = None

    async def ask(self, key: int, version: int, values: Mapping[str, Any], *, is_calm: bool = False) -> dict[str, Any]:
        """Send a request until it is answered; a retry is the same request."""
        frame, dice = request_frame(key, version, dict(values)), self.process.random
        while True:
            broker = self.broker
            if broker is None:
                await asyncio.sleep(0)
                continue
            task = broker.take(frame)
            if not is_calm and dice.random() < 0.05 and may_come_twice(key, version):
                self.process.plays("a request sent twice")
                for _ in range(dice.randrange(4)):
                    await asyncio.sleep(0)
                task.add_done_callback(forget)
                continue
            try:
                answer = await task
            except asyncio.CancelledError:
                if is_cancelled() or not task.cancelled():  # the end of a client cancels the answer as well
                    raise
                continue
            if not is_calm and dice.random() < 0.1:
                self.process.plays("a lost answer")
                continue
            if answer is None:
                return {}
            return response_values(key, version, answer)

    def refuse(self, code: int, what: str) -> None:
        """Raise for an error: of the disk, if it has failed, and otherwise a violation."""
        if not code:
            return
        if self.process.disk.has_failed:
            raise StorageError(f"{what}: error {code}")
        raise AssertionError(f"{what}: error {code}")


def may_come_twice(key: int, version: int) -> bool:
    """Whether a request may be answered late: of older clients only those with sequences (KIP-890 mends the others)."""
    return key == PRODUCE or (key == END and version >= 5) or (key == COMMIT_OFFSETS and version >= 5)


def is_cancelled() -> bool:
    """Whether the task that runs is to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def forget(task: asyncio.Task[Any]) -> None:
    """Take the result of a task that nobody waits for."""
    if not task.cancelled():
        task.exception()


def code_in(answer: Any) -> int:
    """Return the first error code of an answer."""
    if isinstance(answer, Mapping):
        for name, value in answer.items():
            if name.endswith("error_code") and value:
                return int(value)
            code = code_in(value)
            if code:
                return code
    elif isinstance(answer, list):
        return next(filter(None, map(code_in, answer)), 0)
    return 0


class Worker:
    """Processes its inputs in transactions.

    Parameters
    ----------
    network : Network
    who : str
        Its transactional id, and its group.
    kind : {"old", "new"}
        The protocol that it knows.
    is_calm : bool
        Whether it commits all at once, and no answer is lost.

    Attributes
    ----------
    at : int
        The next input.
    """

    def __init__(self, network: Network, who: str, kind: str, *, is_calm: bool = False) -> None:
        self.who, self.at = who, 0
        self._network, self._kind, self._is_calm = network, kind, is_calm
        self._process = network.process
        self._producer: dict[str, int] = {}
        self._sequences: dict[int, int] = {}
        self._fenced: tuple[dict[str, int], dict[int, int]] | None = None  # producer and sequences before
        if not is_calm:
            self._process.plays(f"{kind} clients")

    @property
    def _dice(self) -> Random:
        return self._process.random

    @property
    def _source(self) -> int:
        return WORKERS.index(self.who)

    async def _ask(self, key: int, version: int, values: Mapping[str, Any]) -> dict[str, Any]:
        while True:
            answer = await self._network.ask(key, version, values, is_calm=self._is_calm)
            code = code_in(answer)
            if code in FAILS_LATER:
                await asyncio.sleep(0)
                continue
            self._network.refuse(code, f"{self.who} ({self._kind}): request {key}")
            return answer

    async def begin(self) -> None:
        """Begin with the id, and go on where the last commit was; the producer before is fenced."""
        if self._producer:
            self._fenced = self._producer, self._sequences
        begun = await self._ask(INIT, 5, {"transactional_id": self.who, "transaction_timeout_ms": MOST_TIMEOUT_MS})
        self._producer = {name: begun[name] for name in ("producer_id", "producer_epoch")}
        self._process.note("epoch", self.who, *self._producer.values())
        self._sequences = {}
        self.at = await self._offset(is_stable=True)

    async def resume(self) -> None:
        """Begin unless all is done: then nothing is written."""
        self.at = await self._offset(is_stable=False)
        if self.at < INPUTS:
            await self.begin()

    def _offsets_request(self, *, is_stable: bool) -> dict[str, Any]:
        topics = [{"name": SOURCE, "partition_indexes": [self._source]}]
        return {"groups": [{"group_id": self.who, "topics": topics}], "require_stable": is_stable}

    async def _offset(self, *, is_stable: bool) -> int:
        fetched = await self._ask(OFFSETS, 9, self._offsets_request(is_stable=is_stable))
        return max(fetched["groups"][0]["topics"][0]["partitions"][0]["committed_offset"], 0)

    async def _offset_waits(self) -> None:
        """Check that an offset does not count before its transaction is committed, and who asks for it is told so."""
        offset = await self._offset(is_stable=False)
        if offset != self.at:
            raise AssertionError(f"{self.who}: offset {offset} before its transaction is committed, not {self.at}")
        answer = await self._network.ask(OFFSETS, 9, self._offsets_request(is_stable=True))
        code = code_in(answer)
        if code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
            self._network.refuse(code, f"{self.who}: offsets")
            raise AssertionError(f"{self.who}: an offset of a transaction under way is stable")

    async def run(self) -> None:
        """Process what is left."""
        if not self._producer:
            await self.resume()
        if not self._is_calm and self._dice.random() < 0.5:
            await self.begin()  # no partition knows that the first producer is fenced, only the coordinator
        while self.at < INPUTS:
            await self._transaction()

    async def _transaction(self) -> None:
        dice = self._dice
        most = INPUTS if self._is_calm else dice.randrange(1, 4)
        inputs = range(self.at, min(self.at + most, INPUTS))
        by_partition: dict[int, list[int]] = {}
        for number in inputs:
            by_partition.setdefault(number % PARTITIONS, []).append(number)
        if self._kind == "old":
            await self._ask(ADD_PARTITIONS, 3, self._adds(self._producer, sorted(by_partition)))
        await self._meet_zombie(min(by_partition))
        for partition, numbers in by_partition.items():
            values = self._produces(self._producer, self._sequences, partition, numbers)
            await self._ask(PRODUCE, PRODUCE_OF[self._kind], values)
            self._sequences[partition] = self._sequences.get(partition, 0) + len(numbers)
        names = {"transactional_id": self.who, **self._producer}
        if self._kind == "old":
            await self._ask(ADD_OFFSETS, 3, names | {"group_id": self.who})
        await self._meet_zombie(max(by_partition))
        version = 3 if self._kind == "old" else 5
        await self._ask(COMMIT_OFFSETS, version, self._commits(self._producer, inputs.stop))
        await self._meet_zombie(min(by_partition))
        if not self._is_calm and dice.random() < 0.3:
            await self._offset_waits()
        end = "commit" if self._is_calm else dice.choices(("commit", "abort", "vanish"), (60, 20, 20))[0]
        if end == "vanish":
            await self.begin()
            return
        if end == "commit":
            self._process.note("committing", self.who, inputs.stop)
        ended = await self._ask(END, version, names | {"committed": end == "commit"})
        if self._kind == "new":  # the epoch of its next transaction
            self._producer = {name: ended[name] for name in ("producer_id", "producer_epoch")}
            self._sequences = {}
        if end == "commit":
            self._process.note("committed", self.who, inputs.stop)
            self.at = inputs.stop

    def _adds(self, producer: Mapping[str, int], partitions: list[int]) -> dict[str, Any]:
        values = {f"v3_and_below_{name}": value for name, value in producer.items()}
        topics = [{"name": TOPIC, "partitions": partitions}]
        return values | {"v3_and_below_transactional_id": self.who, "v3_and_below_topics": topics}

    def _commits(self, producer: Mapping[str, int], offset: int) -> dict[str, Any]:
        partition = {"partition_index": self._source, "committed_offset": offset, "committed_metadata": ""}
        topics = [{"name": SOURCE, "partitions": [partition]}]
        return {"transactional_id": self.who, **producer, "group_id": self.who, "member_id": "", "topics": topics}

    def _produces(
        self, producer: Mapping[str, int], sequences: Mapping[int, int], partition: int, numbers: list[int]
    ) -> dict[str, Any]:
        rows = pa.table({"value": [f"{self.who} {number}" + " ." * (number % 4) * 40 for number in numbers]})
        stamp = {**producer, "base_sequence": sequences.get(partition, 0), "is_transactional": True}
        records = bytes(kraftlog.encode(rows, **stamp, timestamp_ms=self._process.clock()))
        return produced(partition, records, self.who)

    async def _meet_zombie(self, partition: int) -> None:
        """Let the producer that is fenced go on, if there is one and it is its turn: all that it asks is refused."""
        dice = self._dice
        if self._fenced is None or dice.random() < 0.3:
            return
        self._process.plays("a zombie")
        producer, sequences = self._fenced
        version = 3 if self._kind == "old" else 5
        ends = {"transactional_id": self.who, **producer, "committed": dice.random() < 0.5}
        requests = [
            (PRODUCE, PRODUCE_OF[self._kind], self._produces(producer, sequences, partition, [self.at])),
            (COMMIT_OFFSETS, version, self._commits(producer, INPUTS)),
            (END, version, ends),
        ]
        if self._kind == "old":
            requests.append((ADD_PARTITIONS, 3, self._adds(producer, [partition])))
        for key, number, values in dice.sample(requests, len(requests)):
            answer = await self._network.ask(key, number, values)
            if not code_in(answer):
                raise AssertionError(f"{self.who}: a producer that is fenced goes on with request {key}")


def produced(partition: int, records: bytes, transactional_id: str | None = None, acks: int = -1) -> dict[str, Any]:
    """Return a request with the records of a partition."""
    data = {"name": TOPIC, "partition_data": [{"index": partition, "records": records}]}
    return {"transactional_id": transactional_id, "acks": acks, "timeout_ms": 1000, "topic_data": [data]}


async def produces(network: Network) -> None:
    """Write without transactions, with sequences, and wait for the disk; an answer that is lost is asked for again."""
    begun = await network.ask(INIT, 5, {"transactional_id": None, "transaction_timeout_ms": 1})
    network.refuse(code_in(begun), PLAIN)
    stamp = {name: begun[name] for name in ("producer_id", "producer_epoch")}
    network.process.note("epoch", PLAIN, *stamp.values())
    for number in range(1000):
        rows = pa.table({"value": [f"{PLAIN} {number}"]})
        timestamp_ms = network.process.clock()  # without one a broker takes the producer for an idle one, as Kafka does
        records = bytes(kraftlog.encode(rows, **stamp, base_sequence=number, timestamp_ms=timestamp_ms))
        network.process.note("sending", number)
        network.refuse(code_in(await network.ask(PRODUCE, 11, produced(0, records))), PLAIN)
        network.process.note("sent", number)
        for _ in range(30):  # as many as there are of the others
            await asyncio.sleep(0)


async def reads(network: Network) -> None:
    """Read what is committed, again and again."""
    reader = Reader(network)
    while True:
        await reader.read()
        for _ in range(30):
            await asyncio.sleep(0)


class Reader:
    """Reads at ``read_committed``, as a client does: it leaves out what the response says was aborted."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._positions = dict.fromkeys(range(PARTITIONS), 0)

    async def read(self) -> None:
        """Read to the end of what can be read."""
        for partition, at in self._positions.items():
            where = {"partition": partition, "fetch_offset": at, "partition_max_bytes": 1 << 20}
            topics = [{"topic": TOPIC, "partitions": [where]}]
            values = {"min_bytes": 1, "isolation_level": 1, "session_epoch": -1, "topics": topics}
            answer = await self._network.ask(FETCH, 12, values, is_calm=True)
            self._network.refuse(code_in(answer), f"{READER}: {partition} at {at}")
            (fetched,) = answer["responses"][0]["partitions"]
            self._positions[partition] = max(at, self._take(at, fetched))

    def _take(self, at: int, fetched: Mapping[str, Any]) -> int:
        records = bytes(fetched["records"] or b"")
        if not records:
            return at
        aborted = [(one["producer_id"], one["first_offset"]) for one in fetched["aborted_transactions"] or ()]
        rows = kraftlog.decode(
            records,
            start_offset=at,
            isolation_level="read_committed",
            aborted_transactions=aborted,
            include_control=True,
        ).to_table()
        values = [value for value in self._values(rows) if not value.startswith(PLAIN)]
        self._network.process.note("read", tuple(" ".join(value.split()[:2]) for value in values))
        return int(fetched["last_stable_offset"])

    @staticmethod
    def _values(rows: pa.Table) -> Iterator[str]:
        for value in rows["value"].to_pylist():
            text = (value or b"").decode("utf-8", "replace")
            if text.startswith(WORKERS):
                yield text
