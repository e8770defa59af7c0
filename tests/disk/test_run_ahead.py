"""A thread that goes over items ahead of its caller, and shares the work on them with it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from kraftlog.disk import run_ahead as module
from kraftlog.disk.run_ahead import run_ahead


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_processors", lambda: 2)


def test_the_thread_goes_over_the_items():
    third, threads = threading.Event(), set()

    def items() -> Iterator[int]:
        for number in range(6):
            threads.add(threading.current_thread())
            if number == 2:
                third.set()
            yield number
        raise OSError("the file is gone")

    found = run_ahead(lambda item: -item, items())
    assert next(found) == 0
    assert third.wait(60)  # two more wait
    assert [next(found) for _ in range(5)] == [-1, -2, -3, -4, -5]
    with pytest.raises(OSError, match="the file is gone"):
        next(found)
    assert len(threads) == 1
    assert threading.current_thread() not in threads


def test_the_thread_does_the_work_while_the_caller_is_busy():
    done: list[int] = []
    are_done = threading.Event()

    def work(item: int) -> threading.Thread:
        done.append(item)
        if {1, 2} <= set(done):
            are_done.set()
        return threading.current_thread()

    found = run_ahead(work, iter(range(3)))
    next(found)
    assert are_done.wait(60)
    others = list(found)
    assert threading.current_thread() not in others
    assert sorted(done) == [0, 1, 2]


def test_the_caller_does_the_work_while_the_thread_is_busy():
    is_used = threading.Event()

    def items() -> Iterator[int]:
        yield 0
        assert is_used.wait(60)  # the second item takes until the first is used
        yield 1

    found = run_ahead(lambda _: threading.current_thread(), items())
    assert next(found) is threading.current_thread()
    is_used.set()
    assert len(list(found)) == 1


@pytest.mark.parametrize("busy", [0, 100, 2000])
def test_order_and_once(busy: int):
    times: Counter[int] = Counter()

    def work(item: int) -> int:
        times[item] += 1
        return item * item + 0 * sum(range(busy * (item % 3)))

    results = []
    for result in run_ahead(work, iter(range(500))):
        results.append(result + 0 * sum(range(busy * (result % 2))))
    assert results == [item * item for item in range(500)]
    assert times == Counter(range(500))


@pytest.mark.parametrize("bad", [0, 1, 5, 9])
def test_work_raises_in_its_turn(bad: int):
    def work(item: int) -> int:
        if item == bad:
            raise ValueError(item)
        return item

    found = run_ahead(work, iter(range(10)))
    assert [next(found) for _ in range(bad)] == list(range(bad))
    with pytest.raises(ValueError, match=str(bad)):
        next(found)


def test_no_thread_on_a_single_processor(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_processors", lambda: 1)
    current = threading.current_thread()
    assert list(run_ahead(lambda item: (item, threading.current_thread()), iter([current]))) == [(current, current)]


def test_a_consumer_that_stops_ends_the_thread():
    made = []

    def items() -> Iterator[int]:
        for number in range(1000):
            made.append(number)
            yield number

    before = threading.active_count()
    found = run_ahead(lambda item: item, items())
    assert next(found) == 0
    found.close()
    assert threading.active_count() == before
    assert len(made) <= 3
