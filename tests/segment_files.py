"""Small partitions that tests write, and damage."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import kraftlog

RECORDS_A_SEGMENT = 10
_BYTE = 100  # within the records of the first batch


def write_partition(folder: Path, *, segments: int = 1) -> None:
    """Write segments of ten records of different values."""
    folder.mkdir(parents=True)
    for number in range(segments):
        base_offset = number * RECORDS_A_SEGMENT
        values = [f"{folder.name} {base_offset + index}".encode() for index in range(RECORDS_A_SEGMENT)]
        data = kraftlog.encode(pa.table({"value": values}), base_offset=base_offset, timestamp_ms=1_700_000_000_000)
        (folder / f"{base_offset:020d}.log").write_bytes(data)


def flip(path: Path) -> None:
    """Flip the bits of a byte, so that the checksum is wrong; a second time makes it right again."""
    data = bytearray(path.read_bytes())
    data[_BYTE] ^= 0xFF
    path.write_bytes(data)
