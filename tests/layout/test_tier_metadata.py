"""``__remote_log_metadata`` decides which segments of a remote tier count, where the log directory has it."""

from __future__ import annotations

import base64
import shutil
import struct
from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

import kraftlog
from golden_files import GOLDEN
from kraftlog.tables.log import Log

FOLDER = GOLDEN / "remote_tier"
TOPIC_ID = "ZiLCo70LQ0ijmHKoEVHx6A"
FINISHED, DELETING, DELETED = 1, 2, 3


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("logs", "tier"):
        shutil.copytree(FOLDER / name, tmp_path / name)
    return tmp_path


def opened(root: Path) -> Log:
    return kraftlog.open(root / "logs", remote_tier=root / "tier", topics=["orders"])


def metadata(root: Path) -> Path:
    return root / "logs" / "__remote_log_metadata-0" / f"{0:020d}.log"


def segment_id(root: Path, base_offset: int) -> str:
    (path,) = root.rglob(f"tier/**/{base_offset:020d}-*.log")
    return path.stem[21:]


def uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def update(segment: str, state: int, topic_id: str = TOPIC_ID) -> bytes:
    """Return an update of a segment's state, by RemoteLogSegmentMetadataUpdateRecord.json."""
    of = bytes([len("orders") + 1]) + b"orders" + uuid(topic_id) + struct.pack(">ib", 0, 0) + uuid(segment) + b"\0"
    return b"\1\1\0" + of + struct.pack(">iq", 1, 1_800_000_000_000) + b"\0" + bytes([state]) + b"\0"


def partition_deleted() -> bytes:
    """Return the end of a partition, by RemotePartitionDeleteMetadataRecord.json."""
    of = bytes([len("orders") + 1]) + b"orders" + uuid(TOPIC_ID) + struct.pack(">ib", 0, 0)
    return b"\1\2\0" + of + struct.pack(">iqb", 1, 1_800_000_000_000, 2) + b"\0"


def append(root: Path, *values: bytes) -> None:
    path = metadata(root)
    for number, value in enumerate(values):
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 16)
        builder.append(0, 1_800_000_000_000, None, value, [])
        batch = bytearray(builder.build())
        batch[:8] = struct.pack(">q", 6 + number)
        path.write_bytes(path.read_bytes() + batch)


def offsets(log: Log) -> list[int]:
    return log.records(include_control=True).to_table()["offset"].to_pylist()


def errors(log: Log) -> list[tuple[str, int | None]]:
    return sorted({(fault.error, fault.segment_base_offset) for fault in log.verify()})


def test_segments_that_were_copied(root: Path):
    assert offsets(opened(root)) == list(range(248))
    assert errors(opened(root)) == []


@pytest.mark.parametrize("states", [(DELETING,), (DELETING, DELETED), (DELETING, FINISHED)])
def test_a_segment_that_is_deleted(root: Path, states: tuple[int, ...]):
    """Nothing leads back from that: the last update of the third case is of no effect."""
    append(root, *(update(segment_id(root, 0), state) for state in states))
    log = opened(root)
    assert offsets(log) == list(range(40, 248))
    assert errors(log) == [("tier_orphan", 0)]
    what = "was deleted" if DELETED in states else "is being deleted"
    assert f"it {what}, by __remote_log_metadata" in next(iter(log.verify())).message


def test_updates_of_others(root: Path):
    """A state that cannot follow, and segments that are not known, change nothing."""
    append(root, update(segment_id(root, 0), DELETED), update("A" * 22, DELETING))
    assert offsets(opened(root)) == list(range(248))


def test_objects_of_a_segment_that_is_deleted(root: Path):
    """What is left of it is no fault."""
    append(root, update(segment_id(root, 0), DELETING))
    for path in root.rglob(f"tier/**/{0:020d}-*"):
        if path.suffix not in (".log", ".index"):
            path.unlink()
    log = opened(root)
    assert offsets(log) == list(range(40, 248))
    assert errors(log) == [("tier_orphan", 0)]


def test_a_copy_that_was_not_finished(root: Path):
    path = metadata(root)
    data, position, starts = path.read_bytes(), 0, []
    while position < len(data):
        starts.append(position)
        position += 12 + struct.unpack_from(">i", data, position + 8)[0]
    path.write_bytes(data[: starts[-1]])
    log = opened(root)
    assert offsets(log) == [*range(124), *range(164, 248)]
    assert errors(log) == [("tier_gap", 124), ("tier_orphan", 124)]


def test_a_partition_that_is_deleted(root: Path):
    append(root, partition_deleted())
    assert offsets(opened(root)) == list(range(164, 248))


def test_objects_that_are_gone(root: Path):
    for path in root.rglob(f"tier/**/{40:020d}-*"):
        path.unlink()
    log = opened(root)
    assert offsets(log) == [*range(40), *range(124, 248)]
    faults = {fault.error: fault for fault in log.verify() if fault.segment_base_offset == 40}
    assert faults.keys() == {"tier_gap", "unreadable_tier"}
    what = "expected a segment of offsets 40 to 123, by __remote_log_metadata, found none"
    assert what in faults["unreadable_tier"].message


def test_metadata_that_cannot_be_read(root: Path):
    path = metadata(root)
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    append(root, b"\1\1\0")
    (fault,) = [fault for fault in opened(root).verify() if fault.error == "unreadable_tier"]
    assert f"__remote_log_metadata-0/{0:020d}.log: 2 records or batches of it cannot be read" in fault.message
    assert offsets(opened(root)) == list(range(248))
