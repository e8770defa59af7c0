"""Mistakes that a reader of logs is prone to: each was met once."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN


def batch(count: int, base_offset: int, stamps: list[int] | None = None) -> bytes:
    rows = {"value": [b"v%d" % i for i in range(count)], "timestamp_ms": stamps or list(range(1000, 1000 + count))}
    return kraftlog.encode(pa.table(rows), base_offset=base_offset).to_pybytes()


def offsets(path: object, **bounds: int) -> list[int]:
    return kraftlog.open(path).records(["offset"], **bounds).to_table()["offset"].to_pylist()  # type: ignore[arg-type, call-overload]


def test_bounds_leave_no_file_out_that_has_no_offset(tmp_path: Path):
    (tmp_path / "a.bin").write_bytes(batch(3, 0))
    (tmp_path / "b.bin").write_bytes(batch(3, 3))
    assert offsets([tmp_path / "a.bin", tmp_path / "b.bin"], start_offset=0) == [0, 1, 2, 3, 4, 5]


def test_deleted_file_beside_a_live_one(tmp_path: Path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    for name in ("00000000000000000000.log", "00000000000000000000.log.deleted"):
        (folder / name).write_bytes(batch(3, 0))
    assert offsets(str(folder / "*.log*"), start_offset=1) == [1, 2, 1, 2]


def test_log_directory_that_is_called_like_a_partition(tmp_path: Path):
    shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / "data-0")
    assert kraftlog.open(tmp_path / "data-0").segments().num_rows == 9


def test_numbers_that_no_partition_has(tmp_path: Path):
    folder = tmp_path / "snap-20240101120000"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(batch(1, 0))
    assert kraftlog.open(folder).segments(["topic", "records"]).to_pylist() == [{"topic": None, "records": 1}]


@pytest.mark.parametrize(
    "content", [b"This is a note, and no log file.\n" * 9, gzip.compress(bytes(range(256)) * 9, mtime=0)]
)
def test_what_is_no_log_is_an_error(tmp_path: Path, content: bytes):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(content)
    assert [fault.error for fault in kraftlog.open(path).verify()] == ["bad_batch_length"]


def test_bounds_do_not_trust_a_length_that_leads_nowhere(tmp_path: Path):
    parts = [bytearray(batch(3, base)) for base in (0, 3, 6, 9)]
    length = len(parts[0]) - 12 + len(parts[1]) // 2
    parts[0][8:12] = length.to_bytes(4, "big")
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(parts))
    assert offsets(path) == offsets(path, start_offset=3) == offsets(path, start_timestamp=1002) == []
    assert offsets(path, salvage=True) == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert offsets(path, start_offset=3, salvage=True) == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert offsets(path, start_timestamp=1002, salvage=True) == [5, 8, 11]


def test_batches_within_bounds_are_those_with_records(tmp_path: Path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch(2, 0, [1000, 500]) + batch(2, 2, [2000, 2001]))
    log = kraftlog.open(path)
    assert log.records(["offset"], end_timestamp=800).to_table()["offset"].to_pylist() == [1]
    assert 0 in log.batches(["base_offset"], end_timestamp=800)["base_offset"].to_pylist()
    legacy = kraftlog.open(GOLDEN / "legacy" / "log" / "v1-gzip-0")
    for end in range(1, 26):
        with_records = set(legacy.records(["position"], end_offset=end).to_table()["position"].to_pylist())
        assert with_records <= set(legacy.batches(["position"], end_offset=end)["position"].to_pylist())


def test_names_that_are_not_text(tmp_path: Path):
    shutil.copytree(GOLDEN / "damaged" / "good" / "log" / "t-0", tmp_path / "t-0")
    odd = tmp_path / "t\udcff-0"
    shutil.copytree(tmp_path / "t-0", odd)
    (tmp_path / "x\udcff").write_bytes(b"")
    log = kraftlog.open(tmp_path)
    assert sorted(set(log.records(["topic"]).to_table()["topic"].to_pylist())) == ["t", "t\ufffd"]
    assert [row["error"] for row in log.errors().to_pylist()] == ["not_read"]


def test_index_files_are_not_read_as_logs():
    folder = GOLDEN / "codecs" / "log" / "codec-lz4-0"
    log = kraftlog.open(str(folder / "*"))
    assert log.records(["offset"]).to_table().num_rows == 751
    assert {row["error"] for row in log.errors().to_pylist()} == {"not_read"}


def test_no_columns_keep_their_rows():
    log = kraftlog.open(GOLDEN / "codecs" / "log" / "codec-lz4-0")
    assert log.batches(columns=[]).num_rows == 30
    assert log.segments(columns=[]).num_rows == 2


def test_options_out_of_range():
    data = batch(3, 0)
    for options in ({"batch_rows": -100}, {"batch_rows": 2**62}, {"batch_bytes": 3 << 30}, {"batch_bytes": 0}):
        with pytest.raises(ValueError, match="is not between 1 and"):
            kraftlog.decode(data, **options)  # type: ignore[arg-type]
    log = kraftlog.open(GOLDEN / "codecs" / "log" / "codec-lz4-0")
    with pytest.raises(ValueError, match="start_offset 99999999999999999999 does not fit 64 bits"):
        log.records(start_offset=99999999999999999999)
    assert log.records(["offset"], start_timestamp=np.int64(5)).to_table().num_rows == 751  # type: ignore[arg-type]


def test_topics_may_be_one_name():
    assert kraftlog.open(GOLDEN / "codecs" / "log", topics="codec-lz4").segments().num_rows == 2
