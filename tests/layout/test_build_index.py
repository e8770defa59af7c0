"""Index files that are built equal those that Kafka wrote, byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_files import GOLDEN
from golden_indexes import RESTARTED, file_name, interval_of
from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import disk
from kraftlog.layout.build_index import IndexBuilder
from kraftlog.layout.index_files import ENTRY_TYPES

SEGMENTS = sorted(path for path in GOLDEN.glob("*/log/*/*.log") if path.with_suffix(".timeindex").exists())


def built(segment: Path, at_once: int) -> dict[str, bytes]:
    builder = IndexBuilder(int(segment.stem), interval_of(segment.parts[len(GOLDEN.parts)], segment.parent.name))
    for headers in HeaderScan(disk().open(segment)).headers(at_once):
        builder.add(headers)
    return {"index": builder.index(), "timeindex": builder.timeindex()}


def trimmed(data: bytes, kind: str) -> bytes:
    """Return a preallocated file as far as it is used."""
    size = ENTRY_TYPES[kind].itemsize
    return data[: -(-len(data.rstrip(b"\0")) // size) * size]


@pytest.mark.parametrize("at_once", [1, 3, 1 << 16])
@pytest.mark.parametrize("segment", [s for s in SEGMENTS if "gone" not in str(s)], ids=file_name)
def test_equals_kafka(segment: Path, at_once: int):
    for kind, data in built(segment, at_once).items():
        file = segment.with_suffix(f".{kind}")
        there = file.read_bytes()
        if file_name(file) in RESTARTED:
            assert data != there
            continue
        if there.endswith(bytes(100)):  # in use when it was copied: the entry of its end was still to come
            there = trimmed(there, kind)
            data = data[: len(there)] if kind == "timeindex" else data
        assert data == there


def test_enough_was_compared():
    assert len(SEGMENTS) > 75
    assert sum(len(built(segment, 1 << 16)["index"]) for segment in SEGMENTS if "gone" not in str(segment)) > 1500


def batches(sizes: list[int], timestamps: list[int]) -> np.ndarray:
    headers = np.zeros(len(sizes), HEADER_DTYPE)
    headers["batch_length"] = np.array(sizes) - 12
    headers["position"] = np.cumsum([0, *sizes[:-1]])
    headers["base_offset"] = np.arange(len(sizes)) * 2 + 100
    headers["last_offset_delta"] = 1
    headers["max_timestamp"] = timestamps
    return headers


def by_the_book(headers: np.ndarray, base_offset: int, interval: int) -> tuple[list[tuple[int, int]], ...]:
    """LogSegment.recover, a batch at a time."""
    index, times = [], []
    largest, holder, since, last_time = -1, base_offset, 0, -1

    def maybe_append() -> None:
        nonlocal last_time
        if largest > last_time:
            times.append((largest, holder - base_offset))
            last_time = largest

    for header in headers:
        last = int(header["base_offset"]) + int(header["last_offset_delta"])
        if header["max_timestamp"] > largest:
            largest, holder = int(header["max_timestamp"]), last
        if since > interval:
            index.append((last - base_offset, int(header["position"])))
            maybe_append()
            since = 0
        since += int(header["batch_length"]) + 12
    maybe_append()
    return index, times


@given(
    st.lists(st.tuples(st.integers(61, 400), st.integers(-2, 30)), min_size=1, max_size=60),
    st.integers(0, 700),
    st.lists(st.integers(0, 60), max_size=4),
)
def test_equals_a_plain_loop(rows: list[tuple[int, int]], interval: int, cuts: list[int]):
    headers = batches([size for size, _ in rows], [stamp for _, stamp in rows])
    builder = IndexBuilder(90, interval)
    for part in np.split(headers, sorted(min(cut, len(headers)) for cut in cuts)):
        builder.add(part)
        builder.timeindex()  # looking changes nothing
    index = np.frombuffer(builder.index(), ENTRY_TYPES["index"]).tolist()
    times = np.frombuffer(builder.timeindex(), ENTRY_TYPES["timeindex"]).tolist()
    assert (index, times) == by_the_book(headers, 90, interval)


def test_offsets_too_far_apart():
    headers = batches([100, 100], [1, 2])
    builder = IndexBuilder(101)
    with pytest.raises(ValueError, match="batch at byte 0: last offset 101"):
        IndexBuilder(102).add(headers)
    headers["base_offset"][1] = 101 + 2**31
    with pytest.raises(ValueError, match=f"batch at byte 100: last offset {102 + 2**31} is not between .* 101 and"):
        builder.add(headers)
    headers["base_offset"][1] -= 2
    builder.add(headers)


def test_offsets_that_do_not_rise():
    """Kafka's index refuses them as well."""
    headers = batches([100, 100, 100], [1, 2, 3])
    headers["base_offset"] = [100, 200, 200]
    with pytest.raises(ValueError, match="batch at byte 200: last offset 201 is not larger than 201"):
        IndexBuilder(100, 50).add(headers)
    builder = IndexBuilder(100, 50)
    builder.add(headers[:2])
    with pytest.raises(ValueError, match="that of the index entry before"):
        builder.add(headers[2:])
    IndexBuilder(100, 150).add(headers)
