"""The last batches of producers are those that Kafka's ``ProducerStateEntry`` has after it has read a log."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_producer_state import BATCHES, STATES, as_headers

from kraftlog._native.scanner import CONTROL_BIT
from kraftlog.transactions.last_batches import KEPT_BATCHES, LastBatches
from kraftlog.transactions.producer_state import SEQUENCES, ProducerState

Entry = tuple[int, deque[tuple[int, ...]]]


def by_the_book(initial: list[ProducerState], headers: np.ndarray) -> dict[tuple[int, int], list[tuple[int, ...]]]:
    """ProducerStateEntry.addBatch and maybeUpdateProducerEpoch, a batch at a time."""
    entries: dict[int, Entry] = {}

    def entry_of(producer_id: int, epoch: int) -> Entry:
        if producer_id not in entries or entries[producer_id][0] != epoch:
            entries[producer_id] = epoch, deque(maxlen=5)
        return entries[producer_id]

    for state in initial:
        _, batches = entry_of(state.producer_id, state.producer_epoch)
        if state.last_sequence >= 0:
            first = (state.last_sequence - state.offset_delta) % SEQUENCES
            batches.append((first, state.last_sequence, state.last_offset - state.offset_delta, state.last_offset))
    for header in headers:
        delta, first = int(header["last_offset_delta"]), int(header["base_sequence"])
        if header["magic"] < 2 or header["producer_id"] < 0:
            continue
        is_control = bool(header["attributes"] & CONTROL_BIT)
        if is_control and header["control_type"] not in (0, 1):
            continue
        _, batches = entry_of(int(header["producer_id"]), int(header["producer_epoch"]))
        if not is_control and first >= 0:
            offset = int(header["base_offset"])
            batches.append((first, (first + delta) % SEQUENCES, offset, offset + delta))
    return {(each, epoch): list(batches) for each, (epoch, batches) in entries.items()}


@given(STATES, st.lists(BATCHES, max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_equals_a_plain_loop(initial: list[ProducerState], rows: list[dict[str, Any]], cuts: list[int]):
    epochs = {state.producer_id: state.producer_epoch for state in initial}
    for row in rows:  # epochs of a producer only grow
        row["producer_epoch"] = max(epochs.get(row["producer_id"], 0), row["producer_epoch"])
        if row["magic"] == 2 and (not row["attributes"] & CONTROL_BIT or row["control_type"] >= 0):
            epochs[row["producer_id"]] = row["producer_epoch"]
    headers = as_headers(rows)
    batches = LastBatches(initial)
    for part in np.split(headers, sorted(min(cut, len(headers)) for cut in cuts)):
        batches.add(part)
        if len(part) % 2:
            batches.by_epoch()  # looking changes nothing
    found = batches.by_epoch()
    for key, expected in by_the_book(initial, headers).items():
        assert [tuple(each) for each in found.get(key, [])] == expected


@pytest.mark.parametrize("producers", [1, 7, 100_000])
def test_memory_does_not_grow_with_the_log(producers: int):
    headers = np.repeat(as_headers([{"producer_id": 0, "magic": 2}]), 300_000)
    headers["producer_id"] = np.arange(300_000) % producers
    headers["base_offset"] = np.arange(300_000)
    batches = LastBatches()
    for part in np.split(headers, 100):
        batches.add(part)
    found = batches.by_epoch()
    assert len(batches._rows) == min(KEPT_BATCHES * producers, 300_000)
    assert [each.base_offset for each in found[0, 0]] == headers["base_offset"][::producers][-KEPT_BATCHES:].tolist()
