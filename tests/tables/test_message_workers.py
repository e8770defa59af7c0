"""Tables of messages with several workers: what they return, and what they note, is what one worker does."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import CorruptRecordError

COMMITS = GOLDEN / "groups" / "log"
FUTURE = GOLDEN / "coordinator_future" / "log"
METADATA = GOLDEN / "metadata" / "log"
TABLES = [(METADATA, "messages"), (METADATA, "PartitionRecord"), (METADATA, "LeaderChangeMessage")]
TABLES += [(COMMITS, "messages"), (COMMITS, "OffsetCommit")]


def _read(folder: Path, table: str, workers: int, **bounds: int) -> tuple[pa.Table, list[str], list[str]]:
    stream = kraftlog.open(folder).scan(table, None, ReadOptions(**bounds), workers=workers)
    return stream.to_table(), [fault.message for fault in stream.faults], stream.notes


@pytest.mark.parametrize(("folder", "table"), TABLES)
@pytest.mark.parametrize("workers", [2, 5])
def test_same_rows(folder: Path, table: str, workers: int):
    expected = _read(folder, table, 1)
    assert expected[0].num_rows
    assert _read(folder, table, workers, batch_rows=3) == expected


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("table", ["messages", "OffsetCommit"])
def test_faults_come_with_their_rows(table: str, workers: int):
    expected = _read(FUTURE, table, 1)
    assert expected[1]
    stream = kraftlog.open(FUTURE).scan(table, None, ReadOptions(batch_rows=1), workers=workers)
    rows = []
    for batch in stream.batches():
        rows.append(batch)
        for row in batch.filter(pc.is_valid(batch.column("error"))).to_pylist():
            is_noted = "unknown type" in row["error"]  # once, with how many there are
            assert is_noted or any(
                f"offset {row['offset']}: {row['error']}" in fault.message for fault in stream.faults
            )
    assert (pa.Table.from_batches(rows), [fault.message for fault in stream.faults], stream.notes) == expected


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("batch", [1, 20])
def test_what_comes_before_a_batch_that_cannot_be_read(workers: int, batch: int, tmp_path: Path):
    log = tmp_path / METADATA.name
    copytree(METADATA, log)
    headers = kraftlog.open(log).batches(["base_offset", "position", "size_in_bytes", "file"])
    bad = headers.filter(pc.match_substring(headers.column("file"), ".log")).slice(batch, 1).to_pylist()[0]
    path = log / bad["file"]
    content = bytearray(path.read_bytes())
    content[bad["position"] + bad["size_in_bytes"] - 1] ^= 1
    path.write_bytes(content)
    stream = kraftlog.open(log).scan("messages", ["offset"], ReadOptions(strict=True, batch_rows=1), workers=workers)
    offsets: list[int] = []
    with pytest.raises(CorruptRecordError, match="computed crc"):
        offsets.extend(offset for rows in stream.batches() for offset in rows.column("offset").to_pylist())
    before = kraftlog.open(METADATA).messages(["offset"], end_offset=bad["base_offset"]).to_table()
    assert offsets == before.column("offset").to_pylist()
