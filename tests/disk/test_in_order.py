"""Threads that run ahead: results in order, and no further ahead than allowed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kraftlog.disk.in_order import in_order, streams_in_order


def test_order():
    """The first item takes until the second is done."""
    second = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert second.wait(60)
        if item == 1:
            second.set()
        return item * item

    assert list(in_order(work, range(100), 2)) == [item * item for item in range(100)]


@pytest.mark.parametrize(("threads", "ahead"), [(1, 0), (3, 0), (2, 5)])
def test_no_further_ahead(threads: int, ahead: int):
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for item in range(50):
            taken += 1
            yield item

    for number, result in enumerate(in_order(lambda item: item, items(), threads, ahead=ahead)):
        assert result == number
        assert taken == min(50, number + threads + ahead)


def test_raises_in_its_turn():
    def work(item: int) -> int:
        return 6 // (3 - item)

    results = in_order(work, range(10), 4)
    assert [next(results) for _ in range(3)] == [2, 3, 6]
    with pytest.raises(ZeroDivisionError):
        next(results)


@pytest.mark.parametrize(("threads", "ahead"), [(1, 0), (2, 3), (9, 0)])
def test_items_raise_behind_the_results_before(threads: int, ahead: int):
    def items() -> Iterator[int]:
        yield from range(5)
        raise ConnectionError

    results = in_order(lambda item: item, items(), threads, ahead=ahead)
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(ConnectionError):
        next(results)


def test_a_consumer_that_stops_waits_only_for_what_has_begun():
    begun = []
    gate, first_is_out = threading.Event(), threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        if item == 1:
            first_is_out.set()
            assert gate.wait(60)
        return item

    results = in_order(work, range(100), 1, ahead=50)
    assert next(results) == 0
    assert first_is_out.wait(60)
    threading.Timer(1, gate.set).start()
    results.close()
    assert begun == [0, 1]


def test_streams_in_order():
    """The first stream has its last result when the second is done."""
    second = threading.Event()

    def work(item: int) -> Iterator[tuple[int, int]]:
        for number in range(item % 5):
            if item == 1:
                assert second.wait(60)
            yield item, number
        if item == 2:
            second.set()

    found = streams_in_order(work, range(50), 2, size_of=lambda _: 1, most_bytes=1000)
    assert list(found) == [(item, number) for item in range(50) for number in range(item % 5)]


@pytest.mark.parametrize(("threads", "most_bytes"), [(1, 0), (1, 30), (3, 0), (4, 25)])
def test_bytes_that_wait_are_bounded(threads: int, most_bytes: int):
    """At most so many bytes wait, and one result of each thread, and the one that is looked at."""
    lock, made, taken, most = threading.Lock(), 0, 0, 0

    def work(item: int) -> Iterator[int]:
        nonlocal made, most
        for number in range(20):
            with lock:
                made += 10
                most = max(most, made - taken)
            yield 20 * item + number

    for expected, result in enumerate(
        streams_in_order(work, range(8), threads, size_of=lambda _: 10, most_bytes=most_bytes)
    ):
        assert result == expected
        with lock:
            taken += 10
    assert taken == made == 1600
    assert most <= most_bytes + 10 * threads + 20


def test_streams_raise_in_their_turn():
    def work(item: int) -> Iterator[int]:
        yield item
        if item == 2:
            raise ZeroDivisionError
        yield -item

    results = streams_in_order(work, range(10), 3, size_of=lambda _: 1, most_bytes=1)
    assert [next(results) for _ in range(5)] == [0, 0, 1, -1, 2]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_threads_end_when_nobody_takes_what_they_make():
    before = threading.active_count()
    results = streams_in_order(lambda _: iter(range(1000)), range(10), 4, size_of=lambda _: 1, most_bytes=5)
    assert next(results) == 0
    results.close()
    assert threading.active_count() == before
