"""The packing plan: against a plain-Python twin, and against what the encoder does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from kraftlog import Encoder, RecordTooLargeError, encode, plan_batches
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.transactions import packing, packing_columns, packing_kernels

HEADER = 61
NO_CAP = 2**31 - 1
DELTAS = (0, 64, 8192)  # the first offset deltas of one, two and three bytes

# edges of the varints of lengths, of whole records and of offset deltas
edges = st.sampled_from([-1, 0, 1, 57, 58, 63, 64, 65, 8180, 8185, 8191, 8192, 8193])
sizes_lists = st.lists(st.one_of(edges, st.integers(-1, 300), st.integers(0, 20_000)), max_size=80)
caps = st.one_of(st.integers(62, 400), st.integers(62, 12_000), st.just(1 << 20))


def varint(number: int) -> int:
    return max(1, -(-(2 * number).bit_length() // 7))


def record_bytes(size: int, offset_delta: int) -> int:
    length = max(size, 0)
    body = 1 + 1 + varint(offset_delta) + 1 + varint(length) + length + 1
    return varint(body) + body


def batch_bytes(sizes: list[int]) -> int:
    return HEADER + sum(record_bytes(size, delta) for delta, size in enumerate(sizes))


def planned(sizes: list[int], cap: int, most: int = NO_CAP) -> list[int] | int:
    """Return the counts of a greedy plan, or the index of a record that fits no batch."""
    counts: list[int] = []
    filled = cap + 1
    for index, size in enumerate(sizes):
        if batch_bytes([size]) > cap:
            return index
        if not counts or counts[-1] == most or filled + record_bytes(size, counts[-1]) > cap:
            counts.append(0)
            filled = HEADER
        filled += record_bytes(size, counts[-1])
        counts[-1] += 1
    return counts


def planned_at_once(sizes: list[int], cap: int, most: int) -> list[int]:
    """Return what ``planned`` does of records that fit, with each size looked up."""
    taken = {(size, width): record_bytes(size, delta) for size in set(sizes) for width, delta in enumerate(DELTAS)}
    counts, filled, count = [], HEADER, 0
    for size in sizes:
        width = (count >= 64) + (count >= 8192)
        if count == most or filled + taken[size, width] > cap:
            counts.append(count)
            filled, count, width = HEADER, 0, 0
        filled += taken[size, width]
        count += 1
    return [*counts, count]


def fewest(sizes: list[int], cap: int) -> int:
    """Return the least number of batches, by trying every end of each batch."""
    least = [0] + [len(sizes) + 1] * len(sizes)
    for begin in range(len(sizes)):
        for end in range(begin + 1, len(sizes) + 1):
            if batch_bytes(sizes[begin:end]) > cap:
                break
            least[end] = min(least[end], least[begin] + 1)
    return least[-1]


def table(sizes: list[int]) -> pa.Table:
    return pa.table({"value": pa.array([None if size < 0 else b"\x05" * size for size in sizes], pa.binary())})


@pytest.fixture(scope="module", params=[packing_columns, packing_kernels], ids=["NumPy", "Numba"])
def planner(request: pytest.FixtureRequest) -> Iterator[None]:
    """Plan with Numba, and as where it is not installed."""
    with patch.object(packing, "_planner", lambda: request.param.plan):
        yield


def batches_of(data: object) -> tuple[list[int], list[int]]:
    headers = list(HeaderScan(data, check_crc=True).headers())
    counts = [int(n) for each in headers for n in each["records_count"]]
    return counts, [int(n) + 12 for each in headers for n in each["batch_length"]]


@pytest.mark.usefixtures("planner")
@settings(max_examples=250, deadline=None)
@given(sizes_lists, caps, st.one_of(st.none(), st.integers(1, 70)), st.sampled_from([np.int32, np.int64]))
def test_plan_is_that_of_the_twin(sizes: list[int], cap: int, most: int | None, dtype: type):
    expected = planned(sizes, cap, most or NO_CAP)
    if isinstance(expected, int):
        size = batch_bytes([sizes[expected]])
        with pytest.raises(RecordTooLargeError, match=f"^record {expected}: .* takes {size} bytes, .* is {cap}$"):
            plan_batches(np.array(sizes, dtype), cap, most)
        return
    assert plan_batches(np.array(sizes, dtype), cap, most).tolist() == expected


@pytest.mark.usefixtures("planner")
@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(edges, st.integers(-1, 200)), max_size=40), caps)
def test_plan_is_within_the_cap_complete_and_shortest(sizes: list[int], cap: int):
    sizes = [size for size in sizes if batch_bytes([size]) <= cap]
    plan = plan_batches(np.array(sizes, np.int64), cap).tolist()
    assert sum(plan) == len(sizes)
    at = 0
    for count in plan:
        assert count > 0
        assert batch_bytes(sizes[at : at + count]) <= cap
        at += count
    assert len(plan) == fewest(sizes, cap)


@settings(max_examples=100, deadline=None)
@given(sizes_lists, caps, st.one_of(st.none(), st.integers(1, 70)))
def test_encoder_packs_as_planned(sizes: list[int], cap: int, most: int | None):
    sizes = [size for size in sizes if batch_bytes([size]) <= cap]
    plan = plan_batches(np.array(sizes, np.int64), cap, most)
    greedy = encode(table(sizes), max_batch_bytes=cap, max_batch_records=most)
    counts, lengths = batches_of(greedy)
    assert counts == plan.tolist()
    at = 0
    for count, length in zip(counts, lengths, strict=True):
        assert batch_bytes(sizes[at : at + count]) == length
        at += count
    assert encode(table(sizes), max_batch_bytes=cap, batch_records=plan) == greedy


@pytest.mark.usefixtures("planner")
def test_long_batches_cross_every_width_of_offset_deltas():
    for most in (64, 8192, NO_CAP):
        for cap in (1 << 17, 1 << 20):
            sizes = [3] * 12_000
            plan = plan_batches(np.full(12_000, 3, np.int32), cap, most)
            assert plan.tolist() == planned(sizes, cap, most)
            assert batches_of(encode(table(sizes), max_batch_bytes=cap, max_batch_records=most))[0] == plan.tolist()


@pytest.mark.usefixtures("planner")
@pytest.mark.parametrize("seed", range(6))
def test_plans_of_many_records(seed: int):
    """Batches begin at any record and end at any width of an offset delta, with records of one size and of many."""
    drawn = np.random.default_rng(seed)
    largest = int(drawn.choice([1, 9, 70, 300, 9000]))
    sizes = drawn.integers(-1, largest, 9_000) if seed % 3 else np.full(9_000, largest - 1)
    for cap in (HEADER + largest + 12, 8192 + HEADER + largest, 1 << 20):
        for most in (1, 64, 65, 8192, 8193, NO_CAP):
            found = plan_batches(sizes.astype(drawn.choice([np.int32, np.int64])), cap, most).tolist()
            assert found == planned_at_once(sizes.tolist(), cap, most)


def test_encoder_follows_any_plan_that_fits():
    rows = table([10] * 9)
    for plan in ([9], [1] * 9, [4, 5], [2, 3, 4], np.array([8, 1], np.int32)):
        data = encode(rows, batch_records=plan)
        assert batches_of(data)[0] == list(plan)
        assert kraftlog.decode(data, columns=["value"]).to_table()["value"] == rows["value"]
    assert batches_of(encode(rows, batch_records=[4, 100]))[0] == [4, 5]
    streamed = Encoder(batch_records=[2, 7])
    for batch in rows.to_batches(max_chunksize=1):
        streamed.write(batch)
    assert batches_of(streamed.finish())[0] == [2, 7]


def test_plans_that_do_not_fit_are_refused():
    rows = table([100] * 9)
    with pytest.raises(
        RecordTooLargeError, match=r"record 3: with it the batch of 4 records that is planned takes 4\d\d"
    ):
        encode(rows, batch_records=[9], max_batch_bytes=400)
    with pytest.raises(ValueError, match="plans 5 records, but there are more"):
        encode(rows, batch_records=[2, 3])
    for bad in ([0], [-1], [1.5], [[1]], [2**31]):
        with pytest.raises(ValueError, match="batch_records is not a list of numbers"):
            encode(rows, batch_records=bad)
    with pytest.raises(ValueError, match="give either"):
        encode(rows, batch_records=[9], max_batch_records=2)


@pytest.mark.usefixtures("planner")
def test_arguments():
    assert plan_batches([]).tolist() == []
    assert plan_batches(np.array([4000, 4000, 100, 8000], np.uint16)).tolist() == [3, 1]
    assert plan_batches(np.arange(20)[::2]).tolist() == [10]
    read_only = np.zeros(5, np.int64)
    read_only.flags.writeable = False
    assert plan_batches(read_only).tolist() == [5]
    with pytest.raises(RecordTooLargeError, match="record 1: "):
        plan_batches([1, 2**63 - 1])
    with pytest.raises(ValueError, match="record 2: size -2 is less than -1"):
        plan_batches([0, 0, -2])
    for bad in ([1.5], [[1]], np.array([1], np.uint64)):
        with pytest.raises(ValueError, match="sizes are not a list of integers"):
            plan_batches(bad)
    for cap in (61, 2**31):
        with pytest.raises(ValueError, match="max_batch_bytes"):
            plan_batches([1], cap)
    with pytest.raises(ValueError, match="max_batch_records"):
        plan_batches([1], max_batch_records=0)


def test_a_kernel_without_a_place_for_its_code():
    """Code that is in no file has none, as code in a folder that nobody may write to."""
    source = "def total(values):\n    found = 0\n    for value in values:\n        found += value\n    return found\n"
    names: dict[str, Any] = {}
    exec(compile(source, "<nowhere>", "exec"), names)
    with pytest.raises(RuntimeError, match="cannot cache function"):
        numba.njit(cache=True)(names["total"])
    assert packing_kernels.compiled(names["total"])(np.arange(5)) == 10


def test_numba_is_not_imported_before_it_is_needed():
    code = "import kraftlog, sys; assert 'numba' not in sys.modules; print(kraftlog.plan_batches([1, 2]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[2]\n", done.stderr
