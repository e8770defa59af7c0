"""Chunks that are fetched ahead: what they take is counted, bounded, and given back, whatever readers do."""

from __future__ import annotations

import os
import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, Lock

import pytest
from backports import zstd
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kraftlog.codec.compression import Decompressor
from kraftlog.disk import chunk_cache, part_file
from kraftlog.disk.chunk_cache import ChunkCache, Group
from kraftlog.disk.disk import disk
from kraftlog.disk.part_path import Chunks, PartPath

LAYOUTS = ("aes", "zstd", "zstd-aes")


def stored(folder: Path, layout: str, data: bytes, size: int) -> PartPath:
    """Write an object as Aiven's plugin does, and return the path of the file in it."""
    key, aad, parts = (os.urandom(32) if "aes" in layout else None), os.urandom(32), []
    for at in range(0, len(data), size):
        part = zstd.compress(data[at : at + size]) if "zstd" in layout else data[at : at + size]
        if key is not None:
            nonce = os.urandom(12)
            part = nonce + AESGCM(key).encrypt(nonce, part, aad)
        parts.append(part)
    path = folder / f"{layout}.log"
    path.write_bytes(b"".join(parts))
    chunks = Chunks(size, len(data), tuple(map(len, parts)), "zstd" in layout, key, aad)
    return PartPath.of(path, end=len(data), chunks=chunks)


def half_compressible(size: int) -> bytes:
    chance = random.Random(size)
    return b"".join(chance.randbytes(512) + bytes(512) for _ in range(size // 1024))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_of_readers_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str):
    """Four readers, in windows of other sizes than chunks: all bytes are right, and no more than the bound is held."""
    most = 12 * 4096
    monkeypatch.setattr(part_file, "CHUNKS", cache := ChunkCache(most))
    monkeypatch.setattr(part_file, "READ_BYTES", 8192)
    monkeypatch.setattr(part_file.PartFile, "window_bytes", 20_000)
    data = half_compressible(1 << 20)
    path = stored(tmp_path, layout, data, 4096)

    def read(seed: int) -> None:
        chance, at, file = random.Random(seed), 0, disk().open(path)
        while at < len(data):
            size = min(chance.choice([100, 5000, 20_000, 40_000]), len(data) - at)
            assert file.read(at, at + size) == data[at : at + size]
            at += size
        file.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(4)))
    assert most // 2 < cache.peak_bytes <= most
    assert cache.bytes <= cache.peak_bytes


