"""The state of producers equals what Kafka wrote to its snapshots and what its Admin client was told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_files import GOLDEN
from golden_indexes import CLEANED, file_name
from kraftlog._native.scanner import CONTROL_BIT, HEADER_DTYPE, TRANSACTIONAL_BIT
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import disk
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes, read_producer_snapshot
from kraftlog.transactions.producer_state import ProducerState, ProducerStates

SNAPSHOTS = sorted(path for path in GOLDEN.glob("*/log/*/*.snapshot") if "gone" not in path.parent.name)


def states_at(folder: Path, end: int, at_once: int = 1 << 16) -> list[ProducerState]:
    """Return the state of a partition's producers before an offset."""
    logs = sorted(folder.glob("*.log"))
    before = logs[0].with_suffix(".snapshot")
    producers = ProducerStates(read_producer_snapshot(before) if before.exists() else ())
    for log in logs:
        for headers in HeaderScan(disk().open(log)).headers(at_once):
            producers.add(headers[headers["base_offset"] < end])
    return producers.states()


@pytest.mark.parametrize("at_once", [1, 5, 1 << 16])
@pytest.mark.parametrize("snapshot", SNAPSHOTS, ids=file_name)
def test_equals_kafka(snapshot: Path, at_once: int):
    states = states_at(snapshot.parent, int(snapshot.stem), at_once)
    is_equal = producer_snapshot_bytes(states) == snapshot.read_bytes()
    assert is_equal == (file_name(snapshot) not in CLEANED)


def test_enough_was_compared():
    assert len(SNAPSHOTS) > 80
    assert (
        sum(len(read_producer_snapshot(snapshot)) for snapshot in SNAPSHOTS if file_name(snapshot) not in CLEANED) > 80
    )


@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0", "transactions_hanging", "deleted_records"])
def test_equals_what_the_broker_said(scenario: str):
    said = json.loads((GOLDEN / scenario / "expected" / "broker_state.json").read_text())["partitions"]
    for partition, answer in said.items():
        if not (GOLDEN / scenario / "log" / partition).exists():
            continue  # of the coordinator, not kept
        states = states_at(GOLDEN / scenario / "log" / partition, answer["high_watermark"])
        got = [
            {
                "producer_id": state.producer_id,
                "producer_epoch": state.producer_epoch,
                "last_sequence": state.last_sequence,
                "last_timestamp": state.last_timestamp,
                "coordinator_epoch": None if state.coordinator_epoch == -1 else state.coordinator_epoch,
                "current_transaction_start_offset": state.current_transaction_first_offset,
            }
            for state in sorted(states, key=lambda state: state.producer_id)
        ]
        assert got == sorted(answer["producers"], key=lambda row: row["producer_id"]), partition
    assert any(answer["producers"] for answer in said.values())


UNKNOWN = ProducerState(-1, -1, -1, -1, 0, -1, -1, None)


def by_the_book(initial: list[ProducerState], headers: np.ndarray) -> list[ProducerState]:
    """ProducerAppendInfo, a batch at a time."""
    states = {state.producer_id: state for state in initial}
    for header in headers:
        row = {name: int(header[name]) for name in HEADER_DTYPE.names or ()}
        is_control = bool(row["attributes"] & CONTROL_BIT)
        if row["magic"] < 2 or row["producer_id"] < 0 or (is_control and row["control_type"] not in (0, 1)):
            continue
        state = states.get(row["producer_id"], replace(UNKNOWN, producer_id=row["producer_id"]))
        if row["producer_epoch"] != state.producer_epoch:
            state = replace(
                state, producer_epoch=row["producer_epoch"], last_sequence=-1, last_offset=-1, offset_delta=0
            )
        state = replace(state, last_timestamp=row["max_timestamp"])
        if is_control:
            state = replace(state, coordinator_epoch=row["coordinator_epoch"], current_transaction_first_offset=None)
        else:
            sequence = row["base_sequence"]
            state = replace(
                state,
                last_sequence=-1 if sequence == -1 else (sequence + row["last_offset_delta"]) % 2**31,
                last_offset=row["base_offset"] + row["last_offset_delta"],
                offset_delta=row["last_offset_delta"],
            )
            if row["attributes"] & TRANSACTIONAL_BIT and state.current_transaction_first_offset is None:
                state = replace(state, current_transaction_first_offset=row["base_offset"])
        states[row["producer_id"]] = state
    return list(states.values())


BATCHES = st.fixed_dictionaries(
    {
        "producer_id": st.sampled_from([-1, 0, 1, 7, 2**40, 2**40 + 65536]),
        "producer_epoch": st.integers(0, 2),
        "attributes": st.sampled_from([0, TRANSACTIONAL_BIT, TRANSACTIONAL_BIT | CONTROL_BIT]),
        "control_type": st.sampled_from([-1, 0, 1]),
        "coordinator_epoch": st.integers(0, 3),
        "magic": st.sampled_from([2, 2, 2, 1]),
        "base_sequence": st.sampled_from([-1, 0, 5, 2**31 - 2]),
        "last_offset_delta": st.integers(0, 4),
        "max_timestamp": st.integers(-1, 100),
    }
)
STATES = st.lists(
    st.builds(
        ProducerState,
        st.sampled_from([0, 1, 7, 9]),
        st.integers(0, 2),
        st.integers(-1, 9),
        st.integers(-1, 9),
        st.integers(0, 2),
        st.integers(-1, 100),
        st.integers(-1, 2),
        st.sampled_from([None, 3]),
    ),
    max_size=3,
    unique_by=lambda state: state.producer_id,
)


def as_headers(rows: list[dict[str, Any]]) -> np.ndarray:
    headers = np.zeros(len(rows), HEADER_DTYPE)
    for at, row in enumerate(rows):
        for name, value in row.items():
            headers[at][name] = value
        headers[at]["base_offset"] = 10 * at + 10
    return headers


@given(STATES, st.lists(BATCHES, max_size=30), st.lists(st.integers(0, 30), max_size=5))
def test_equals_a_plain_loop(initial: list[ProducerState], rows: list[dict[str, Any]], cuts: list[int]):
    headers = as_headers(rows)
    producers = ProducerStates(initial)
    for part in np.split(headers, sorted(min(cut, len(headers)) for cut in cuts)):
        producers.add(part)
        if len(part) % 2:
            producers.states()  # looking changes nothing
    assert producers.states() == by_the_book(initial, headers)


def test_many_producers():
    headers = as_headers([{"producer_id": 0, "magic": 2}])
    headers = np.repeat(headers, 300_000)
    headers["producer_id"] = np.arange(300_000) * 7
    producers = ProducerStates()
    for part in np.split(headers, 10):
        producers.add(part)
    assert [state.producer_id for state in producers.states()] == headers["producer_id"].tolist()


def test_order_of_the_file(tmp_path: Path):
    """Java iterates over buckets; ids in one bucket come as they were met."""
    ids = [33, 1, 17, 2**33 + 5, 0]
    path = tmp_path / "0.snapshot"
    path.write_bytes(producer_snapshot_bytes(replace(UNKNOWN, producer_id=each) for each in ids))
    assert [state.producer_id for state in read_producer_snapshot(path)] == [0, 33, 1, 17, 2**33 + 5]
    for count, buckets in ((12, 16), (13, 32)):  # a table is at most three quarters full
        ids = [3 * each for each in range(count, 0, -1)]
        path.write_bytes(producer_snapshot_bytes(replace(UNKNOWN, producer_id=each) for each in ids))
        expected = [each for bucket in range(buckets) for each in ids if each % buckets == bucket]
        assert [state.producer_id for state in read_producer_snapshot(path)] == expected
