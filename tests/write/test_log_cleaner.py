"""What the cleaner leaves of single segments; ``tests/interop/test_cleaner.py`` compares random logs with Kafka's."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import Disk, use_disk
from kraftlog.disk.local_file import LocalFile
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.write import log_cleaner
from kraftlog.write.cleaned_transactions import CleanedTransactions, aborted_transactions
from kraftlog.write.log_cleaner import CleanOptions, LogCleaner
from kraftlog.write.replaced_segments import replace_segments, write_cleaned

OPTIONS = CleanOptions(now=1_700_000_000_000, delete_retention_ms=0, segment_bytes=1 << 20)


def write_segment(folder: Path, base_offset: int, keys: list[bytes | None]) -> None:
    """Write a segment with a batch for each key."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [pa.table({"key": pa.array([key], pa.binary()), "value": [b"v"]}) for key in keys]
    batches = [kraftlog.encode(row, base_offset=base_offset + number).to_pybytes() for number, row in enumerate(rows)]
    (folder / f"{base_offset:020d}.log").write_bytes(b"".join(batches))


def clean(folder: Path, count: int, options: CleanOptions = OPTIONS) -> list[tuple[int, int]]:
    """Clean the first segments; return the last offset and the number of records of each batch that is left."""
    log = PartitionFolder.of(folder).segments
    cleaner = LogCleaner(log[:count], log[count:], [], options)
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


@pytest.mark.parametrize(("kind", "data_go"), [("ABORT", True), ("COMMIT", False)])
def test_a_marker_goes_when_its_data_are_gone(tmp_path: Path, kind: str, data_go: bool) -> None:
    """Not with them: a crash between two segments would leave data without the marker that ends their transaction."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    producer = {"producer_id": 7, "producer_epoch": 0}
    data = kraftlog.encode(pa.table({"value": [b"v"] * 2}), **producer, base_sequence=0, is_transactional=True)
    marker = kraftlog.encode_marker(kind, **producer, base_offset=2)
    (folder / f"{0:020d}.log").write_bytes(data.to_pybytes() + marker.to_pybytes())
    aborted = aborted_transactions(PartitionFolder.of(folder).segments)
    (headers,) = HeaderScan((folder / f"{0:020d}.log").read_bytes()).headers()
    assert CleanedTransactions(aborted, 0).drops(headers).tolist() == [data_go, False]
    assert CleanedTransactions(aborted, 0).drops(headers[1:]).tolist() == [True]


def write_random_log(folder: Path, seed: int, keys: int) -> int:
    """Write segments of batches of some records, of transactions as well; return how many segments may be cleaned."""
    dice = random.Random(seed)
    offset, open_since = 0, 0
    for number in range(6):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{offset:020d}.log").open("wb") as file:
            for _ in range(dice.randint(1, 6)):
                names = [b"k%d" % dice.randrange(keys) if dice.random() < 0.95 else None for _ in range(9)]
                values = [b"v" if dice.random() < 0.8 else None for _ in names]
                rows = pa.table({"key": pa.array(names, pa.binary()), "value": pa.array(values, pa.binary())})
                is_transactional = number < 4 and dice.random() < 0.4
                producer = {"producer_id": 3, "producer_epoch": 0, "base_sequence": 0} if is_transactional else {}
                compression = dice.choice(["none", "lz4"])
                file.write(
                    kraftlog.encode(
                        rows,
                        base_offset=offset,
                        compression=compression,
                        is_transactional=is_transactional,
                        **producer,
                    )
                )
                offset += len(names)
                open_since += is_transactional
                if open_since and (dice.random() < 0.3 or number == 4):
                    kind = dice.choice(["ABORT", "COMMIT"])
                    file.write(kraftlog.encode_marker(kind, producer_id=3, producer_epoch=0, base_offset=offset))
                    offset, open_since = offset + 1, 0
    return 5


@pytest.mark.parametrize("seed", range(8))
def test_what_stays_does_not_depend_on_the_size_of_the_map(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Maps that are full after one key, after some, and never; from the first offset, and from a later one."""
    keys = [3, 40][seed % 2]
    count = write_random_log(tmp_path / "log" / "t-0", seed, keys)
    dirty = [0, 60][seed // 2 % 2]
    options = replace(OPTIONS, dirty_offset=dirty, segment_bytes=[1, 1 << 20][seed // 4])
    left = []
    for size, window in ((options.dedupe_buffer_size, 1 << 20), (1200, 700), (0, 700)):
        monkeypatch.setattr(log_cleaner, "_WINDOW_BYTES", window)
        folder = tmp_path / str(size) / "t-0"
        shutil.copytree(tmp_path / "log" / "t-0", folder)
        batches = clean(folder, count, replace(options, dedupe_buffer_size=size))
        left.append((batches, [(path.name, path.read_bytes()) for path in sorted(folder.glob("*.log"))]))
    assert left[1:] == left[:1] * 2


def test_no_more_than_a_window_of_a_segment_is_read_at_once(tmp_path: Path) -> None:
    """However long a segment is."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    rows = pa.table({"key": [b"k%06d" % number for number in range(60_000)], "value": [b"v" * 100] * 60_000})
    (folder / f"{0:020d}.log").write_bytes(kraftlog.encode(rows, max_batch_bytes=4096))
    write_segment(folder, 60_000, [b"k"])
    reads = []

    class Counted(LocalFile):
        def read(self, start: int, end: int) -> bytes:
            reads.append(end - start)
            return super().read(start, end)

    class Counting(Disk):
        def open(self, path: Path, size: int | None = None) -> Counted:  # type: ignore[override]
            return Counted(path, size)

    log = PartitionFolder.of(folder).segments
    with use_disk(Counting()):
        cleaner = LogCleaner(log[:1], log[1:], [], OPTIONS)
        pieces = [piece for group in cleaner.groups() for piece in cleaner.cleaned(group)]
    assert b"".join(pieces) == log[0].local_path.read_bytes()
    assert len(pieces) > log[0].size >> 20 > 3
    assert max(map(len, pieces)) <= 1 << 20
    assert max(reads) <= 1 << 20
