"""Any interleaving gives what a plain-Python state machine gives, in one piece or cut anywhere and joined."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from model import MetadataModel, ProducerModel
from random_logs import STEPS, in_segments, producer_log, written

import kraftlog
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.markers import scan_markers
from kraftlog.tables.user_options import read_options
from kraftlog.transactions.metadata_columns import Stretch
from kraftlog.transactions.metadata_fold import MetadataTransactionFold
from kraftlog.transactions.producer import (
    ABORTED,
    NONE,
    OPEN,
    TransactionFold,
    join,
    last_stable_offsets,
    of_batches,
)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(STEPS, min_size=1, max_size=25),
    st.lists(st.integers(0, 30), max_size=3),
    st.sampled_from([1, 300, 1 << 20]),
)
def test_read_committed(steps: list[tuple], cuts: list[int], range_bytes: int):
    model = producer_log(steps)
    with written(in_segments(model, cuts)) as folder:
        log = kraftlog.open(folder)
        options = read_options(isolation_level="read_committed")
        for workers in (1, 2):
            stream = log.scan("records", ["offset"], options, workers=workers, range_bytes=range_bytes)
            assert stream.to_table()["offset"].to_pylist() == model.visible
        rows = log.records(["offset", "transaction_state", "visible_at"]).to_table().to_pylist()
        assert {row["offset"]: row["transaction_state"] for row in rows} == model.state
        assert {row["offset"]: row["visible_at"] for row in rows if row["visible_at"] is not None} == model.visible_at
        assert log.last_stable_offsets()["last_stable_offset"].to_pylist() == [model.last_stable_offset]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(STEPS, min_size=1, max_size=25),
    st.integers(0, 80),
    st.integers(0, 80),
    st.lists(st.integers(0, 30), max_size=3),
)
def test_read_committed_within_bounds(steps: list[tuple], start: int, size: int, cuts: list[int]):
    model = producer_log(steps)
    with written(in_segments(model, cuts)) as folder:
        stream = kraftlog.open(folder).records(
            ["offset"], isolation_level="read_committed", start_offset=start, end_offset=start + size
        )
        expected = [offset for offset in model.visible if start <= offset < start + size]
        assert stream.to_table()["offset"].to_pylist() == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=25))
def test_transactions_cut_anywhere(steps: list[tuple]):
    model = producer_log(steps)
    whole = join(np.concatenate([of_batches(headers) for headers in HeaderScan(model.log).headers()]))
    aborted = whole[(whole["state"] == ABORTED) & (whole["first_offset"] != NONE)]
    ended, still_open = whole[whole["state"] != OPEN], whole[whole["state"] == OPEN]
    stable = last_stable_offsets(ended, still_open)[(ended["state"] == ABORTED) & (ended["first_offset"] != NONE)]
    entries = zip(
        *(aborted[name].tolist() for name in ("producer_id", "first_offset", "marker_offset")), stable, strict=True
    )
    assert list(entries) == model.aborted
    for cut in {0, len(model.log), *model.boundaries, *(at + 1 for at in model.boundaries)}:
        halves = [scan_parts(model.log, 0, cut), scan_parts(model.log, behind(model, cut), len(model.log))]
        joined = join(np.concatenate([join(half) for half in halves]))
        assert joined.tolist() == whole.tolist()


def test_every_byte_is_a_place_to_cut():
    model = producer_log(
        [("data", 0, 2), ("data", 1, 1), ("marker", 0, "ABORT"), ("data", 0, 1), ("marker", 1, "COMMIT")]
    )
    whole = join(scan_parts(model.log, 0, len(model.log)))
    for cut in range(len(model.log) + 1):
        halves = [scan_parts(model.log, 0, cut), scan_parts(model.log, behind(model, cut), len(model.log))]
        assert join(np.concatenate([join(half) for half in halves])).tolist() == whole.tolist()


def scan_parts(log: bytes, start: int, end: int) -> np.ndarray:
    parts = [of_batches(headers) for headers in HeaderScan(log, start, end).headers()]
    return np.concatenate([TransactionFold().open, *parts])


def behind(model: ProducerModel, cut: int) -> int:
    return next((at for at in model.boundaries if at >= cut), len(model.log))


KINDS = st.sampled_from(["data", "data", "begin", "end", "abort"])


def metadata_log(kinds: list[str], batch_records: int) -> tuple[MetadataModel, bytes]:
    model = MetadataModel()
    for kind in kinds:
        model.add(kind)
    model.finish()
    log = kraftlog.encode(pa.table({"value": pa.array(model.values, pa.binary())}), max_batch_records=batch_records)
    return model, log.to_pybytes()


def stretches_of(log: bytes, start: int, end: int) -> list[Stretch]:
    return [Stretch.of(block) for block in scan_markers(log, [], start=start, end=end)]


def folded(stretches: list[Stretch]) -> tuple[list, list]:
    """Return transactions, without the last column that says where their batches lie, and offsets out of place."""
    fold = MetadataTransactionFold()
    found = [fold.add(stretch) for stretch in stretches] + [fold.finish()]
    return [row for each in found for row in each.transactions.tolist()], [
        offset for each in found for offset in each.misplaced["offset"].tolist()
    ]


@settings(max_examples=120, deadline=None)
@given(st.lists(KINDS, min_size=1, max_size=40), st.integers(1, 7))
def test_metadata(kinds: list[str], batch_records: int):
    model, log = metadata_log(kinds, batch_records)
    with written([(0, log)], "__cluster_metadata-0") as folder:
        opened = kraftlog.open(folder)
        rows = opened.records(["offset", "visible_at"]).to_table().to_pylist()
        assert {row["offset"]: row["visible_at"] for row in rows if row["visible_at"] is not None} == model.visible_at
        stream = opened.records(["offset"], isolation_level="read_committed")
        assert stream.to_table()["offset"].to_pylist() == sorted(model.visible_at)
        assert [fault.base_offset + fault.record_index for fault in stream.faults] == model.illegal
        columns = ["begin_offset", "end_offset", "state", "records_count"]
        found = opened.metadata_transactions(columns, strict=False, faults=[]).to_pylist()
        assert found == model.transactions


@settings(max_examples=60, deadline=None)
@given(st.lists(KINDS, min_size=1, max_size=40), st.integers(1, 7))
def test_metadata_cut_anywhere(kinds: list[str], batch_records: int):
    _, log = metadata_log(kinds, batch_records)
    starts = [int(at) for headers in HeaderScan(log).headers() for at in headers["position"]]
    whole = folded(stretches_of(log, 0, len(log)))
    for cut in {0, len(log), *starts, *(at + 1 for at in starts)}:
        rest = next((at for at in starts if at >= cut), len(log))
        assert folded([*stretches_of(log, 0, cut), *stretches_of(log, rest, len(log))]) == whole
    batch_by_batch = [
        stretch for begin, end in pairwise([*starts, len(log)]) for stretch in stretches_of(log, begin, end)
    ]
    assert folded(batch_by_batch) == whole


def test_odd_markers():
    """Varints longer than needed are markers as well; other frames and near misses are none."""
    values = [
        bytes.fromhex("81 00 17 00 00"),
        bytes.fromhex("01 97 00 00 00"),
        bytes.fromhex("00 17 00 00"),
        bytes.fromhex("01 16 00 00"),
        bytes.fromhex("01 1a 00 00"),
        bytes.fromhex("01"),
        b"",
        None,
        bytes.fromhex("01 18 00 00"),
    ]
    log = kraftlog.encode(pa.table({"value": pa.array(values, pa.binary())})).to_pybytes()
    (found,) = scan_markers(log, [])
    assert found.offsets.tolist() == [0, 1, 8]
    assert found.api_keys.tolist() == [23, 23, 24]
    for compression in ("gzip", "lz4"):
        packed = kraftlog.encode(pa.table({"value": pa.array(values, pa.binary())}), compression=compression)
        assert [list(part.offsets) for part in scan_markers(packed.to_pybytes(), [])] == [[0, 1, 8]]
