"""Markers: the bytes of those that a real broker wrote."""

from __future__ import annotations

import pytest

import kraftlog
from golden_files import GOLDEN


@pytest.mark.parametrize("name", ["transactions", "transactions_tv0", "transactions_hanging"])
def test_bytes_of_a_broker(name: str):
    compared = 0
    for segment in kraftlog.open(GOLDEN / name / "log").found.segments:
        data = segment.path.read_bytes()
        log = kraftlog.open(segment.path)
        epochs = {row["marker_offset"]: row["coordinator_epoch"] for row in log.partition_transactions().to_pylist()}
        for batch in log.scan("batches", None).to_table().to_pylist():
            if batch["control_type"] not in ("COMMIT", "ABORT"):
                continue
            marker = kraftlog.encode_marker(
                batch["control_type"],
                producer_id=batch["producer_id"],
                producer_epoch=batch["producer_epoch"],
                coordinator_epoch=epochs[batch["base_offset"]],
                base_offset=batch["base_offset"],
                partition_leader_epoch=batch["partition_leader_epoch"],
                timestamp_ms=int(batch["max_timestamp"].timestamp() * 1000 + 0.5),
            )
            begin = batch["position"]
            assert marker.to_pybytes() == data[begin : begin + batch["size_in_bytes"]]
            compared += 1
    assert compared > 5


def test_refusals():
    with pytest.raises(ValueError, match="control_type 'LEADER_CHANGE' is not one of ABORT, COMMIT"):
        kraftlog.encode_marker("LEADER_CHANGE", producer_id=1, producer_epoch=0)
    with pytest.raises(ValueError, match="a marker needs a producer_id"):
        kraftlog.encode_marker("COMMIT", producer_id=-1, producer_epoch=0)
