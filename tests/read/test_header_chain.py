"""The walk along the headers of a file comes to the same batches as a walk in plain Python over all its bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog._native.header_chain import HeaderChain

LEAST_LENGTH = {0: 14, 1: 22, 2: 49}
FILES = sorted(GOLDEN.rglob("*.log"))


def chain(data: bytes, start: int, end: int) -> Iterator[int]:
    """Return where the batches of an unbroken chain of plausible headers start."""
    before = None
    position = start
    while position < min(end, len(data)) and len(data) - position >= 17:
        base_offset, length = struct.unpack_from(">qi", data, position)
        magic = data[position + 16]
        if magic > 2 or length < LEAST_LENGTH[magic] or length > len(data) - position - 12 or base_offset < 0:
            return
        if magic == 2:
            attributes, last_offset_delta = struct.unpack_from(">Hi", data, position + 21)
            (records_count,) = struct.unpack_from(">i", data, position + 57)
            if attributes > 0x7F or attributes & 7 > 4 or last_offset_delta < 0 or records_count < 0:
                return
        elif data[position + 17] > 0x0F or data[position + 17] & 7 > 3:
            return
        if before is not None and not before <= base_offset < before + 2**31:
            return
        yield position
        before = base_offset
        position += 12 + length


def walked(path: Path, start: int, end: int, step: int) -> list[int]:
    """Return where a walk in steps of so many bytes at least stops."""
    found = []
    with path.open("rb") as file:
        walk = HeaderChain(file.fileno(), path.stat().st_size, start, end)
        at = walk.next_batch(start)
        while at is not None:
            found.append(at)
            at = walk.next_batch(at + step)
    return found


def in_steps(positions: list[int], step: int) -> list[int]:
    """Return the first position, and after each the next one that is so many bytes further."""
    found: list[int] = []
    for position in positions:
        if not found or position >= found[-1] + step:
            found.append(position)
    return found


@pytest.fixture(scope="module")
def mixed() -> bytes:
    """Return batches of some hundred bytes and of some pages, in turns."""
    sizes = [10, 9000, 20, 30, 4000, 4100, 50, 70_000, *([100] * 60), 5000]
    data = bytearray()
    for offset, size in enumerate(sizes):
        data += kraftlog.encode(pa.table({"value": [b"v" * size]}), base_offset=offset)
    return bytes(data)


def test_there_are_files():
    assert len(FILES) > 100


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_golden_and_damaged(path: Path):
    expected = list(chain(path.read_bytes(), 0, 2**62))
    for step in (1, 700, 5000):
        assert walked(path, 0, 2**62, step) == in_steps(expected, step)


def test_mixed_sizes(tmp_path: Path, mixed: bytes):
    path = tmp_path / "mixed"
    path.write_bytes(mixed)
    expected = list(chain(mixed, 0, len(mixed)))
    assert len(expected) == 69
    for start in (0, 1, 2, 9):
        for end in (len(expected) - 1, 5, 2):
            of_walk = walked(path, expected[start], expected[end], 1)
            assert of_walk == expected[start:end], (start, end)


def test_damage(tmp_path: Path, mixed: bytes):
    chance = random.Random(7)
    path = tmp_path / "damaged"
    broken = 0
    for _ in range(400):
        positions = list(chain(mixed, 0, len(mixed)))
        data = bytearray(mixed[: chance.choice([len(mixed), chance.randrange(len(mixed))])])
        at = chance.choice(positions) + chance.randrange(61)
        if at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        expected = list(chain(bytes(data), 0, len(data)))
        broken += len(expected) < len(positions)
        assert walked(path, 0, len(data), 1) == expected
    assert broken > 100


def test_a_file_that_has_become_shorter(tmp_path: Path, mixed: bytes):
    path = tmp_path / "shorter"
    path.write_bytes(mixed[: len(mixed) - 5000])
    with path.open("rb") as file:
        walk = HeaderChain(file.fileno(), len(mixed), 0, len(mixed))
        whole = [position for position in chain(mixed, 0, len(mixed)) if position <= len(mixed) - 5000 - 61 - 45]
        assert [walk.next_batch(position) for position in whole] == whole
        assert walk.next_batch(len(mixed) - 5000) is None
