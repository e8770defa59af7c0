"""Ctrl-C in the library code with which a store waits for its threads: they go on, and the store can be closed."""

from __future__ import annotations

import concurrent.futures
import queue
import random
import sys
import threading
import weakref
from _thread import _count
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from interrupts import leaves_with
from written import visible

from kraftlog import LogStore
from kraftlog.log_store import threads
from kraftlog.log_store.threads import Threads

ROWS = pa.table({"value": ["a", "b"], "partition": [0, 1]})
LIBRARY = tuple(str(Path(module.__file__ or "")) for module in (threading, queue, threads))
LIBRARY += (str(Path(concurrent.futures.__file__).parent),)
STAND_STILL = 40  # seconds behind which something waits for ever
NEVER = 10**9


class At:
    """Raises KeyboardInterrupt at the n-th line or return of library code that the tracing thread comes to."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(LIBRARY) or frame.f_code.co_name == "__del__":
            return None
        if event == "return" or (event == "line" and not leaves_with(frame)):
            self.left -= 1
            if self.left == -1:
                raise KeyboardInterrupt
        return self


def interrupted(number: int, work: Callable[[], object]) -> int:
    """Do some work, with Ctrl-C at its n-th place; return how many places it came to."""
    at, before = At(number), sys.gettrace()
    sys.settrace(at)
    try:
        work()
    except KeyboardInterrupt:
        assert at.left < 0
    finally:
        sys.settrace(before)
    return number - at.left


def ends(work: Callable[[], object]) -> None:
    """Do something in a thread that may stand still for ever, which the test does not."""
    raised: list[BaseException] = []

    def done() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=done, daemon=True)
    thread.start()
    thread.join(STAND_STILL)
    assert not thread.is_alive(), "it waits for ever"
    if raised:
        raise raised[0]


@pytest.mark.parametrize("are_started", [True, False])
def test_a_store_goes_on(tmp_path: Path, pytestconfig: pytest.Config, are_started: bool):
    reached = []

    def judged(number: int) -> None:
        store = LogStore(tmp_path / str(number), sync_threads=2)
        store.create_topic("t", 2)
        producer = store.producer("etl")

        def commit() -> None:
            with producer.transaction():
                producer.send("t", ROWS)

        told = 0
        if are_started:
            commit()
            told += 1
        reached.append(interrupted(number, commit))
        producer.init_transactions()
        for _ in range(3):
            commit()
        store.close()
        first, second = visible(tmp_path / str(number)).values()
        assert len(first) == len(second)
        assert told + 3 <= len(first) <= told + 4

    ends(lambda: judged(NEVER))
    places = reached.pop()
    assert places > 20
    numbers = list(range(places))
    if not pytestconfig.getoption("--all-cases"):
        numbers = random.Random(pytestconfig.getoption("--sample-seed")).sample(numbers, 20)
    for number in numbers:
        ends(partial(judged, number))


@pytest.mark.parametrize("count", [1, 3])
def test_tasks_are_done_behind_it(count: int):
    done: list[int] = []

    def some(pool: Threads) -> None:
        for task in [pool.submit(done.append, number) for number in range(3)]:
            task.result()

    def judged(number: int) -> int:
        done.clear()
        pool = Threads(count)
        places = interrupted(number, lambda: some(pool))
        before = len(done)
        some(pool)
        pool.shutdown()
        assert before <= 3 <= len(done) <= 6
        assert sorted(done[-3:]) == [0, 1, 2] or len(done) > 3
        return places

    for number in range(judged(NEVER)):
        ends(partial(judged, number))


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
def test_what_a_task_raises_is_told(error: type[BaseException]):
    pool = Threads(2)

    def fails() -> None:
        raise error("the disk is full")

    def judged() -> None:
        task = pool.submit(fails)
        for _ in range(2):
            with pytest.raises(error, match="the disk is full"):
                task.result()
        for _ in range(3):
            pool.submit(len, "").result()  # the thread goes on
        pool.shutdown()
        with pytest.raises(RuntimeError):
            pool.submit(len, "")

    ends(judged)


def test_who_waits_for_a_task_waits_until_it_is_done():
    done, may_go_on = [], threading.Event()
    pool = Threads(1)
    task = pool.submit(lambda: (may_go_on.wait(STAND_STILL), done.append(0)))
    threading.Timer(0.05, may_go_on.set).start()
    ends(task.result)
    assert done == [0]
    ends(pool.shutdown)


def test_there_are_no_more_threads_than_were_asked_for():
    both, third, may_go_on = threading.Barrier(3), threading.Event(), threading.Event()
    pool = Threads(2)
    for _ in range(2):
        pool.submit(lambda: (both.wait(STAND_STILL), may_go_on.wait(STAND_STILL)))
    both.wait(STAND_STILL)
    last = [pool.submit(third.set) for _ in range(2)][-1]
    assert not third.wait(0.1)
    may_go_on.set()
    ends(last.result)
    ends(pool.shutdown)


def test_a_task_that_was_taken_is_done_when_they_end_meanwhile():
    """Another thread ends them between the question whether they do anything more and the task."""
    pool = Threads(1)
    ending = threading.Thread(target=pool.shutdown, daemon=True)

    class Given:
        def __init__(self) -> None:
            self._queue = pool._given
            self.get = self._queue.get

        def put(self, task: object) -> None:
            if task is not None:
                ending.start()
                ending.join(0.1)
            self._queue.put(task)

    pool._given = Given()
    done: list[int] = []
    ends(lambda: pool.submit(done.append, 1).result())
    assert done == [1]
    ends(ending.join)


def test_a_thread_that_waits_holds_nothing():
    """Else a store that nobody has closed would never go."""

    class Store:
        pass

    store, pool = Store(), Threads(1)
    gone = weakref.ref(store)
    pool.submit(lambda held: None, store).result()
    del store
    waits = threading.Event()
    ends(lambda: [waits.wait(0.01) for _ in iter(lambda: gone() is not None, False)])
    ends(pool.shutdown)


@pytest.mark.parametrize("drops_waiting", [True, False])
def test_what_waits_when_they_end(drops_waiting: bool):
    done, begun, may_go_on = [], threading.Event(), threading.Event()
    pool = Threads(1)
    pool.submit(lambda: (begun.set(), may_go_on.wait(), done.append(0)))
    pool.submit(done.append, 1)
    begun.wait()
    threading.Timer(0.05, may_go_on.set).start()
    for _ in range(2):
        ends(lambda: pool.shutdown(drops_waiting=drops_waiting))
        assert done == ([0] if drops_waiting else [0, 1])


def test_threads_that_nobody_has_ended_end():
    before = _count()
    pool = Threads(2)
    both = threading.Barrier(2)
    for task in [pool.submit(both.wait, STAND_STILL) for _ in range(2)]:
        task.result()
    assert _count() == before + 2
    del pool, task
    waits = threading.Event()
    ends(lambda: [waits.wait(0.01) for _ in iter(lambda: _count() > before + 1, False)])  # its own is one, too
