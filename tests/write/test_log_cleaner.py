"""What the cleaner leaves of single segments; ``tests/interop/test_cleaner.py`` compares random logs with Kafka's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import kraftlog
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.write.log_cleaner import CleanOptions, LogCleaner
from kraftlog.write.replaced_segments import replace_segments, write_cleaned

OPTIONS = CleanOptions(now=1_700_000_000_000, delete_retention_ms=0, segment_bytes=1 << 20)


def write_segment(folder: Path, base_offset: int, keys: list[bytes | None]) -> None:
    """Write a segment with a batch for each key."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [pa.table({"key": pa.array([key], pa.binary()), "value": [b"v"]}) for key in keys]
    batches = [kraftlog.encode(row, base_offset=base_offset + number).to_pybytes() for number, row in enumerate(rows)]
    (folder / f"{base_offset:020d}.log").write_bytes(b"".join(batches))


def clean(folder: Path, count: int) -> list[tuple[int, int]]:
    """Clean the first segments; return the last offset and the number of records of each batch that is left."""
    log = PartitionFolder.of(folder).segments
    cleaner = LogCleaner(log[:count], log[count:], [], OPTIONS)
    for group in cleaner.groups():
        replace_segments(folder, write_cleaned(folder, group[0].base_offset or 0, cleaner.cleaned(group)), group)
    rows = kraftlog.open(folder).batches(["last_offset", "records_count"]).to_pylist()
    return [(row["last_offset"], row["records_count"]) for row in rows]


def test_the_last_batch_of_a_round_stays_without_records(tmp_path: Path) -> None:
    """By it a reader knows where the cleaned part ends."""
    write_segment(tmp_path / "t-0", 0, [b"k", None, b"a", None])
    write_segment(tmp_path / "t-0", 4, [b"k"])
    assert clean(tmp_path / "t-0", 1) == [(0, 1), (2, 1), (3, 0), (4, 1)]


def test_behind_a_gap_no_batch_is_the_last_one(tmp_path: Path) -> None:
    """Where the next segment begins further on, an earlier cleaning has removed what was there."""
    write_segment(tmp_path / "t-0", 0, [b"k", None])
    write_segment(tmp_path / "t-0", 9, [b"k"])
    assert clean(tmp_path / "t-0", 1) == [(0, 1), (9, 1)]
