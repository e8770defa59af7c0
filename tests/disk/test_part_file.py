"""Parts of objects that end early: no byte is made up, and the error says from where on the part cannot be read."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import disk
from kraftlog.disk.part_path import PartPath
from kraftlog.errors import InputError

BEFORE = 1000  # bytes of an object before a part


@pytest.fixture
def batches() -> bytes:
    rows = pa.table({"value": [f"{number}".encode() * 50 for number in range(300)]})
    return kraftlog.encode(rows, max_batch_bytes=2000, timestamp_ms=0).to_pybytes()


@pytest.mark.parametrize("missing", [1, 500, 5000])
@pytest.mark.parametrize("start", [0, 4000])
def test_the_position_of_an_error_is_in_the_part(tmp_path: Path, batches: bytes, missing: int, start: int):
    stored = tmp_path / "object"
    stored.write_bytes(bytes(BEFORE) + batches[:-missing])
    path = PartPath.of(stored, BEFORE, end=len(batches))
    if start:
        path = PartPath.of(path, start=start, end=len(batches))
    readable = len(batches) - missing - start
    file = disk().open(path)
    assert file.read(0, readable) == batches[start : len(batches) - missing]
    for at in (0, 3, readable):
        with pytest.raises(InputError) as caught:
            file.read(at, len(batches) - start)
        assert caught.value.position == readable


class Lying:
    """Has batches, and fails for the last byte with a position that cannot be."""

    def __init__(self, batches: bytes, position: Any) -> None:
        self.size, self._batches, self._position = len(batches), batches, position

    def read_into(self, target: memoryview, start: int) -> None:
        if start + len(target) < self.size:
            target[:] = self._batches[start : start + len(target)]
            return
        target[:] = bytes(len(target))
        raise InputError(OSError(errno.EIO, "Input/output error"), self._position)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("position", [-1, 10**9, None])
def test_an_impossible_position_gives_no_bytes(batches: bytes, position: Any):
    scan = HeaderScan(Lying(batches, position), check_crc=True)
    found = []
    with pytest.raises(InputError):
        found.extend(scan.headers())
    assert scan.faults == []
    assert all((headers["crc_ok"] == 1).all() for headers in found)
