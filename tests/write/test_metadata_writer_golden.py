"""What MetadataLogWriter writes of the records of a real Kafka is what that Kafka wrote, byte for byte."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog import MetadataLogWriter
from kraftlog.codec.batch_encoder import BatchEncoder
from kraftlog.codec.control_records import control_batch, leader_change, snapshot_footer, snapshot_header
from kraftlog.codec.encode import Encoder
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.metadata_markers import read_marker
from kraftlog.metadata_log.snapshot_writer import write_snapshot
from kraftlog.transactions.metadata_encoder import metadata_encoder


def golden_batches(path: Path) -> Iterator[tuple[dict, bytes, list[bytes]]]:
    """Return header, bytes and values of each batch."""
    data = path.read_bytes()
    for headers in HeaderScan(data).headers():
        for header in headers:
            end = int(header["position"] + header["batch_length"]) + 12
            raw = data[int(header["position"]) : end]
            rows = kraftlog.decode(raw, columns=["value"], include_control=True).to_table()
            yield {name: header[name].item() for name in header.dtype.names}, raw, rows["value"].to_pylist()


@pytest.mark.parametrize("segment_bytes", [1 << 30, 8192])
def test_a_log_of_kafka_is_written_again_byte_for_byte(tmp_path: Path, segment_bytes: int):
    folder = tmp_path / "logs" / "__cluster_metadata-0"
    golden = GOLDEN / "metadata" / "log" / "__cluster_metadata-0"
    every = [batch for path in sorted(golden.glob("*.log")) for batch in golden_batches(path)]
    now = itertools.repeat(0)
    writer = None
    for header, _, values in every:
        now = itertools.repeat(header["base_timestamp"])
        if header["attributes"] & 32:
            if writer:
                writer.close()
            writer = MetadataLogWriter(
                folder,
                header["partition_leader_epoch"],
                clock=lambda: next(now),  # noqa: B023  (is called in this round)
                segment_bytes=segment_bytes,
            )
        elif (begin := read_marker(values[0])) is not None:
            with writer.transaction(begin.text) as transaction:
                transaction.append(values[1:-1])
        else:
            writer.append(values)
    writer.close()
    assert b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))) == b"".join(raw for _, raw, _ in every)
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        assert (folder / name).read_bytes() == (golden / name).read_bytes()
    if segment_bytes == 8192:
        segments = sorted(folder.glob("*.log"))
        assert len(segments) > 2
        assert all(segment.stat().st_size <= 8192 for segment in segments)
        empty = (golden / "00000000000000000072.snapshot").read_bytes()
        snapshots = {path.stem: path.read_bytes() for path in folder.glob("*.snapshot")}
        assert set(snapshots.values()) == {empty}
        assert {segment.stem for segment in segments[1:]} <= set(snapshots)  # the others are of closed writers
        assert kraftlog.open(folder).segments(["base_offset"])["base_offset"].to_pylist() == [
            int(path.stem) for path in segments
        ]
    assert list(kraftlog.open(folder).verify()) == []


def test_snapshots_of_kafka_are_written_again_byte_for_byte(tmp_path: Path):
    for path in sorted((GOLDEN / "metadata" / "log" / "__cluster_metadata-0").glob("*.checkpoint")):
        head, *data, foot = golden_batches(path)
        epoch = head[0]["partition_leader_epoch"]
        timestamp = int.from_bytes(head[2][0][2:10], "big")
        for kind, value, (header, raw, _) in (
            ("SNAPSHOT_HEADER", snapshot_header(timestamp), head),
            ("SNAPSHOT_FOOTER", snapshot_footer(), foot),
        ):
            stamp, at = header["base_timestamp"], header["base_offset"]
            written = control_batch(kind, value, base_offset=at, partition_leader_epoch=epoch, timestamp_ms=stamp)
            assert written == raw
        for header, raw, values in data:
            options = 8192, header["base_offset"], epoch, header["base_timestamp"]
            encoder = metadata_encoder(Encoder, *options)
            encoder.write(pa.record_batch({"value": pa.array(values, pa.binary())}))
            assert encoder.finish().to_pybytes() == raw
            plain = metadata_encoder(BatchEncoder, *options)
            plain.write_records(values)
            assert plain.finish() == raw
        again = tmp_path / path.name
        values = [value for batch in data for value in batch[2]]
        write_snapshot(
            again, values, epoch=epoch, last_contained_log_timestamp=timestamp, timestamp_ms=1, max_batch_bytes=8192
        )
        assert again.stat().st_size == path.stat().st_size


def test_leader_change_of_more_voters_is_that_of_kafka():
    path = GOLDEN / "metadata_txn" / "names" / "log" / "__cluster_metadata-0" / "00000000000000000000.log"
    header, raw, (value,) = next(golden_batches(path))
    assert leader_change(2, [1, 2, 3], [1, 2]).hex() == value.hex()
    written = control_batch(
        "LEADER_CHANGE", value, base_offset=0, partition_leader_epoch=1, timestamp_ms=header["base_timestamp"]
    )
    assert written == raw
