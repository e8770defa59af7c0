"""A segment in a remote tier, read chunk by chunk, beside plain reads of ranges of the same object."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from backports import zstd
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import corpus
import range_server
from kraftlog.disk import chunk_cache, part_file
from kraftlog.disk.disk import disk
from kraftlog.disk.in_order import READS_AT_ONCE
from kraftlog.disk.part_path import Chunks, PartPath
from kraftlog.disk.remote_files import READ_BYTES, WINDOW_BYTES
from kraftlog.disk.remote_path import RemotePath
from material import Material
from rounds import Contender

LATENCY = 0.05
CHUNK_BYTES = 4 << 20  # Aiven's default
RANGES, TIER = "ranges of the object, {}", "chunks of the tier, {}"
LAYOUTS = ("AES", "zstd and AES")


def tier(megabytes: float) -> list[Contender]:
    """Read an object that answers each request after 50 ms: as it is, and as the file that it holds."""
    folder = Path(tempfile.mkdtemp(prefix="kraftlog-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    m = Material(corpus.Workload(1000, 64), megabytes)
    paths = {layout: _write(folder, layout, m.path.read_bytes()) for layout in LAYOUTS}
    options = range_server.serve(folder, LATENCY)
    found = []
    for layout, (key, chunks) in paths.items():
        path, size = RemotePath.parse(f"s3://bucket/{key}", options), sum(chunks.stored_sizes)
        part = PartPath.of(path, end=chunks.file_size, chunks=chunks)
        for name, run in ((RANGES, _ranges(path)), (TIER, _windows(part))):
            found.append(Contender(name.format(layout), run, size, size, cpu_clock=None))
    return found


def _write(folder: Path, layout: str, data: bytes) -> tuple[str, Chunks]:
    """Write an object as Aiven's plugin does, and return its key and how it is cut."""
    key, aad, stored = os.urandom(32), os.urandom(32), []
    is_compressed = "zstd" in layout
    for at in range(0, len(data), CHUNK_BYTES):
        chunk, nonce = data[at : at + CHUNK_BYTES], os.urandom(12)
        plain = zstd.compress(chunk) if is_compressed else chunk
        stored.append(nonce + AESGCM(key).encrypt(nonce, plain, aad))
    name = layout.replace(" ", "-")
    (folder / name).write_bytes(b"".join(stored))
    return name, Chunks(CHUNK_BYTES, len(data), tuple(map(len, stored)), is_compressed, key, aad)


def _ranges(path: RemotePath):
    """Return what reads an object by ranges, as many at the same time as readers of a tier ask for."""

    def run() -> None:
        file = disk().open(path)

        def piece(at: int) -> int:
            return len(file.read(at, min(at + READ_BYTES, file.size)))

        with ThreadPoolExecutor(READS_AT_ONCE) as pool:
            assert sum(pool.map(piece, range(0, file.size, READ_BYTES))) == file.size

    return run


def _windows(path: PartPath):
    """Return what reads the file in an object as decoders do: one window after the other."""

    def run() -> None:
        part_file.CHUNKS = chunk_cache.ChunkCache()
        file = disk().open(path)
        target = memoryview(bytearray(WINDOW_BYTES))
        for at in range(0, file.size, WINDOW_BYTES):
            file.read_into(target[: min(WINDOW_BYTES, file.size - at)], at)
        file.close()

    return run
