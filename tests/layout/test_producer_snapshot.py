"""Producer snapshots: of all producers, and of those with an open transaction alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import CorruptRecordError
from kraftlog.layout.producer_snapshot import (
    producer_snapshot_bytes,
    read_open_transactions,
    read_producer_snapshot,
)
from kraftlog.transactions.producer_state import ProducerState

SNAPSHOTS = sorted(Path("tests/golden").rglob("*.snapshot"))

INT16, INT32, INT64 = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (16, 32, 64))
states = st.builds(
    ProducerState, INT64, INT16, INT32, INT64, INT32, INT64, INT32, st.none() | st.integers(0, 2**63 - 1)
)


def open_among(known: list[ProducerState]) -> list[tuple[int, int, int]]:
    return [
        (state.producer_id, state.producer_epoch, state.current_transaction_first_offset)
        for state in known
        if state.current_transaction_first_offset is not None
    ]


def test_open_transactions_of_real_snapshots() -> None:
    some_are_open = 0
    for path in SNAPSHOTS:
        known = read_producer_snapshot(path)
        assert read_open_transactions(path) == open_among(known), path
        some_are_open += bool(open_among(known))
    assert some_are_open


@given(known=st.lists(states, unique_by=lambda state: state.producer_id))
def test_states_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, known: list[ProducerState]
) -> None:
    path = tmp_path_factory.mktemp("snapshot") / "00000000000000000001.snapshot"
    path.write_bytes(producer_snapshot_bytes(known))
    read = read_producer_snapshot(path)
    assert sorted(read, key=lambda state: state.producer_id) == sorted(known, key=lambda state: state.producer_id)
    assert read_open_transactions(path) == open_among(read)


@pytest.mark.parametrize("read", [read_producer_snapshot, read_open_transactions])
def test_a_snapshot_that_is_cut_or_changed_is_refused(tmp_path: Path, read) -> None:
    data = max(SNAPSHOTS, key=lambda path: path.stat().st_size).read_bytes()
    path = tmp_path / "00000000000000000001.snapshot"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(CorruptRecordError):
            read(path)
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(CorruptRecordError):
            read(path)
    path.write_bytes(data + bytes(46))
    with pytest.raises(CorruptRecordError):
        read(path)
