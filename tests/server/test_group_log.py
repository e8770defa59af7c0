"""Records of groups on their way to the log: in order, all of them, and on disk before an answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from kraftlog.log_store.errors import StorageError
from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.committed_offsets import OffsetsOutsideLog
from kraftlog.server.group_log import GroupLog

LIMIT = 30.0
A1, A2, B1, C1 = (KeyAndValue(key, value) for key, value in ((b"a", b"1"), (b"a", b"2"), (b"b", b"1"), (b"c", None)))


class Storage(OffsetsOutsideLog):
    """Keeps what is written; a disk that can be slow, or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[list[KeyAndValue]] = []
        self.fails = False
        self.odd: str | None = None
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()

    def write_records(self, group_id: str, records: Sequence[KeyAndValue]) -> None:
        self.begun.set()
        assert self.may_end.wait(LIMIT)
        if self.fails:
            raise StorageError("the disk has failed")
        if group_id == self.odd:
            raise ValueError("no error of a disk")
        self.written.append(list(records))


def run(test: Callable[[Storage, GroupLog], Coroutine[Any, Any, None]]) -> Storage:
    storage = Storage()

    async def within() -> None:
        await asyncio.wait_for(test(storage, GroupLog(storage)), LIMIT)

    asyncio.run(within())
    return storage


def test_the_last_record_of_a_key_counts_and_is_where_it_was_put():
    async def put(storage: Storage, log: GroupLog) -> None:
        log.put("g", [A1, B1])
        log.put("g", [A2, C1])
        assert await log.written("g") == 0
        assert await log.written("other") == 0

    assert run(put).written == [[B1, A2, C1]]


def test_records_that_could_not_be_written_are_tried_again_before_later_ones():
    async def fail(storage: Storage, log: GroupLog) -> None:
        storage.fails = True
        log.put("g", [A1, B1])
        assert await log.written("g") == ErrorCode.NOT_COORDINATOR
        storage.fails = False
        log.put("g", [C1])
        assert await log.written("g") == 0

    assert run(fail).written == [[A1, B1, C1]]


def test_a_record_that_could_not_be_written_does_not_replace_a_later_one():
    async def fail(storage: Storage, log: GroupLog) -> None:
        storage.fails = True
        storage.may_end.clear()
        log.put("g", [A1, B1])
        assert await asyncio.to_thread(storage.begun.wait, LIMIT)
        log.put("g", [A2])
        storage.may_end.set()
        while len(log._waiting.get("g", {})) < 2:
            await asyncio.sleep(0)
        storage.fails = False
        assert await log.written("g") == 0

    assert run(fail).written == [[B1, A2]]


@pytest.mark.parametrize("how", ["written", "close"])
def test_an_answer_waits_for_the_write_under_way(how: str):
    async def wait(storage: Storage, log: GroupLog) -> None:
        storage.may_end.clear()
        log.put("g", [A1])
        assert await asyncio.to_thread(storage.begun.wait, LIMIT)
        waits = asyncio.ensure_future(log.written("g") if how == "written" else log.close())
        done, _ = await asyncio.wait([waits], timeout=0.05)
        assert not done
        storage.may_end.set()
        await waits
        assert storage.written == [[A1]]

    run(wait)


def test_a_log_that_is_closed_tries_once_more():
    async def close(storage: Storage, log: GroupLog) -> None:
        storage.fails = True
        log.put("g", [A1])
        assert await log.written("g") == ErrorCode.NOT_COORDINATOR
        assert storage.written == []
        storage.fails = False
        await log.close()

    assert run(close).written == [[A1]]


def test_groups_that_change_during_a_write_are_written_together(monkeypatch: pytest.MonkeyPatch):
    switch, switches = asyncio.to_thread, list[Any]()

    async def counted(run: Callable[..., Any], *arguments: Any) -> Any:
        switches.append(run)
        return await switch(run, *arguments)

    async def write(storage: Storage, log: GroupLog) -> None:
        storage.may_end.clear()
        log.put("first", [A1])
        assert await switch(storage.begun.wait, LIMIT)
        for number in range(20):
            log.put(f"{number}", [B1])
        answers = [asyncio.ensure_future(log.written(f"{number}")) for number in range(20)]
        storage.may_end.set()
        assert await asyncio.gather(*answers) == [0] * 20

    monkeypatch.setattr(asyncio, "to_thread", counted)
    assert run(write).written == [[A1]] + [[B1]] * 20
    assert len(switches) == 2


def test_a_group_that_has_not_changed_does_not_wait_for_others():
    async def wait(storage: Storage, log: GroupLog) -> None:
        storage.may_end.clear()
        log.put("first", [A1])
        log.put("second", [A1])
        assert await asyncio.to_thread(storage.begun.wait, LIMIT)
        log.put("third", [A1])
        assert await asyncio.wait_for(log.written("other"), LIMIT / 2) == 0
        assert not storage.written
        storage.may_end.set()
        await log.close()

    assert run(wait).written == [[A1]] * 3


def test_clients_that_leave_do_not_end_a_write():
    async def leave(storage: Storage, log: GroupLog) -> None:
        storage.may_end.clear()
        log.put("g", [A1])
        log.put("other", [B1])
        assert await asyncio.to_thread(storage.begun.wait, LIMIT)
        log.put("g", [C1])
        answers = [asyncio.ensure_future(log.written(group_id)) for group_id in ("g", "other", "other")]
        await asyncio.sleep(0)
        for one in answers[:2]:
            one.cancel()
        storage.may_end.set()
        assert await answers[2] == 0
        assert await log.written("g") == 0

    assert run(leave).written == [[A1], [B1], [C1]]


def test_a_group_whose_write_fails_holds_up_no_other(caplog: pytest.LogCaptureFixture):
    async def fail(storage: Storage, log: GroupLog) -> None:
        storage.odd = "odd"
        for group_id in ("odd", "even"):
            log.put(group_id, [A1])
        answers = await asyncio.gather(log.written("odd"), log.written("even"))
        assert answers == [ErrorCode.UNKNOWN_SERVER_ERROR, 0]
        storage.odd = None
        assert await log.written("odd") == 0

    assert run(fail).written == [[A1], [A1]]
    assert "group 'odd': a change is not written" in caplog.text
