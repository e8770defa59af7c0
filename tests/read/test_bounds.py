"""Bounds of offset and timestamp: the same rows with indexes, without them, and with indexes that lie."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.layout.discover import discover
from kraftlog.read.seek import seek

PARTITION = GOLDEN / "codecs" / "log" / "codec-mixed-0"
ROWS = kraftlog.open(PARTITION).records(["offset", "timestamp_ms"]).to_table().to_pylist()
OFFSETS = [row["offset"] for row in ROWS]
STAMPS = sorted(row["timestamp_ms"] for row in ROWS)


def read(folder: Path, **bounds: Any) -> list[int]:
    return kraftlog.open(folder).records(["offset"], **bounds).to_table()["offset"].to_pylist()


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.integers(-2, OFFSETS[-1] + 3), st.integers(-2, OFFSETS[-1] + 3))
def test_offsets(start: int, end: int):
    if start < 0 or end < start:
        with pytest.raises(ValueError, match=r"is negative|is after the end offset"):
            read(PARTITION, start_offset=start, end_offset=end)
        return
    expected = [offset for offset in OFFSETS if start <= offset < end]
    assert read(PARTITION, start_offset=start, end_offset=end) == expected


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.sampled_from(STAMPS), st.sampled_from(STAMPS), st.integers(-1, 1))
def test_timestamps(start: int, end: int, shift: int):
    if start + shift > end:
        with pytest.raises(ValueError, match="is after the end time"):
            read(PARTITION, start_timestamp=start + shift, end_timestamp=end)
        return
    expected = [row["offset"] for row in ROWS if start + shift <= row["timestamp_ms"] < end]
    assert read(PARTITION, start_timestamp=start + shift, end_timestamp=end) == expected


def test_every_golden_partition():
    """Each partition with index files, cut at its middle, is what lies before and what lies behind."""
    folders = {path.parent for path in GOLDEN.glob("**/*.index") if not {"damaged", "tier"} & {*path.parts}}
    assert len(folders) > 30
    for folder in folders:
        offsets = read(folder)
        if offsets:
            middle = offsets[len(offsets) // 2]
            assert read(folder, end_offset=middle) + read(folder, start_offset=middle) == offsets, folder


def copied(tmp_path: Path) -> Path:
    folder = tmp_path / "codec-mixed-0"
    shutil.copytree(PARTITION, folder)
    return folder


@pytest.mark.parametrize("lie", ["missing", "shifted", "beyond", "zeros", "wrong_time"])
def test_indexes_that_lie(tmp_path: Path, lie: str):
    folder = copied(tmp_path)
    for index in [*folder.glob("*.index"), *folder.glob("*.timeindex")]:
        is_time = index.suffix == ".timeindex"
        entry = struct.Struct(">qi" if is_time else ">ii")
        entries = list(entry.iter_unpack(index.read_bytes()))
        if lie == "missing":
            index.unlink()
            continue
        if lie == "shifted" and not is_time:
            entries = [(offset, position + 13) for offset, position in entries]
        if lie == "beyond" and not is_time:
            entries = [(offset + 40, position) for offset, position in entries]
        if lie == "zeros":
            entries = [(0, 0)] * len(entries)
        if lie == "wrong_time" and is_time:
            entries = [(stamp - 10**9, offset + 30) for stamp, offset in entries]
        index.write_bytes(b"".join(entry.pack(*values) for values in entries))
    for start in OFFSETS[::37]:
        assert read(folder, start_offset=start, end_offset=start + 50) == [
            o for o in OFFSETS if start <= o < start + 50
        ]
    for stamp in STAMPS[::37]:
        expected = [row["offset"] for row in ROWS if row["timestamp_ms"] >= stamp]
        assert read(folder, start_timestamp=stamp) == expected


def test_seek_uses_the_indexes():
    segment = discover(GOLDEN / "codecs" / "log" / "codec-none-0").segments[0]
    buffer = disk().open(segment.path)
    start, end = seek(segment, buffer, ReadOptions(start_offset=60, end_offset=100))
    assert 0 < start < end < segment.size
    headers = kraftlog.open(segment.path).batches(["position", "base_offset", "last_offset"]).to_pylist()
    first = next(row for row in headers if row["last_offset"] >= 60)
    assert start <= first["position"]
    assert seek(segment, buffer, ReadOptions()) == (0, NO_BOUND)


def test_seek_by_time():
    segment = discover(GOLDEN / "codecs" / "log" / "codec-appendtime-0").segments[0]
    stamps = np.array(kraftlog.open(segment.path).batches(["max_timestamp_ms"])["max_timestamp_ms"])
    start, _ = seek(segment, disk().open(segment.path), ReadOptions(start_timestamp=int(stamps[-1])))
    assert start > 0
