"""The topics of the coordinators stay small, and nothing that counts is lost when the power fails at any step."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk, Step, since
from kraftlog import LogStore
from kraftlog.disk.disk import use_disk
from kraftlog.log_store import store as log_store
from kraftlog.log_store.errors import StoreError

Opened = Callable[..., LogStore]
SEGMENT_BYTES = 3000
IDS, GROUPS = ("etl", "other"), ("g", "h")


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch):
    configs = {"cleanup.policy": "compact", "internal.segment.bytes": str(SEGMENT_BYTES)}
    monkeypatch.setattr(log_store, "_TRANSACTION_STATE_CONFIGS", configs)
    monkeypatch.setattr(log_store, "_OFFSETS_CONFIGS", configs)


def work(store: LogStore, dice: random.Random, rounds: int, done: dict[str, int]) -> None:
    """Commit offsets in both ways; ``done`` has those that were acknowledged, and the last one that was tried."""
    producers = {name: store.producer(name) for name in IDS}
    for number in range(done["tried"] + 1, done["tried"] + 1 + rounds):
        done["tried"], group = number, dice.choice(GROUPS)
        if dice.random() < 0.5:
            with store.consumer(group) as consumer:
                consumer.commit({("t", 0): number})
        else:
            producer = producers[dice.choice(IDS)]
            with producer.transaction():
                producer.send("t", pa.table({"value": [str(number)]}))
                producer.send_offsets_to_transaction({("t", 0): number}, group)
        done[group] = number


def uuid_bytes(number: int) -> bytes:
    return number.to_bytes(16)


def sizes(path: Path) -> list[int]:
    return [
        sum(map(size_of, (path / f"{topic}-0").glob("*.log")))
        for topic in ("__transaction_state", "__consumer_offsets")
    ]


def size_of(file: Path) -> int:
    """Return its size; 0 when a thread that cleans has removed it meanwhile."""
    with suppress(FileNotFoundError):
        return file.stat().st_size
    return 0


def committed(store: LogStore) -> dict[str, int]:
    return {group: store.committed(group)[("t", 0)].offset for group in store.groups()}


@pytest.mark.parametrize("sync_threads", [0, 4])
@pytest.mark.parametrize("is_crash", [False, True])
def test_they_do_not_grow(opened: Opened, sync_threads: int, is_crash: bool):
    done, dice = {"tried": 0}, random.Random(1)
    with opened(sync_threads=sync_threads) as store:
        store.create_topic("t")
        most = [0, 0]
        for _ in range(6):
            work(store, dice, 40, done)
            store.flush()
            most = list(map(max, most, sizes(store.path)))
    # 240 commits make up some 60,000 bytes; a thread that cleans beside them is late on a busy machine
    assert max(most) < (10 if sync_threads else 5) * SEGMENT_BYTES
    if is_crash:
        (store.path / ".kafka_cleanshutdown").unlink()
    with opened() as again:
        assert committed(again) == {group: done[group] for group in GROUPS}
        work(again, dice, 3, done)
    assert kraftlog.open(store.path).errors().num_rows == 0


@pytest.mark.parametrize("name", ["create", "rename", "sync"])
def test_a_commit_does_not_fail_by_it(opened: Opened, caplog: pytest.LogCaptureFixture, name: str):
    failed: list[Step] = []

    def fails(step: Step) -> OSError | None:
        if failed or step.name != name or (".swap" if name == "rename" else ".cleaned") not in step.path.name:
            return None
        failed.append(step)
        return OSError(errno.ENOSPC, "No space left on device")

    done = {"tried": 0}
    with use_disk(FaultyDisk(fails)), opened() as store:
        store.create_topic("t")
        work(store, random.Random(2), 120, done)
        assert failed
        assert "could not be compacted" in caplog.text
        assert max(sizes(store.path)) < 6 * SEGMENT_BYTES  # the next one succeeds
    with opened() as again:
        assert committed(again) == {group: done[group] for group in GROUPS}
    assert kraftlog.open(store.path).errors().num_rows == 0


def test_it_ends_when_the_disk_fails_at_any_step(opened: Opened, tmp_path: Path):
    """What was acknowledged is there, and ids go on, wherever the disk has gone while a topic was compacted."""

    def is_compaction(step: Step) -> bool:
        return ".cleaned" in step.path.name or ".swap" in step.path.name or "cleaner" in step.path.name

    with use_disk(FaultyDisk()) as disk:
        store = opened()
        store.create_topic("t")
        work(store, random.Random(2), 60, {"tried": 0})
        store.close()
    steps = [step.number for step in disk.steps if is_compaction(step)]
    assert len(steps) > 20
    for at in random.Random(3).sample(steps, 12):
        done = {"tried": 0}
        path = tmp_path / f"failed {at}"
        uuids = map(uuid_bytes, range(1, 1000))
        with use_disk(FaultyDisk(since(at))):
            failed = LogStore(path, clock=store.options.clock, new_uuid=uuids.__next__, sync_threads=0)
            failed.create_topic("t")
            with pytest.raises((StoreError, OSError)):
                work(failed, random.Random(2), 60, done)
            failed._abandon()
        with LogStore(path, clock=store.options.clock, sync_threads=0) as again:
            found = committed(again)
            for group in GROUPS:
                assert found.get(group, 0) in (done.get(group, 0), done["tried"]), at
            work(again, random.Random(4), 3, done)
        assert kraftlog.open(path).errors().num_rows == 0
