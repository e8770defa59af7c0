"""Ctrl-C, and exceptions that nobody expects, at every line of what producers and consumers do.

Afterwards the same objects go on as far as they allow, the store is closed and opened again, and what is in it is
judged by what was told: a transaction is whole or not there; one whose commit returned is there, and none is there
that was aborted; no record of an earlier acknowledged send is missing, none is there twice; no poll skips a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from interrupts import chosen_lines, interrupted
from written import visible

import kraftlog
from kraftlog import LogStore
from kraftlog.log_store.errors import InvalidTransactionError, StoreError
from kraftlog.log_store.partition import Partition
from kraftlog.log_store.producer import Producer
from kraftlog.log_store.producer_entries import ProducerEntries
from kraftlog.write import partition_log
from kraftlog.write.partition_log import PartitionLog
from standing_clock import StandingClock

ERRORS = [KeyboardInterrupt]
PARTITIONS = 2
Opened = Callable[[], LogStore]


def opener(path: Path) -> Opened:
    numbers, clock = iter(range(1, 1000)), StandingClock()

    def opened() -> LogStore:
        return LogStore(path, clock=clock, new_uuid=lambda: next(numbers).to_bytes(16), sync_threads=0)

    return opened


def rows(name: str) -> pa.Table:
    return pa.table({"value": [name] * PARTITIONS, "partition": list(range(PARTITIONS))})


def counts(path: Path) -> Counter[str]:
    return Counter(value for values in visible(path).values() for value in values)


def commit_again(producer: Producer) -> str:
    """End a transaction that was interrupted, by aborting it, or committing where that is refused."""
    try:
        producer.abort_transaction()
    except StoreError:
        producer.commit_transaction()
        return "committed"
    return "aborted"


@pytest.mark.parametrize("work", ["send", "offsets", "commit", "abort", "close", "transaction"])
@pytest.mark.parametrize("error", ERRORS)
def test_transactions(tmp_path: Path, pytestconfig: pytest.Config, error: type[BaseException], work: str):
    def judged(number: int) -> str:
        opened = opener(tmp_path / str(number))
        return transactions(opened, error, work, number)

    chosen_lines(pytestconfig, f"transactions {error} {work}", judged, 4)


def transactions(opened: Opened, error: type[BaseException], work: str, number: int) -> str:
    store = opened()
    store.create_topic("t", PARTITIONS)
    producer = store.producer("etl")
    with producer.transaction():
        producer.send("t", rows("before"))
    expected = Counter({"before": PARTITIONS})

    def transaction() -> None:
        with producer.transaction():
            producer.send("t", rows("meant"))
            producer.send_offsets_to_transaction({("t", 0): 1}, "g")

    if work == "transaction":
        place, told = interrupted(number, error, transaction)
    else:
        producer.begin_transaction()
        if work == "offsets":
            place, told = interrupted(number, error, lambda: producer.send_offsets_to_transaction({("t", 0): 1}, "g"))
        elif work == "send":
            place, told = interrupted(number, error, lambda: producer.send("t", rows("meant")))
        else:
            producer.send("t", rows("meant"))
            producer.send_offsets_to_transaction({("t", 0): 1}, "g")
            end = {"commit": producer.commit_transaction, "abort": producer.abort_transaction, "close": producer.close}
            place, told = interrupted(number, error, end[work])
    if not place:
        store.close()
        return ""
    assert isinstance(told, error), place
    is_committed = None
    if producer._is_in_transaction and work != "close":
        is_committed = commit_again(producer) == "committed"
    elif work == "close":
        producer.close()
    if work in ("abort", "send"):
        assert not is_committed, place
    shown = counts(store.path)["meant"]
    assert shown in (0, PARTITIONS), place
    if is_committed is not None:
        assert shown == PARTITIONS * is_committed, place
    assert (("t", 0) in store.committed("g")) == (shown > 0 and work != "send") or work == "offsets", place
    expected["meant"] = shown
    if work == "close":
        producer = store.producer("etl")
    with producer.transaction():
        producer.send("t", rows("after"))
    expected["after"] = PARTITIONS
    assert counts(store.path) == +expected, place
    store.close()
    with opened() as again:
        assert counts(again.path) == +expected, place
        with again.producer("etl") as other, other.transaction():
            other.send("t", rows("reopened"))
    assert counts(again.path)["reopened"] == PARTITIONS
    assert kraftlog.open(again.path).errors().num_rows == 0
    return place


@pytest.mark.parametrize("work", ["send", "single", "flush", "close", "store"])
@pytest.mark.parametrize("error", ERRORS)
def test_sends(tmp_path: Path, pytestconfig: pytest.Config, error: type[BaseException], work: str):
    def judged(number: int) -> str:
        opened = opener(tmp_path / str(number))
        return sends(opened, error, work, number)

    chosen_lines(pytestconfig, f"sends {error} {work}", judged, 4)


def sends(opened: Opened, error: type[BaseException], work: str, number: int) -> str:
    store = opened()
    store.create_topic("t", PARTITIONS)
    producer = store.producer()
    producer.send("t", rows("before"))
    for each in range(3):
        producer.send("t", value=f"single {each}", partition=each % PARTITIONS)
    works = {
        "send": lambda: producer.send("t", rows("meant")),
        "single": lambda: producer.send("t", value="meant"),
        "flush": producer.flush,
        "close": producer.close,
        "store": store.close,
    }
    place, told = interrupted(number, error, works[work])
    if not place:
        store.close()
        return ""
    assert isinstance(told, error), place
    if work != "store":
        if work != "close":
            producer.send("t", rows("after"))
            producer.flush()
        producer.close()
    store.close()
    with opened() as again:
        shown = counts(again.path)
        meant = shown.pop("meant", 0)
        assert meant <= PARTITIONS, place
        expected = Counter({"before": PARTITIONS, "single 0": 1, "single 1": 1, "single 2": 1})
        if work not in ("store", "close"):
            expected["after"] = PARTITIONS
        if work == "store":  # closing has acknowledged nothing, and writes one partition after the other
            assert shown <= expected, place
        else:
            assert shown == expected, place
        with again.producer() as other:
            other.send("t", rows("reopened"))
    return place


@pytest.mark.parametrize("error", ERRORS)
def test_polls(tmp_path: Path, pytestconfig: pytest.Config, error: type[BaseException]):
    def judged(number: int) -> str:
        opened = opener(tmp_path / str(number))
        return polls(opened, error, number)

    chosen_lines(pytestconfig, f"polls {error}", judged, 4)


def polls(opened: Opened, error: type[BaseException], number: int) -> str:
    with opened() as store:
        store.create_topic("t", PARTITIONS)
        with store.producer("etl") as producer:
            for each in range(3):
                with producer.transaction():
                    producer.send("t", rows(f"{each}"))
        with store.consumer("g", isolation_level="read_committed") as consumer:
            consumer.subscribe(["t"])
            seen = list[tuple[int, int]]()

            def take(table: pa.Table) -> None:
                seen.extend(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))

            place, told = interrupted(number, error, lambda: consumer.poll(2))
            if not place:
                store.close()
                return ""
            assert isinstance(told, error | pa.Table), place
            if isinstance(told, pa.Table):
                take(told)
            else:
                assert not any(consumer.position().values()), place
            while (table := consumer.poll(2)).num_rows:
                take(table)
            consumer.commit()
        assert sorted(seen) == [(at, offset) for at in range(PARTITIONS) for offset in (0, 2, 4)], place
        assert {key: each.offset for key, each in store.committed("g").items()} == {("t", 0): 6, ("t", 1): 6}
    return place


def interrupt_at(monkeypatch: pytest.MonkeyPatch, kind: object, name: str, work: Callable[[], object]) -> None:
    """Do some work, with Ctrl-C when it calls a function."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kind, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            work()


