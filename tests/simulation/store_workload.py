"""``LogStore``: producers, consumers, topics and groups over restarts, stepped by one scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from faults import InterruptError
from known_reads import read_once
from partition_workload import partitions_in
from process import Process
from runner import Notes, Workload

import kraftlog
from kraftlog import LogStore
from kraftlog.disk.disk import disk
from kraftlog.errors import RecordError
from kraftlog.layout.checkpoints import LOG_START_OFFSETS
from kraftlog.log_store.cluster import FEATURES
from kraftlog.log_store.errors import ForkedStoreError, InvalidTransactionError, StoreError
from kraftlog.log_store.partition import BatchOptions
from kraftlog.log_store.producer import Producer
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.store import _OFFSETS_CONFIGS, _TRANSACTION_STATE_CONFIGS

LOGS = Path("/sim/logs")
TOPIC, PARTITIONS, GROUP = "t", 3, "g"
SOURCES = {"one": ("source", 0), "two": ("source", 1)}  # of each producer its own: its offsets rise
READER = "reader"  # a group that commits by itself
GONE, GONE_GROUP = "gone", "of-gone"  # a topic that is deleted, and who commits offsets of it
LAST = "last"  # what a recovery commits under each id, unless one before it did
IDS = (LAST, *SOURCES, "zombie")
GONE_IS, CONSUMED = "the deleted topic", "consumed up to"  # see judge_one_of
TRANSACTION_VERSION = {1: 2, 2: 0}  # by the partitions of the coordinator's topic; 0 is that of Kafka before 4.0
ABSENT, EMPTY = (False, (), 0), (True, (), 0)  # the topic that is deleted: whether it is there, rows, offset


class StoreWorkload(Workload):
    """Producers with transactional ids and without, and others beside them, over two restarts, the first not closed.

    What is acknowledged is noted, and what is under way: judged is that a transaction is there whole, with its offset,
    or not at all; that what was acknowledged is there, in order and once; that what was aborted is not. A recovery goes
    on with the ids and groups of the run.

    Parameters
    ----------
    transaction_log_partitions : int
        Which decides the ``transaction.version`` as well.
    """

    failures = (OSError, StoreError, RecordError)  # the last of a log that cannot be opened

    def __init__(self, transaction_log_partitions: int = 1) -> None:
        self.partitions = transaction_log_partitions

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({self.partitions})"

    @property
    def actors(self) -> tuple[str, ...]:
        return (*ACTORS, "threads")

    def prepare(self, process: Process) -> None:
        process.disk.make_folder(LOGS.parent)

    def open(self, process: Process, threads: int) -> LogStore:
        with patch.dict(FEATURES, {"transaction.version": TRANSACTION_VERSION[self.partitions]}):  # of a new store
            return LogStore(
                LOGS,
                clock=process.clock,
                new_uuid=lambda: process.uuid4().bytes,
                sync_threads=threads,
                transaction_log_partitions=self.partitions,
            )

    def run(self, process: Process) -> None:
        with small_segments():
            self.work(process)

    def work(self, process: Process) -> None:
        number, dice = iter(range(1, 1000)), process.random
        others = dice.sample(sorted(ACTORS), len(ACTORS))
        for restart in range(3):
            threads = dice.choice((0, 2))
            if threads:
                process.plays("threads")
            store = self.open(process, threads)
            if TOPIC not in store.topics:
                store.create_topic(TOPIC, PARTITIONS, {"internal.segment.bytes": 1500})
                process.note("created")
            clients = [
                transactions(process, begun(process, store, "one"), number),
                transactions(process, begun(process, store, "two"), number),
                sends(process, begun(process, store, None), number),
            ]
            for name in others[restart * 2 : restart * 2 + 2]:
                process.plays(name)
                clients.append(ACTORS[name](process, store, number))
            for _ in range(dice.randrange(12, 20)):
                next(dice.choice(clients))
                process.let_threads_run()
            if restart == 0:
                store._abandon()
            else:
                store.close()
                process.note("closed")

    def recover(self, process: Process) -> Any:
        with small_segments(), self.open(process, 2 if self.partitions == 2 else 0) as store:
            if TOPIC in store.topics:
                process.note("topic")
            else:
                store.create_topic(TOPIC, PARTITIONS, {"internal.segment.bytes": 1500})
            seen = committed_rows()
            process.note("shown", tuple(seen.items()))
            process.note(CONSUMED, offsets_of(store, READER))
            process.note(GONE_IS, state_of_gone(store))
            for who in IDS:  # those of the process that died go on
                own = f"{LAST} {who}"
                if not any(own in rows for rows in seen.values()):
                    with begun(process, store, who) as producer, producer.transaction():
                        rows = {"value": [own] * PARTITIONS, "partition": list(range(PARTITIONS))}
                        producer.send(TOPIC, pa.table(rows))
            consume(process, store)
            if GONE not in store.topics:  # one of the same name is empty
                process.note(f"{GONE_IS} may be", (EMPTY,))
                store.create_topic(GONE)
                process.note(f"{GONE_IS} is done")
            gone = state_of_gone(store)
            assert all(not state.is_pending for state in store.transactional_ids())
            committed = {group: offsets_of(store, group) for group in store.groups()}
        return {"rows": committed_rows(), "committed": committed, "gone": gone, **tables()}

    def judge(self, notes: Notes, seen: Any) -> None:
        assert seen["errors"] == [], seen["errors"]
        assert seen["open"] == [], seen["open"]
        committed = [(group, *key, at, "committed") for group, found in seen["committed"].items() for key, at in found]
        assert seen["offsets"] == set(committed)
        assert (("created",) in notes) <= (("topic",) in notes), "a topic that was created is gone"
        judge_epochs(notes)
        judge_one_of(CONSUMED, notes, (), seen["committed"].get(READER, ()))
        judge_one_of(GONE_IS, notes, ABSENT, seen["gone"])
        rows = {at: list(values) for at, values in seen["rows"].items()}
        for _, shown in (note for note in notes if note[0] == "shown"):
            assert all(set(values) <= set(rows[at]) for at, values in shown), "shown by a recovery, and gone"
        for who in IDS:
            for at in rows:
                assert rows[at].count(f"{LAST} {who}") == 1, f"{who} went on, and its row is not in partition {at}"
                rows[at].remove(f"{LAST} {who}")
        self.judge_units(notes, rows, dict(seen["committed"].get(GROUP, ())))

    def judge_units(self, notes: Notes, rows: dict[int, list[str]], committed: dict[Any, int]) -> None:
        whole = units_of(notes)
        offset = dict.fromkeys(SOURCES, 0)
        for unit in whole.values():
            found = [value in rows[at] for at, value in unit["rows"]]
            state = unit["state"]
            if state == "committed":
                assert all(found), f"acknowledged, and not there: {unit}"
            elif state == "flushed":
                lost = [value for (_, value), is_there in zip(unit["rows"], found, strict=True) if not is_there]
                assert set(lost) <= unit["doubtful"], f"acknowledged, and not there: {lost}"
            elif state in ("begun", "aborted"):
                assert not any(found), f"not committed, and there: {unit}"
            elif state == "committing":
                assert all(found) or not any(found), f"a part of a transaction: {unit}"
            if unit["offset"] and ((found and all(found)) or (not found and state == "committed")):
                offset[unit["who"]] = unit["offset"]
        doubtful = {unit["offset"] for unit in whole.values() if unit["state"] == "committing" and not unit["rows"]}
        for who, source in SOURCES.items():
            found_offset = committed.get(source, 0)
            assert found_offset == offset[who] or found_offset in doubtful, "offsets without their output"
        known = {value for unit in whole.values() for _, value in unit["rows"]}
        for at, values in rows.items():
            assert len(set(values)) == len(values), f"twice in partition {at}"
            assert set(values) <= known
            for who in ("one", "two", "plain", "zombie", "forked"):
                own = [int(value.split(" ")[1]) for value in values if value.startswith(who)]
                assert own == sorted(own), f"out of order in partition {at}: {own}"
        read = {value for note in notes if note[0] == "read" for value in note[1]}
        read = {value for value in read if not value.startswith(("plain", "forked"))}  # these may not be on disk yet
        there = {value for values in rows.values() for value in values} | {f"{LAST} {who}" for who in IDS}
        assert read <= there, f"shown to a consumer at read_committed, and gone: {read - there}"


@contextmanager
def small_segments() -> Iterator[None]:
    """Let the topics of the coordinators have small segments: the store compacts them as soon as some are closed."""
    small = {"internal.segment.bytes": "2000"}
    with patch.dict(_TRANSACTION_STATE_CONFIGS, small), patch.dict(_OFFSETS_CONFIGS, small):
        yield


def judge_epochs(notes: Notes) -> None:
    """Raise when a producer id, or an epoch of one, was given out twice."""
    last: dict[int, tuple[str | None, int]] = {}
    for _, who, producer_id, epoch in (note for note in notes if note[0] == "epoch"):
        known, before = last.get(producer_id, (who, -1))
        assert known == who, f"producer id {producer_id} of {known} is given to {who}"
        assert epoch > before, f"epoch {epoch} of {who}, behind {before}"
        last[producer_id] = who, epoch


def judge_one_of(what: str, notes: Notes, first: Any, found: Any) -> None:
    """Raise unless what was found, now and by recoveries, is what the notes allow.

    ``what`` names the notes: with a value it was found, ``... may be`` has values that may hold from then on, ``... is
    done`` says that the last of them does.
    """
    allowed = [first]
    for kind, *rest in notes:
        if kind == f"{what} may be":
            allowed += rest[0]
        elif kind == f"{what} is done":
            allowed = allowed[-1:]
        elif kind == what:
            assert rest[0] in allowed, f"{what} {rest[0]}, not one of {allowed}"
            allowed = [rest[0]]
    assert found in allowed, f"{what} {found}, not one of {allowed}"


def units_of(notes: Notes) -> dict[int, dict[str, Any]]:
    """Return what was written together, by number: rows with their partitions, offset and state."""
    units: dict[int, dict[str, Any]] = {}
    for note in notes:
        if note[0] == "unit":
            _, number, offset, who = note
            units[number] = {"rows": [], "offset": offset, "state": "begun", "who": who, "doubtful": set()}
        elif note[0] == "row":
            _, number, at, value = note
            units[number]["rows"].append((at, value))
        elif note[0] == "doubtful":
            units[note[1]]["doubtful"].add(note[2])
        elif note[0] in ("committing", "committed", "aborted", "sending", "flushed"):
            units[note[1]]["state"] = note[0]
    return units


def begun(process: Process, store: LogStore, who: str | None) -> Producer:
    """Return a producer, whose epoch is noted."""
    producer = store.producer(who)
    process.note("epoch", who, producer.producer_id, producer.producer_epoch)
    return producer


def transactions(process: Process, producer: Producer, numbers: Iterator[int]) -> Iterator[None]:
    """Commit or abort one transaction after the other."""
    dice, who = process.random, str(producer.transactional_id)
    while True:
        number = next(numbers)
        has_offset = who in SOURCES and dice.random() < 0.4
        process.note("unit", number, number if has_offset else 0, who)
        again(producer.begin_transaction)
        is_commit = dice.random() < 0.75
        try:
            for _ in range(dice.randrange(0 if has_offset else 1, 4)):
                yield
                at, value = dice.randrange(PARTITIONS), f"{who} {next(numbers)} " + "." * dice.choice((5, 400))
                process.note("row", number, at, value)
                producer.send(TOPIC, pa.table({"value": [value]}), partition=at)
            if has_offset:
                producer.send_offsets_to_transaction({SOURCES[who]: number}, GROUP)
        except InterruptError:
            is_commit = False
        yield
        end_transaction(process, producer, number, is_commit=is_commit)
        yield


def again(call: Callable[[], object]) -> None:
    """Call a method, which an interrupt may come out of, once more then."""
    try:
        call()
    except InterruptError:
        with suppress(InvalidTransactionError):  # it was done
            call()


def end_transaction(process: Process, producer: Producer, number: int, *, is_commit: bool) -> None:
    """Commit or abort, as the documentation says behind an interrupt as well."""
    if is_commit:
        process.note("committing", number)
        try:
            producer.commit_transaction()
        except InterruptError:
            try:
                producer.commit_transaction()
            except InvalidTransactionError:
                again(producer.abort_transaction)
                is_commit = False
    else:
        again(producer.abort_transaction)
    process.note("committed" if is_commit else "aborted", number)


def sends(process: Process, producer: Producer, numbers: Iterator[int]) -> Iterator[None]:
    """Send and flush without transactions."""
    dice = process.random
    while True:
        number = next(numbers)
        process.note("unit", number, 0, "plain")
        process.note("sending", number)
        for _ in range(dice.randrange(1, 4)):
            at, value = dice.randrange(PARTITIONS), f"plain {next(numbers)}"
            process.note("row", number, at, value)
            try:
                if dice.random() < 0.5:
                    producer.send(TOPIC, pa.table({"value": [value]}), partition=at)
                else:
                    producer.send(TOPIC, value=value, partition=at)
            except InterruptError:
                process.note("doubtful", number, value)
            yield
        again(producer.flush)
        process.note("flushed", number)
        yield


def consumes(process: Process, store: LogStore, numbers: Iterator[int]) -> Iterator[None]:
    """Read what is committed, and commit offsets."""
    while True:
        consume(process, store)
        yield


def consume(process: Process, store: LogStore) -> None:
    """Go on where the group is, to the end."""
    with store.consumer(READER, isolation_level="read_committed") as consumer:
        consumer.subscribe([TOPIC])
        try:
            table = consumer.poll()
        except InterruptError:
            table = consumer.poll()
        process.note("read", tuple(value.as_py().decode() for value in table["value"]))
        offsets = tuple(sorted(consumer.position().items()))
        if offsets == offsets_of(store, READER):
            return
        process.note(f"{CONSUMED} may be", (offsets,))
        again(consumer.commit)
        process.note(f"{CONSUMED} is done")


def is_fenced(process: Process, store: LogStore, numbers: Iterator[int]) -> Iterator[None]:
    """Go on with a producer whose id another one has taken."""
    old = begun(process, store, "zombie")
    while True:
        number, at = next(numbers), process.random.randrange(PARTITIONS)
        process.note("unit", number, 0, "zombie")
        old.begin_transaction()
        rows = [f"zombie {next(numbers)}" for _ in range(2)]
        for value in rows:
            process.note("row", number, at, value)
        old.send(TOPIC, pa.table({"value": rows[:1]}), partition=at)
        late = Stamp(old.producer_id, old.producer_epoch, 1, is_transactional=True)
        yield
        following = begun(process, store, "zombie")
        partition, late_rows = store._open_partition((TOPIC, at)), pa.record_batch({"value": rows[1:]})
        refused(partial(partition.append_rows, late_rows, late, BatchOptions(), process.clock()))
        refused(partial(old.send, TOPIC, late_rows, partition=at))
        refused(old.commit_transaction)
        refused(old.begin_transaction)
        yield
        old = following


def refused(call: Callable[[], object]) -> None:
    """Raise when a producer that is fenced is not refused."""
    try:
        call()
    except StoreError:
        return
    raise AssertionError("a producer that is fenced goes on")


def deletes(process: Process, store: LogStore, numbers: Iterator[int]) -> Iterator[None]:
    """Create a topic, write to it, commit an offset of it, delete it."""
    while True:
        number = next(numbers)
        if GONE not in store.topics:
            process.note(f"{GONE_IS} may be", (EMPTY,))
            store.create_topic(GONE)
            process.note(f"{GONE_IS} is done")
        _, rows, offset = state_of_gone(store)
        yield
        who = process.random.choice((None, "of-gone"))
        with begun(process, store, who) as producer:
            rows = (*rows, f"gone {number}")
            process.note(f"{GONE_IS} may be", ((True, rows, offset),))
            if who is None:
                producer.send(GONE, value=rows[-1])
                producer.flush()
            else:
                with producer.transaction():
                    producer.send(GONE, value=rows[-1])
            process.note(f"{GONE_IS} is done")
        if process.random.random() < 0.3:  # at once: the markers of the transaction may not be on disk
            delete_gone(process, store)
            continue
        yield
        process.note(f"{GONE_IS} may be", ((True, rows, number),))
        with store.consumer(GONE_GROUP) as consumer:
            consumer.commit({(GONE, 0): number})
        process.note(f"{GONE_IS} is done")
        yield
        if process.random.random() < 0.7:
            delete_gone(process, store)
        yield


def delete_gone(process: Process, store: LogStore) -> None:
    """Delete the topic; its offsets go first."""
    _, rows, _ = state_of_gone(store)
    process.note(f"{GONE_IS} may be", ((True, rows, 0), ABSENT))
    store.delete_topic(GONE)
    process.note(f"{GONE_IS} is done")


def state_of_gone(store: LogStore) -> tuple[bool, tuple[str, ...], int]:
    """Return whether the topic is there, with its rows, and the offset that is committed for it."""
    is_there = GONE in store.topics
    rows = read_once(("rows",), [LOGS / f"{GONE}-0"], partial(_rows_of, LOGS / f"{GONE}-0")) if is_there else ()
    return is_there, rows, dict(offsets_of(store, GONE_GROUP)).get((GONE, 0), 0)


def cleans(process: Process, store: LogStore, numbers: Iterator[int]) -> Iterator[None]:
    """Compact the topics of the coordinators."""
    while True:
        store.clean(roll=process.random.random() < 0.7)
        yield


def forks(process: Process, store: LogStore, numbers: Iterator[int]) -> Iterator[None]:
    """Let a child that has inherited a store use and close it."""
    while True:
        producer, consumer = begun(process, store, None), store.consumer(READER)
        number = next(numbers)
        process.note("unit", number, 0, "forked")
        process.note("row", number, 0, f"forked {number}")
        producer.send(TOPIC, value=f"forked {number}", partition=0)
        with process.child():
            for call in (
                partial(producer.send, TOPIC, value="of a child", partition=0),
                producer.flush,
                consumer.poll,
                partial(consumer.commit, {(TOPIC, 0): 1}),
                store.flush,
                partial(store.producer, "one"),
                partial(store.create_topic, "of-a-child"),
            ):
                try:
                    call()
                except ForkedStoreError:
                    continue
                raise AssertionError("a child process uses the store of its parent")
            consumer.close()
            producer.close()
            store.close()
        process.note("sending", number)
        producer.flush()
        process.note("flushed", number)
        yield


ACTORS: dict[str, Callable[[Process, LogStore, Iterator[int]], Iterator[None]]] = {
    "Consumer.commit": consumes,
    "a zombie producer": is_fenced,
    "delete_topic": deletes,
    "compaction": cleans,
    "a child process": forks,
}


def offsets_of(store: LogStore, group: str) -> tuple[Any, ...]:
    """Return the committed offsets of a group."""
    return tuple(sorted((key, each.offset) for key, each in store.committed(group).items()))


def tables() -> dict[str, Any]:
    """Return what the tables of the log directory say, which read one partition after the other."""
    log = kraftlog.open(LOGS)
    found: dict[str, Any] = {"errors": [], "open": [], "offsets": set()}
    left = [fault for fault in log.left_alone() if "-delete: " not in fault.message]  # which the next broker removes
    found["errors"] += [fault.message for fault in [*log.unreadable(), *left]]
    for folder in partitions_in(LOGS):
        known = read_once(("tables",), [folder, LOGS / LOG_START_OFFSETS], partial(_tables_of, folder))
        found = {name: each + known[name] if name != "offsets" else each | known[name] for name, each in found.items()}
    return found


def _tables_of(folder: Path) -> dict[str, Any]:
    log = kraftlog.open(folder)
    return {
        "errors": [row["message"] for row in log.errors().to_pylist()],
        "open": [row for row in log.partition_transactions().to_pylist() if row["state"] == "open"],
        "offsets": {
            (row["group"], row["topic"], row["partition"], row["offset"], row["state"])
            for row in log.offsets().to_pylist()
        },
    }


def committed_rows() -> dict[int, tuple[str, ...]]:
    """Return the committed values of each partition, as another reader of the directory finds them."""
    folders = [(at, LOGS / f"{TOPIC}-{at}") for at in range(PARTITIONS)]
    return {at: read_once(("rows",), [folder], partial(_rows_of, folder)) for at, folder in folders}


def _rows_of(folder: Path) -> tuple[str, ...]:
    if not disk().matches(folder, "*.log"):
        return ()
    rows = kraftlog.open(folder).records(["value"], isolation_level="read_committed", strict=True).to_table()
    return tuple(value.decode() for value in rows["value"].to_pylist())
