"""``LogStore``: producers with and without transactions, offsets, restarts, stepped by one scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from known_reads import read_once
from partition_workload import partitions_in
from process import Process
from runner import Notes, Workload

import kraftlog
from kraftlog import LogStore
from kraftlog.disk.disk import disk
from kraftlog.layout.checkpoints import LOG_START_OFFSETS
from kraftlog.log_store import Producer
from kraftlog.log_store.errors import StoreError

LOGS = Path("/sim/logs")
TOPIC, PARTITIONS, GROUP = "t", 3, "g"
SOURCES = {"one": ("source", 0), "two": ("source", 1)}  # of each producer its own: its offsets rise
LAST = "last"  # what a recovery commits, unless one before it did


class StoreWorkload(Workload):
    """Two producers with transactional ids and one without, over two restarts, the first without a close.

    What is acknowledged is noted, and what is under way: judged is that a transaction is there whole, with its offset,
    or not at all; that what was acknowledged is there, in order and once; that what was aborted is not.

    Parameters
    ----------
    transaction_log_partitions : int
    """

    failures = (OSError, StoreError)

    def __init__(self, transaction_log_partitions: int = 1) -> None:
        self.partitions = transaction_log_partitions

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({self.partitions})"

    def prepare(self, process: Process) -> None:
        process.disk.make_folder(LOGS.parent)

    def open(self, process: Process) -> LogStore:
        return LogStore(
            LOGS,
            clock=process.clock,
            new_uuid=lambda: process.uuid4().bytes,
            sync_threads=0,
            transaction_log_partitions=self.partitions,
        )

    def run(self, process: Process) -> None:
        number = iter(range(1, 1000))
        for restart in range(3):
            store = self.open(process)
            if TOPIC not in store.topics:
                store.create_topic(TOPIC, PARTITIONS, {"internal.segment.bytes": 1500})
                process.note("created")
            clients = [
                transactions(process, store.producer("one"), number),
                transactions(process, store.producer("two"), number),
                sends(process, store.producer(), number),
            ]
            for _ in range(process.random.randrange(8, 16)):
                next(process.random.choice(clients))
            if restart == 0:
                store._abandon()
            else:
                store.close()
                process.note("closed")

    def recover(self, process: Process) -> Any:
        with self.open(process) as store:
            if TOPIC in store.topics:
                process.note("topic")
            else:
                store.create_topic(TOPIC, PARTITIONS, {"internal.segment.bytes": 1500})
            seen = committed_rows()
            process.note("shown", tuple(seen.items()))
            if not any(LAST in rows for rows in seen.values()):
                with store.producer("last") as producer, producer.transaction():
                    producer.send(TOPIC, pa.table({"value": [LAST]}), partition=0)
            offsets = {key: each.offset for key, each in store.committed(GROUP).items()}
            assert all(not state.is_pending for state in store.transactional_ids())
        return {
            "rows": committed_rows(),
            "committed": {who: offsets.get(key, 0) for who, key in SOURCES.items()},
            **tables(),
        }

    def judge(self, notes: Notes, seen: Any) -> None:
        assert seen["errors"] == [], seen["errors"]
        assert seen["open"] == [], seen["open"]
        assert (("created",) in notes) <= (("topic",) in notes), "a topic that was created is gone"
        assert seen["offsets"] == {(each, "committed") for each in seen["committed"].values() if each}
        rows = {at: list(values) for at, values in seen["rows"].items()}
        for _, shown in (note for note in notes if note[0] == "shown"):
            assert all(set(values) <= set(rows[at]) for at, values in shown), "shown by a recovery, and gone"
        assert rows[0].count(LAST) == 1, "the store cannot be written to"
        rows[0].remove(LAST)
        whole = units_of(notes)
        offset = dict.fromkeys(SOURCES, 0)
        for unit in whole.values():
            found = [value in rows[at] for at, value in unit["rows"]]
            state = unit["state"]
            if state == "committed" or (state == "flushed"):
                assert all(found), f"acknowledged, and not there: {unit}"
            elif state in ("begun", "aborted"):
                assert not any(found), f"not committed, and there: {unit}"
            elif state == "committing":
                assert all(found) or not any(found), f"a part of a transaction: {unit}"
            if unit["offset"] and ((found and all(found)) or (not found and state == "committed")):
                offset[unit["who"]] = unit["offset"]
        doubtful = {unit["offset"] for unit in whole.values() if unit["state"] == "committing" and not unit["rows"]}
        for who, found_offset in seen["committed"].items():
            assert found_offset == offset[who] or found_offset in doubtful, "offsets without their output"
        known = {value for unit in whole.values() for _, value in unit["rows"]}
        for at, values in rows.items():
            assert len(set(values)) == len(values), f"twice in partition {at}"
            assert set(values) <= known
            for who in ("one", "two", "plain"):
                own = [int(value.split(" ")[1]) for value in values if value.startswith(who)]
                assert own == sorted(own), f"out of order in partition {at}: {own}"


def units_of(notes: Notes) -> dict[int, dict[str, Any]]:
    """Return what was written together, by number: rows with their partitions, offset and state."""
    units: dict[int, dict[str, Any]] = {}
    for note in notes:
        if note[0] == "unit":
            _, number, offset, who = note
            units[number] = {"rows": [], "offset": offset, "state": "begun", "who": who}
        elif note[0] == "row":
            _, number, at, value = note
            units[number]["rows"].append((at, value))
        elif note[0] in ("committing", "committed", "aborted", "sending", "flushed"):
            units[note[1]]["state"] = note[0]
    return units


def transactions(process: Process, producer: Producer, numbers: Iterator[int]) -> Iterator[None]:
    """Commit or abort one transaction after the other."""
    dice, who = process.random, producer.transactional_id
    while True:
        number = next(numbers)
        has_offset = dice.random() < 0.4
        process.note("unit", number, number if has_offset else 0, who)
        producer.begin_transaction()
        for _ in range(dice.randrange(0 if has_offset else 1, 4)):
            yield
            at, value = dice.randrange(PARTITIONS), f"{who} {next(numbers)} " + "." * dice.choice((5, 400))
            process.note("row", number, at, value)
            producer.send(TOPIC, pa.table({"value": [value]}), partition=at)
        if has_offset:
            producer.send_offsets_to_transaction({SOURCES[str(who)]: number}, GROUP)
        yield
        if dice.random() < 0.75:
            process.note("committing", number)
            producer.commit_transaction()
            process.note("committed", number)
        else:
            producer.abort_transaction()
            process.note("aborted", number)
        yield


def sends(process: Process, producer: Producer, numbers: Iterator[int]) -> Iterator[None]:
    """Send and flush without transactions."""
    dice = process.random
    while True:
        number = next(numbers)
        process.note("unit", number, 0, "plain")
        process.note("sending", number)
        for _ in range(dice.randrange(1, 3)):
            at, value = dice.randrange(PARTITIONS), f"plain {next(numbers)}"
            process.note("row", number, at, value)
            producer.send(TOPIC, pa.table({"value": [value]}), partition=at)
            yield
        producer.flush()
        process.note("flushed", number)
        yield


def tables() -> dict[str, Any]:
    """Return what the tables of the log directory say, which read one partition after the other."""
    log = kraftlog.open(LOGS)
    found: dict[str, Any] = {"errors": [], "open": [], "offsets": set()}
    found["errors"] += [fault.message for fault in [*log.unreadable(), *log.left_alone()]]
    for folder in partitions_in(LOGS):
        known = read_once(("tables",), [folder, LOGS / LOG_START_OFFSETS], partial(_tables_of, folder))
        found = {name: each + known[name] if name != "offsets" else each | known[name] for name, each in found.items()}
    return found


def _tables_of(folder: Path) -> dict[str, Any]:
    log = kraftlog.open(folder)
    return {
        "errors": [row["message"] for row in log.errors().to_pylist()],
        "open": [row for row in log.transactions().to_pylist() if row["state"] == "open"],
        "offsets": {(row["offset"], row["state"]) for row in log.offsets().to_pylist()},
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
