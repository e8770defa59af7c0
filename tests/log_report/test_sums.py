"""Counts that are kept in bounded memory: of transactions, of times, and of faults."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import Fault
from kraftlog.log_report.drawings import COLUMNS, columns
from kraftlog.log_report.fault_counts import BINS, EXAMPLES, PLACES, FaultCounts, SegmentDamage
from kraftlog.log_report.transaction_sums import LAST_ABORTED, LONGEST, MOST_BINS, OPEN_KEPT, TimeBins, TransactionSums
from kraftlog.transactions.producer import TRANSACTION_DTYPE

ENDED = st.tuples(st.integers(0, 4_000_000_000_000), st.booleans())
STATES = ("aborted", "committed", "open")


@given(st.lists(st.lists(ENDED, min_size=1, max_size=40), max_size=12), st.integers(0, 11))
def test_bins_of_time_lose_nothing(parts: list[list[tuple[int, bool]]], cut: int):
    bins = [TimeBins(), TimeBins()]
    for number, part in enumerate(parts):
        stamps, aborted = np.array([at for at, _ in part], np.int64), np.array([bad for _, bad in part], bool)
        bins[number >= cut].add(stamps, aborted)
    whole, other = bins
    whole.join(other)
    every = [one for part in parts for one in part]
    expected: dict[int, list[int]] = {}
    for at, is_aborted in every:
        expected.setdefault(at // whole.width, [0, 0])[is_aborted] += 1
    assert {at: list(counts) for at, counts in whole.counts.items()} == expected
    assert len(whole.counts) <= MOST_BINS
    drawn = columns(whole)
    if drawn is None:
        assert not every
        return
    assert len(drawn.counts) <= COLUMNS
    assert sum(map(sum, drawn.counts)) == len(every)
    assert all(drawn.start <= at < drawn.end for at, _ in every)


def test_bins_become_wider_where_there_are_too_many():
    bins = TimeBins()
    stamps = np.arange(0, 5_000_000, 1000)
    bins.add(stamps, np.zeros(len(stamps), bool))
    assert (bins.width, len(bins.counts)) == (16_000, 313)


def transactions(rows: list[tuple[int, str, int]]) -> np.ndarray:
    """Return transactions of a start, a state and a duration."""
    found = np.zeros(len(rows), TRANSACTION_DTYPE)
    for at, (start, state, span) in enumerate(rows):
        found["first_offset"][at] = found["last_offset"][at] = at
        found["start_timestamp"][at], found["state"][at] = start, STATES.index(state)
        found["end_timestamp"][at] = -1 if state == "open" else start + span
        found["last_timestamp"][at] = start + span
    return found


ROW = st.tuples(st.integers(0, 10**12), st.sampled_from(STATES), st.integers(0, 10**6))


@given(st.lists(st.lists(ROW, max_size=30), max_size=8), st.integers(0, 8))
def test_transactions(parts: list[list[tuple[int, str, int]]], cut: int):
    sums = [TransactionSums(), TransactionSums()]
    for number, part in enumerate(parts):
        sums[number >= cut].add("orders", number, transactions(part))
    whole, other = sums
    whole.join(other)
    every = [row for part in parts for row in part]
    assert {state: count for state, count in whole.counts.items() if count} == Counter(state for _, state, _ in every)
    spans = sorted((span for _, state, span in every if state != "open"), reverse=True)
    assert [one.duration for one in whole.longest] == spans[:LONGEST]
    ends = sorted((start + span for start, state, span in every if state == "aborted"), reverse=True)
    assert sorted((one.end_timestamp for one in whole.aborted), reverse=True)[:1] == ends[:1]
    assert len(whole.aborted) == min(len(ends), LAST_ABORTED)
    assert len(whole.open) == min(sum(state == "open" for _, state, _ in every), OPEN_KEPT)


def fault(position: int | None, size: int | None, error: str = "bad_crc", partition: int = 0) -> Fault:
    return Fault(error, "it", position, size, topic="t", partition=partition, segment_base_offset=0)


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 400)), max_size=20), st.integers(1, 3000))
def test_the_map_of_a_segment(found: list[tuple[int, int]], size: int):
    damage = SegmentDamage(size)
    stretches = [(at % size, min(length, size - at % size)) for at, length in found]
    for position, length in stretches:
        damage.add(fault(position, length))
    expected = [
        any(at < (bin_ + 1) * size / BINS and bin_ * size / BINS < at + max(length, 1) for at, length in stretches)
        for bin_ in range(BINS)
    ]
    assert [bool(one) for one in damage.bins] == expected
    covered = {at for first, count in damage.stretches() for at in range(first, first + count)}
    assert covered == {at for at, one in enumerate(expected) if one}
    assert sum(count for _, count in damage.stretches()) == len(covered)


@pytest.mark.parametrize("partitions", [1, PLACES, PLACES + 5])
def test_faults_of_many_partitions(partitions: int):
    whole = FaultCounts()
    for number in range(partitions):
        one = FaultCounts()
        for _ in range(3):
            one.add(fault(0, 10, partition=number))
        one.add(fault(None, None, "bad_index", number))
        whole.join(one)
    assert (whole.count, whole.size_in_bytes) == (4 * partitions, 30 * partitions)
    crc = whole["bad_crc"]
    assert len(crc.partitions) + crc.more_partitions == partitions
    assert len(crc.partitions) <= PLACES
    assert len(crc.examples) == min(3 * partitions, EXAMPLES)
