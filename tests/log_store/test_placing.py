"""Staged files with other offsets and sequences are what the encoder would have made with them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from written import rows

import kraftlog
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import disk
from kraftlog.log_store.placing import placed_bytes, placed_headers, write_headers
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.staging import Stager, StagingOptions, read_headers

VALUES = [f"value {number} " * (number % 7 + 1) for number in range(200)]
STAMPED = rows(VALUES).append_column("timestamp_ms", pa.array(range(200)))


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize(
    ("base_offset", "producer_id", "producer_epoch", "base_sequence"),
    [(0, 0, 0, 0), (17, 0, 1, 3), (2**40, 1 << 62 | 5, 2**15 - 1, 2**31 - 50), (1, 2**32 + 7, 256, 65536)],
)
def test_bytes_are_those_of_the_encoder(
    tmp_path: Path, compression: str, base_offset: int, producer_id: int, producer_epoch: int, base_sequence: int
):
    stager = Stager(tmp_path, StagingOptions(compression, max_batch_bytes=400), task=0)
    stager.write("t", 0, STAMPED)
    (file,) = stager.finish()
    path = tmp_path / file.path
    headers = placed_headers(
        read_headers(path),
        base_offset=base_offset,
        stamp=Stamp(producer_id, producer_epoch, base_sequence, is_transactional=True),
        partition_leader_epoch=9,
    )
    expected = kraftlog.encode(
        STAMPED,
        compression=compression,
        max_batch_bytes=400,
        base_offset=base_offset,
        partition_leader_epoch=9,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=True,
    ).to_pybytes()
    assert placed_bytes(path.read_bytes(), headers).tobytes() == expected
    write_headers(path, headers)
    assert path.read_bytes() == expected
    write_headers(path, headers)
    assert path.read_bytes() == expected
    torn = bytearray(expected)
    for at in headers["position"].tolist():  # a crash left the fields that change half written
        torn[at + 4 : at + 8] = torn[at + 17 : at + 21] = bytes(4)
    path.write_bytes(torn)
    write_headers(path, headers)
    assert path.read_bytes() == expected


def test_files_of_at_most_a_size(tmp_path: Path):
    stager = Stager(tmp_path, StagingOptions(max_batch_bytes=300, segment_bytes=1000), task=3)
    for at in range(0, 200, 9):
        stager.write("t", 0, rows(VALUES[at : at + 9]))
    files = stager.finish()
    assert len(files) > 10
    assert all(file.size_in_bytes == (tmp_path / file.path).stat().st_size <= 1000 - 78 for file in files)
    assert [file.number for file in files] == list(range(len(files)))
    assert sum(file.records_count for file in files) == 200
    for file in files:
        scanned = next(HeaderScan(disk().open(tmp_path / file.path)).headers())
        assert (scanned == read_headers(tmp_path / file.path)).all()
        assert len(scanned) == file.batches


def test_what_kafka_does_not_allow(tmp_path: Path):
    stager = Stager(tmp_path, StagingOptions(), task=0)
    for topic in ("..", "", "a/b", "x" * 250, "é", "__cluster_metadata"):
        with pytest.raises(ValueError, match="topic"):
            stager.write(topic, 0, rows(["v"]))
    with pytest.raises(ValueError, match="partition -1 of t"):
        stager.write("t", -1, rows(["v"]))
    with pytest.raises(ValueError, match=r"segment_bytes 1000 is not between 1078"):
        StagingOptions(max_batch_bytes=1000, segment_bytes=1000)