def test_an_interrupt_before_an_append_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What was appended before is not taken back."""
    with opener(tmp_path)() as store:
        store.create_topic("t", PARTITIONS)
        producer = store.producer()
        producer.send("t", rows("before"))
        producer.flush()
        interrupt_at(monkeypatch, partition_log, "headers_of", lambda: producer.send("t", rows("meant")))
        producer.send("t", rows("after"))
    assert counts(tmp_path) == {"before": PARTITIONS, "after": PARTITIONS}


def test_an_interrupt_between_log_and_producers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The two change in one step: the append is taken back, and what waits is written once."""
    with opener(tmp_path)() as store:
        store.create_topic("t", PARTITIONS)
        producer = store.producer()
        producer.send("t", rows("before"))
        interrupt_at(monkeypatch, ProducerEntries, "add", lambda: producer.send("t", rows("meant")))
        assert store._open_partition(("t", 0)).next_offset == 1
        producer.send("t", value="waits", partition=0)
        for _ in range(2):
            interrupt_at(monkeypatch, ProducerEntries, "add", producer.flush)
        producer.flush()
        producer.send("t", rows("after"))
    assert counts(tmp_path) == {"before": PARTITIONS, "waits": 1, "after": PARTITIONS}


def test_an_end_is_not_that_of_an_append_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another thread appends while a reader asks for it, and is interrupted."""
    with opener(tmp_path)() as store:
        store.create_topic("t", PARTITIONS)
        producer = store.producer()
        producer.send("t", rows("before"))
        partition, own = store._open_partition(("t", 0)), PartitionLog.next_offset

        def appended(log: PartitionLog) -> int:
            monkeypatch.setattr(PartitionLog, "next_offset", own)
            interrupt_at(monkeypatch, ProducerEntries, "add", lambda: producer.send("t", rows("meant")))
            assert own.__get__(log) == 2
            return own.__get__(log)

        monkeypatch.setattr(PartitionLog, "next_offset", property(appended))
        assert partition.next_offset == 1


def test_a_roll_that_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The partition goes on."""
    with opener(tmp_path)() as store:
        store.create_topic("t", PARTITIONS, {"cleanup.policy": "compact"})
        producer = store.producer()
        for name in ("before", "after"):
            producer.send("t", pa.table({"key": ["k"], "value": [name]}), partition=0)
            interrupt_at(monkeypatch, partition_log, "write_files", lambda: store.clean(["t"], roll=True))
        store.clean(["t"], roll=True)
    assert counts(tmp_path) == {"after": 1}


def test_an_abort_behind_the_decision_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It fences nobody: the commit can be called again."""
    with opener(tmp_path)() as store:
        store.create_topic("t", PARTITIONS)
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("t", rows("meant"))
        interrupt_at(monkeypatch, Partition, "append_marker", producer.commit_transaction)
        with pytest.raises(InvalidTransactionError, match="it cannot be aborted"):
            producer.abort_transaction()
        producer.commit_transaction()
        with producer.transaction():
            producer.send("t", rows("after"))
    assert counts(tmp_path) == {"meant": PARTITIONS, "after": PARTITIONS}
