"""Pieces of objects that are fetched ahead: the right bytes, each once, in bounded memory, none after the reader."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from time import monotonic, sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.disk import chunk_cache, pieces_ahead
from kraftlog.disk.chunk_cache import ChunkCache
from kraftlog.disk.pieces_ahead import PiecesAhead

DATA = bytes(range(251)) * 4


class Object:
    """Bytes, and the ranges of them that were requested; a gate holds all requests back."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data = data
        self.requests: list[tuple[int, int]] = []
        self.missing_from = len(data)
        self.gate = threading.Event()
        self.gate.set()

    def fill(self, target: memoryview, start: int) -> None:
        end = start + len(target)
        self.requests.append((start, end))
        assert self.gate.wait(60)
        if end > self.missing_from:
            raise OSError(f"bytes {start} to {end} are missing")
        target[:] = self.data[start:end]


@pytest.fixture(autouse=True, scope="module")
def cache() -> Iterator[ChunkCache]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_cache, "CHUNKS", own := ChunkCache())
        yield own


def read(pieces: PiecesAhead, start: int, end: int) -> bytes:
    target = bytearray(end - start)
    count = pieces.read_into(memoryview(target), start)
    return bytes(target[:count])


def eventually(is_true) -> bool:
    until = monotonic() + 30
    while not (found := is_true()) and monotonic() < until:
        sleep(0.01)
    return found


@pytest.fixture
def fetching_threads() -> Callable[[], list[str]]:
    """Threads that have begun since the test did: an iterator of another test, still there, has threads of its own."""
    before = set(threading.enumerate())
    return lambda: [
        thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("kraftlog-fetch")
    ]


@given(st.data())
def test_whatever_is_read_is_right(draws: st.DataObject):
    """Forward, with gaps and back again: bytes that are used up are left to the reader, none is requested twice."""
    start = draws.draw(st.integers(0, len(DATA)))
    end = draws.draw(st.integers(start, len(DATA)))
    piece_bytes = draws.draw(st.integers(1, 300))
    stored = Object()
    readers, count = draws.draw(st.integers(1, 40)), draws.draw(st.integers(0, 12))
    parts = [sorted(draws.draw(st.tuples(*[st.integers(0, len(DATA))] * 2))) for _ in range(count)]
    used_up = 0
    with closing(PiecesAhead(stored.fill, start, end, piece_bytes, readers)) as pieces:
        for low, high in parts:
            found = read(pieces, low, high)
            assert found == DATA[low : low + len(found)]
            if start <= low < end and low >= used_up:
                assert low + len(found) == min(high, end)
            used_up = max(used_up, low + len(found))
    assert len(set(stored.requests)) == len(stored.requests)
    assert all(start <= low < high <= end for low, high in stored.requests)
    assert all(high - low <= piece_bytes + piece_bytes // 16 for low, high in stored.requests)


@given(st.integers(1, 300), st.integers(1, 300))
def test_a_reader_in_order_requests_each_byte_once(piece_bytes: int, window_bytes: int):
    stored = Object()
    pieces = PiecesAhead(stored.fill, 7, len(DATA), piece_bytes)
    windows = [read(pieces, at, min(at + window_bytes, len(DATA))) for at in range(7, len(DATA), window_bytes)]
    pieces.close()
    assert b"".join(windows) == DATA[7:]
    requests = sorted(stored.requests)
    assert requests[0][0] == 7
    assert requests[-1][1] == len(DATA)
    assert all(one[1] == following[0] for one, following in pairwise(requests))


def test_the_next_object_is_requested_before_the_first_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pieces_ahead, "AHEAD_BYTES", 400)
    one, other = Object(), Object()
    first = PiecesAhead(one.fill, 0, 300, 100)
    first.following = second = PiecesAhead(other.fill, 0, 300, 100)
    first.go_ahead()
    assert eventually(lambda: len(one.requests) == 3)
    assert eventually(lambda: len(other.requests) == 3)
    assert read(first, 0, 300) + read(second, 0, 300) == DATA[:300] * 2
    first.close()
    second.close()
    assert len(one.requests) + len(other.requests) == 6


@pytest.mark.parametrize(("readers", "most"), [(1, 8), (2, 4), (100, 1)])
def test_readers_share_what_is_fetched_ahead(monkeypatch: pytest.MonkeyPatch, readers: int, most: int):
    monkeypatch.setattr(pieces_ahead, "AHEAD_BYTES", 80)
    stored = Object()
    pieces = PiecesAhead(stored.fill, 0, len(DATA), 10, readers)
    pieces.go_ahead()
    assert eventually(lambda: len(stored.requests) == most)
    for number in range(20):
        assert read(pieces, 10 * number, 10 * number + 10) == DATA[10 * number :][:10]
        assert eventually(lambda number=number: len(stored.requests) == number + 1 + most)
    pieces.close()


def test_memory_does_not_grow_with_the_number_of_objects(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chunk_cache, "CHUNKS", own := ChunkCache(2000))
    monkeypatch.setattr(chunk_cache, "AHEAD_BYTES", 1000)
    stored = Object()
    all_pieces = [PiecesAhead(stored.fill, 0, 1000, 100) for _ in range(50)]
    for pieces, following in pairwise(all_pieces):
        pieces.following = following
    all_pieces[0].go_ahead()
    assert eventually(lambda: len(stored.requests) == 10)
    for pieces in all_pieces:
        assert read(pieces, 0, 1000) == DATA[:1000]
        pieces.close()
    assert 1000 <= own.peak_bytes <= 2000
    assert own.bytes == 0


def test_an_error_is_raised_where_its_bytes_are_read():
    stored = Object()
    stored.missing_from = 500
    pieces = PiecesAhead(stored.fill, 0, len(DATA), 100)
    assert read(pieces, 0, 100) == DATA[:100]
    assert eventually(lambda: (900, len(DATA)) in stored.requests)  # it failed, and nobody has asked for it
    assert read(pieces, 100, 500) == DATA[100:500]
    for _ in range(2):
        with pytest.raises(OSError, match="bytes 500 to 600 are missing"):
            read(pieces, 500, 600)
    pieces.close()


def test_a_reader_that_stops_cancels_its_requests(cache: ChunkCache, fetching_threads: Callable[[], list[str]]):
    """Requests that have not begun are dropped, the others end by themselves, and the threads with them."""
    stored = Object()
    stored.gate.clear()
    pieces = PiecesAhead(stored.fill, 0, len(DATA), 10)
    pieces.go_ahead()
    assert eventually(lambda: len(stored.requests) == chunk_cache.THREADS)
    assert len(fetching_threads()) == chunk_cache.THREADS
    pieces.close()
    stored.gate.set()
    assert eventually(lambda: not fetching_threads())
    assert len(stored.requests) == chunk_cache.THREADS < len(DATA) // 10
    assert cache.bytes == 0


def test_another_reader_keeps_the_threads(cache: ChunkCache, fetching_threads: Callable[[], list[str]]):
    stored = Object()
    one, other = (PiecesAhead(stored.fill, 0, len(DATA), 100) for _ in range(2))
    assert read(one, 0, 100) == DATA[:100]
    one.close()
    one.close()  # a second time does nothing
    assert fetching_threads()
    assert read(other, 0, len(DATA)) == DATA
    other.close()
    assert eventually(lambda: not fetching_threads())
    assert cache.bytes == 0
