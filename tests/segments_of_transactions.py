"""Logs of several segments, made of batches of producers and markers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import kraftlog
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes
from kraftlog.transactions.producer_state import ProducerStates

Batch = tuple[object, ...]


class SegmentsOfTransactions:
    """A partition's folder to which segments are added, each of batches with one record.

    A batch is ``("plain",)``, ``("data", producer_id)`` or ``("marker", producer_id, control_type)``.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.paths: list[Path] = []
        self.next_offset = 0

    def segment(self, batches: list[Batch]) -> None:
        """Add a segment."""
        path = self.folder / f"{self.next_offset:020d}.log"
        path.write_bytes(b"".join(self._encoded(*batch) for batch in batches))
        self.paths.append(path)

    def _encoded(self, kind: str, producer_id: int = -1, control_type: str = "") -> bytes:
        offset, self.next_offset = self.next_offset, self.next_offset + 1
        if kind == "marker":
            marker = kraftlog.encode_marker(control_type, producer_id=producer_id, producer_epoch=1, base_offset=offset)
            return marker.to_pybytes()
        epoch = 0 if kind == "data" else -1
        rows = pa.table({"value": [b"v%d" % offset]})
        data = kraftlog.encode(
            rows,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=epoch,
            is_transactional=kind == "data",
        )
        return data.to_pybytes()

    def write_snapshots(self) -> None:
        """Write the snapshot beside each segment but the first."""
        states = ProducerStates()
        for number, path in enumerate(self.paths):
            if number:
                path.with_suffix(".snapshot").write_bytes(producer_snapshot_bytes(states.states()))
            for headers in HeaderScan(path.read_bytes()).headers():
                states.add(headers)


def long_transaction(folder: Path, segments: int, marker: str) -> list[int]:
    """Write a transaction over many segments, ended in the last; return the offsets that a consumer would get.

    Each segment holds a plain batch and one of the transaction.
    """
    log = SegmentsOfTransactions(folder)
    log.segment([("plain",), ("data", 1)])
    for _ in range(segments - 2):
        log.segment([("plain",), ("data", 1)])
    log.segment([("marker", 1, marker), ("plain",)])
    end = 2 * (segments - 1)
    return [*range(0, end, 1 if marker == "COMMIT" else 2), end + 1]


def with_other_marker(log: Path, folder: str, producer_id: int) -> int:
    """Replace the last marker of a producer by one that says the opposite; returns its offset."""
    markers = [
        row
        for row in kraftlog.open(log / folder).batches().to_pylist()
        if row["is_control"] and row["producer_id"] == producer_id
    ]
    last = markers[-1]
    marker = kraftlog.encode_marker(
        "ABORT" if last["control_type"] == "COMMIT" else "COMMIT",
        producer_id=producer_id,
        producer_epoch=last["producer_epoch"],
        base_offset=last["base_offset"],
        partition_leader_epoch=last["partition_leader_epoch"],
        timestamp_ms=int(last["max_timestamp"].timestamp() * 1000),
    ).to_pybytes()
    path = log / folder / f"{last['segment_base_offset']:020d}.log"
    data = bytearray(path.read_bytes())
    data[last["position"] : last["position"] + last["size_in_bytes"]] = marker
    assert len(data) == path.stat().st_size
    path.write_bytes(data)
    for index in path.parent.glob("*.txnindex"):
        index.unlink()  # its entries are another check's
    return int(last["base_offset"])