def test_memory_that_python_allocates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is counted is what is allocated: the peak that tracemalloc sees is not above it."""
    most, size = 12 << 20, 1 << 20
    monkeypatch.setattr(part_file, "CHUNKS", cache := ChunkCache(most))
    monkeypatch.setattr(part_file.PartFile, "window_bytes", 4 << 20)
    data = half_compressible(48 << 20)
    path = stored(tmp_path, "zstd-aes", data, size)
    target = memoryview(bytearray(4 << 20))
    file = disk().open(path)
    tracemalloc.start()
    try:
        for at in range(0, len(data), len(target)):
            file.read_into(target, at)
            assert target == data[at : at + len(target)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        file.close()
    assert peak <= most + (1 << 20)  # and what is no chunk
    assert cache.peak_bytes <= most
    assert peak >= 4 * size  # it was looked at


@pytest.mark.parametrize("layout", LAYOUTS)
def test_chunks_that_are_larger_than_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str):
    """They are read one at a time."""
    monkeypatch.setattr(part_file, "CHUNKS", cache := ChunkCache(1000))
    monkeypatch.setattr(part_file, "READ_BYTES", 1)
    data = half_compressible(1 << 17)
    path = stored(tmp_path, layout, data, 1 << 14)
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(lambda _: disk().read_bytes(path), range(3)):
            assert found == data
    assert cache.peak_bytes <= 4 * ((1 << 14) + 100)  # stored, decrypted, decompressed, and as a copy


def group(key: int, size: int = 10, *, fails: bool = False) -> Group:
    def fetch() -> list[bytes]:
        if fails:
            raise OSError("lost")
        return [bytes([key]) * size]

    return Group([key], [size], size, 0, fetch)


def test_what_fails_is_given_back():
    cache = ChunkCache(100)
    for key in range(20):
        chunk = cache.take(group(key, 60, fails=True))
        with pytest.raises(OSError, match="lost"):
            chunk.data()
        cache.release(chunk, is_done=True)
        assert cache.bytes == 0
    chunk = cache.take(group(1, 60))
    assert chunk.data() == b"\x01" * 60
    cache.release(chunk, is_done=False)
    assert (cache.bytes, cache.has(1)) == (60, True)
    cache.release(cache.take(group(1, 60, fails=True)), is_done=True)  # it is there
    assert (cache.bytes, cache.has(1)) == (0, False)


def test_decompressors_of_two_at_once(monkeypatch: pytest.MonkeyPatch):
    """What they leave takes none of the room that a group on its way has reserved."""
    monkeypatch.setattr(chunk_cache, "UNDOING_AT_ONCE", 2)
    cache, both, may_go_on = ChunkCache(850), Barrier(2, timeout=60), Event()

    def fetch() -> list[bytes]:
        assert may_go_on.wait(60)
        return cache.undo(lambda _: [bytes(50)], 700, 300)

    chunk = cache.take(Group([1], [50], 50, 700, fetch))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: cache.undo(lambda _: [str(both.wait()).encode()], 400, 300), range(2)))
    assert cache.bytes == 50 + 2 * 300
    may_go_on.set()
    assert chunk.data() == bytes(50)
    assert cache.peak_bytes == 850


def test_readers_of_one_chunk():
    cache = ChunkCache(100)
    first, second = cache.take(group(1)), cache.take(group(1))
    assert first is second
    cache.release(first, is_done=True)
    assert second.data() == b"\x01" * 10
    cache.release(second, is_done=False)
    assert (cache.bytes, cache.has(1)) == (0, False)


def test_what_nobody_reads_makes_room():
    cache = ChunkCache(100)
    assert cache.fetch(group(0, 40), is_ahead=True)
    assert cache.fetch(group(1, 40), is_ahead=True)
    assert not cache.fetch(group(2, 40), is_ahead=True)
    chunk = cache.take(group(3, 90))  # waits until the others have come, and drops them
    assert chunk.data() == b"\x03" * 90
    assert not cache.has(0)
    assert not cache.has(1)
    assert not cache.fetch(group(4, 20))
    cache.release(chunk, is_done=False)
    assert cache.fetch(group(4, 20))
    assert cache.peak_bytes <= 100


def test_threads_at_random():
    """Whatever is taken, fetched ahead, dropped or fails: the bound is kept, and all is counted back."""
    most = 500
    cache, lock, held = ChunkCache(most), Lock(), [0, 0]

    def fetched(key: int, size: int) -> Group:
        def work(_: Decompressor) -> list[bytes]:
            with lock:
                held[0] += size
                held[1] = max(held)
            found = bytes([key]) * size
            with lock:
                held[0] -= size
            return [found]

        def fetch() -> list[bytes]:
            if key % 7 == 0:
                raise OSError("lost")
            with cache.room_for_stored(size) as data:
                assert len(data) == size
                return cache.undo(work, size, 0)

        return Group([key], [size], size, size, fetch)

    def reader(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(200):
            key = chance.randrange(40)
            size = 20 + key
            if chance.random() < 0.5:
                other = chance.randrange(40)
                cache.fetch(fetched(other, 20 + other), is_ahead=True)
            chunk = cache.take(fetched(key, size))
            try:
                assert chunk.data() == bytes([key]) * size
            except OSError:
                assert key % 7 == 0
            finally:
                cache.release(chunk, is_done=chance.random() < 0.5)
            cache.trim()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(reader, range(8)))
    assert cache.peak_bytes <= most
    assert held[1] <= most
    with ThreadPoolExecutor(1) as pool:  # there is room for all that there may be: nothing was forgotten
        chunk = pool.submit(cache.take, group(99, most)).result(timeout=60)
        assert chunk.data() == b"\x63" * most
    cache.release(chunk, is_done=True)
    assert cache.bytes == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_process_that_was_forked(tmp_path: Path):
    """Threads that fetch are not in it: it begins anew."""
    data = half_compressible(1 << 16)
    path = stored(tmp_path, "zstd-aes", data, 4096)
    assert disk().read_bytes(path) == data
    child = os.fork()
    if not child:
        os._exit(0 if disk().read_bytes(path) == data else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_bound():
    """Chunks, with a window of the file, leave room below the 256 MiB that a reader may take."""
    assert chunk_cache.MOST_BYTES + part_file.WINDOW_BYTES <= 160 << 20
