"""Threads that run ahead: results in order, and no further ahead than allowed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kraftlog.disk.in_order import in_order


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


def test_whoever_stops_waits_only_for_what_has_begun():
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
