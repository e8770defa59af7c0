"""Aborted records whose marker or header is damaged: they are never shown as committed without a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from kraftlog.codec.options import READ_COMMITTED

PRODUCER = {"producer_id": 7, "producer_epoch": 0, "partition_leader_epoch": 0}
PRODUCER_ID_AT, TYPE_AT = 43, 70  # of a record batch, and of a marker: the second half of its key


def data(offset: int, sequence: int, value: str) -> bytes:
    table = pa.table({"value": [value]})
    return kraftlog.encode(
        table, base_offset=offset, timestamp_ms=1, base_sequence=sequence, is_transactional=True, **PRODUCER
    ).to_pybytes()


def marker(offset: int, kind: str) -> bytes:
    return kraftlog.encode_marker(kind, base_offset=offset, timestamp_ms=1, **PRODUCER).to_pybytes()


ABORTED, COMMITTED = [0], [2, 4]
BATCHES = [
    data(0, 0, "aborted"),
    marker(1, "ABORT"),
    data(2, 1, "committed"),
    marker(3, "COMMIT"),
    data(4, 2, "later"),
    marker(5, "COMMIT"),
]


def write(directory: Path, damage: dict[int, int]) -> Path:
    """Write a partition of two segments; of some batches one byte is another."""
    folder = directory / "orders-0"
    folder.mkdir(parents=True)
    batches = [bytearray(batch) for batch in BATCHES]
    for number, at in damage.items():
        batches[number][at] ^= 1
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches[:4]))
    (folder / f"{4:020d}.log").write_bytes(b"".join(batches[4:]))
    return directory


def committed(path: Path | list[Path], **options: Any) -> tuple[list[int], list[tuple[str, int | None]]]:
    """Return the offsets that a read_committed reader shows, and the faults with their offsets."""
    log = kraftlog.open(path)
    stream = log.records(["offset"], isolation_level=READ_COMMITTED, **options)
    return stream.to_table()["offset"].to_pylist(), [(fault.error, fault.base_offset) for fault in stream.faults]


DAMAGES = {"the type of the marker": {1: TYPE_AT}, "its producer": {1: PRODUCER_ID_AT}, "the data": {0: PRODUCER_ID_AT}}


@pytest.mark.parametrize("check_crc", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_fault_is_among_what_is_shown(tmp_path: Path, damage: dict[int, int], workers: int, check_crc: bool) -> None:
    path = write(tmp_path, damage)
    offsets, faults = committed(path, check_crc=check_crc, workers=workers)
    assert faults == [("bad_crc", number) for number in damage]
    assert [offset for offset in offsets if offset not in ABORTED] == COMMITTED
    with pytest.raises(kraftlog.CorruptRecordError, match="crc"):
        committed(path, check_crc=check_crc, strict=True, workers=workers)


@pytest.mark.parametrize("check_crc", [True, False])
def test_undamaged_records_have_no_faults(tmp_path: Path, check_crc: bool) -> None:
    assert committed(write(tmp_path, {}), check_crc=check_crc) == (COMMITTED, [])


@pytest.mark.parametrize("check_crc", [True, False])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("other", [{}, {2: TYPE_AT}, {3: TYPE_AT}])
def test_copies_heal_each_other(tmp_path: Path, damage: dict[int, int], other: dict[int, int], check_crc: bool) -> None:
    """Also copies that are damaged in different places, and where checksums need not be compared otherwise."""
    paths = [write(tmp_path / "a", damage), write(tmp_path / "b", other)]
    for path in (paths, paths[::-1]):
        assert committed(path, check_crc=check_crc) == (COMMITTED, [])


@pytest.mark.parametrize("check_crc", [True, False])
@pytest.mark.parametrize("options", [{}, {"workers": 2}])
def test_a_damaged_marker_behind_the_bounds(tmp_path: Path, options: dict[str, Any], check_crc: bool) -> None:
    """No reader of the records reads it; one that is before the bounds decides nothing there."""
    path = write(tmp_path, {1: TYPE_AT})
    folder = path / "orders-0"
    (folder / f"{0:020d}.index").write_bytes(b"\0\0\0\1" + len(BATCHES[0]).to_bytes(4))
    offsets, faults = committed(path, end_offset=1, check_crc=check_crc, **options)
    assert offsets == [] or ("bad_crc", 1) in faults
    assert faults == [("bad_crc", 1)]
    assert committed(path, start_offset=4, check_crc=check_crc, **options) == ([4], [])


def test_a_damaged_marker_in_a_later_segment(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    batches = [bytearray(batch) for batch in BATCHES]
    batches[1][TYPE_AT] ^= 1
    (folder / f"{0:020d}.log").write_bytes(batches[0])
    (folder / f"{1:020d}.log").write_bytes(b"".join(batches[1:]))
    assert committed(tmp_path, end_offset=1)[1] == [("bad_crc", 1)]
    assert committed(tmp_path)[1] == [("bad_crc", 1)]


@pytest.mark.parametrize("column", ["transaction_state", "visible_at"])
def test_columns_about_transactions_check_markers(tmp_path: Path, column: str) -> None:
    path = write(tmp_path, {1: TYPE_AT})
    stream = kraftlog.open(path).records(["offset", column], check_crc=False)
    assert stream.to_table()["offset"].to_pylist() == [0, 2, 4]
    assert [(fault.error, fault.base_offset) for fault in stream.faults] == [("bad_crc", 1)]


def test_a_fetch_response() -> None:
    batches = [bytearray(batch) for batch in BATCHES]
    batches[0][PRODUCER_ID_AT] ^= 1
    stream = kraftlog.decode(
        b"".join(batches),
        columns=["offset"],
        isolation_level=READ_COMMITTED,
        aborted_transactions=[(7, 0)],
        check_crc=False,
    )
    assert stream.to_table()["offset"].to_pylist() == COMMITTED
    assert [fault.error for fault in stream.faults] == ["bad_crc"]


def write_stopped(directory: Path, starts: list[int], *, is_damaged: bool = True) -> Path:
    """Write a log with an open transaction before the marker of another one, in segments with some base offsets."""
    other = {**PRODUCER, "producer_id": 8}
    table = pa.table({"value": ["open"]})
    opening = kraftlog.encode(table, base_offset=1, timestamp_ms=1, base_sequence=0, is_transactional=True, **other)
    aborting = bytearray(marker(2, "ABORT"))
    aborting[TYPE_AT] ^= is_damaged
    batches = [data(0, 0, "aborted"), opening.to_pybytes(), aborting, data(3, 1, "later"), marker(4, "COMMIT")]
    folder = directory / "orders-0"
    folder.mkdir(parents=True)
    for start, end in zip(starts, [*starts[1:], len(batches)], strict=True):
        (folder / f"{start:020d}.log").write_bytes(b"".join(batches[start:end]))
    return directory


@pytest.mark.parametrize("starts", [[0], [0, 1], [0, 2], [0, 3], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize(
    "options", [{}, {"workers": 2}, {"end_offset": 1}, {"end_offset": 3}, {"end_offset": 4, "workers": 2}]
)
def test_a_damaged_marker_behind_the_last_stable_offset(
    tmp_path: Path, starts: list[int], options: dict[str, Any]
) -> None:
    """No reader reads it, and the record that it aborts looks committed."""
    assert committed(write_stopped(tmp_path / "damaged", starts), **options) == ([0], [("bad_crc", 2)])
    assert committed(write_stopped(tmp_path / "sound", starts, is_damaged=False), **options) == ([], [])
    with pytest.raises(kraftlog.CorruptRecordError, match="crc"):
        committed(tmp_path / "damaged", strict=True, **options)


def test_a_damaged_marker_before_the_bounds_that_leaves_a_transaction_open(tmp_path: Path) -> None:
    """A reader stops before its bounds, at this transaction."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    ending = bytearray(marker(1, "COMMIT"))
    ending[TYPE_AT] ^= 1
    later = kraftlog.encode(pa.table({"value": ["later"]}), base_offset=2, timestamp_ms=1)
    (folder / f"{0:020d}.log").write_bytes(data(0, 0, "committed") + ending)
    (folder / f"{2:020d}.log").write_bytes(later.to_pybytes())
    assert committed(tmp_path, start_offset=2) == ([], [("bad_crc", 1)])
