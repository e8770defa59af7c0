"""Log directories for audits: replicas of one partition, a copy and a mirror of it, with and without producers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import corpus
import kraftlog
from kraftlog.audit.audit import findings
from kraftlog.audit.evidence import Evidence
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.read.log_pass import Pass

VALUE_BYTES = 100
PRODUCERS = 8
OFFSETS_BEFORE = 1_000  # of a mirror
IDS = {"own": "AAAAAAAAAAEAAAAAAAAAAQ", "other": "AAAAAAAAAAEAAAAAAAAAAg"}
_CRC_AT, _AFTER_CRC, _PRODUCER_AT = 17, 21, 43


def replica(node: int, batch_kib: int, megabytes: int, *, has_producers: bool = False) -> Path:
    """Return the log directory of a broker; those of other nodes have the same batches."""
    return _directory(f"node-{node}", batch_kib, megabytes, has_producers=has_producers)


def mirror(batch_kib: int, megabytes: int, *, has_producers: bool = False) -> Path:
    """Return the log directory of another cluster that has the same records at other offsets."""
    return _directory("mirror", batch_kib, megabytes, has_producers=has_producers)


def partition(directory: Path) -> Path:
    """Return the log file of a directory."""
    (file,) = directory.glob("*/*.log")
    return file


def audit(*directories: Path) -> int:
    """Audit log directories of one cluster; return the number of findings."""
    return len(findings(Evidence.of(kraftlog.open(list(directories)).found, Pass())))


def compare(own: Path, other: Path) -> int:
    """Compare two clusters; return the number of findings."""
    return kraftlog.open(own).findings(["code"], against=other).num_rows


def _directory(name: str, batch_kib: int, megabytes: int, *, has_producers: bool) -> Path:
    made_of = f"{'producers' if has_producers else 'plain'}-b{batch_kib}-{megabytes}MB-{corpus.VERSION}"
    folder = corpus.CACHE / "audits" / made_of / name / "orders-0"
    if not folder.exists():
        log = corpus.path(corpus.Workload(VALUE_BYTES, batch_kib), megabytes).read_bytes()
        is_mirror = name == "mirror"
        data = b"".join(_batches(log, OFFSETS_BEFORE if is_mirror else 0, PRODUCERS if has_producers else 0))
        folder.mkdir(parents=True)
        (folder / f"{OFFSETS_BEFORE if is_mirror else 0:020d}.log").write_bytes(data)
        topic_id = IDS["other" if is_mirror else "own"]
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    return folder.parent


def _batches(log: bytes, offsets_before: int, producers: int) -> Iterator[bytes]:
    """Return batches at later offsets, of producers that take turns."""
    sequences = [0] * producers
    number = 0
    for headers in HeaderScan(log).headers():
        columns = (headers[name].tolist() for name in ("position", "batch_length", "base_offset", "records_count"))
        for position, length, offset, count in zip(*columns, strict=True):
            batch = bytearray(log[position : position + length + 12])
            struct.pack_into(">qi", batch, 0, offset + offsets_before, length)
            struct.pack_into(">i", batch, 12, 0)  # the leader epoch
            if producers:
                producer = number % producers
                struct.pack_into(">qhi", batch, _PRODUCER_AT, producer, 0, sequences[producer])
                sequences[producer] += count
            struct.pack_into(">I", batch, _CRC_AT, kraftlog.crc32c(bytes(batch[_AFTER_CRC:])))
            number += 1
            yield bytes(batch)
