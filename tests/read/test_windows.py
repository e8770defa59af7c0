"""A reader of a file through windows comes to what a reader of the whole file comes to, damaged or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN, damaged_cases, name_of
from kraftlog import schema
from kraftlog._native.lookahead import Lookahead
from kraftlog._native.scanner import HEADER_DTYPE, header_at
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.local_file import LocalFile
from kraftlog.errors import Fault, InputError
from kraftlog.types import Buffer, InputFile

FILES = sorted({file for case in damaged_cases() for file in (case / "log").rglob("*.log")})
SOUND = sorted((GOLDEN / "codecs" / "log").rglob("*.log")) + sorted((GOLDEN / "legacy" / "log").rglob("*.log"))
COLUMNS = schema.RECORDS.select(["key", "value", "offset", "timestamp", "headers", "position"])


class ObjectFile:
    """A file without a descriptor: what a remote file, or one of another ``Disk``, is to the native code."""

    def __init__(self, data: bytes, window_bytes: int) -> None:
        self.path, self.size, self.window_bytes, self.long_batch = "memory", len(data), window_bytes, 100
        self._data = data

    def read(self, start: int, end: int) -> bytes:
        return self._data[start:end]

    def read_into(self, target: memoryview, start: int) -> None:
        target[:] = self._data[start : start + len(target)]


def rows_of(source: Buffer | InputFile, start: int = 0, end: int = NO_BOUND) -> tuple[pa.Table, list[Fault], int]:
    faults: list[Fault] = []
    decoder = RecordDecoder(source, start, end, DecodePlan(COLUMNS, ReadOptions(include_control=True)))
    return pa.Table.from_batches(decoder.batches(faults), COLUMNS), faults, decoder.torn_at


def headers_of(source: Buffer | InputFile, **checks: bool) -> tuple[list[object], list[Fault], int]:
    scan = HeaderScan(source, **checks)
    headers = np.concatenate([np.empty(0, HEADER_DTYPE), *scan.headers(7)])
    return headers.tolist(), scan.faults, scan.torn_at


def compare(path: Path, window_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalFile, "window_bytes", window_bytes, raising=False)
    monkeypatch.setattr(LocalFile, "long_batch", 100, raising=False)
    data = path.read_bytes()
    rows, faults, torn_at = rows_of(data)
    for make in (lambda: LocalFile(path), lambda: ObjectFile(data, window_bytes)):
        found = rows_of(make())
        assert found[0].equals(rows)
        assert found[1:] == (faults, torn_at)
        for checks in ({}, {"check_crc": True}, {"check_control": True}):
            assert headers_of(make(), **checks) == headers_of(data, **checks)
        ahead, whole = Lookahead(make(), False), Lookahead(data, False)
        assert ahead.run(NO_BOUND)[1].tolist() == whole.run(NO_BOUND)[1].tolist()
        assert ahead.open().tolist() == whole.open().tolist()
    positions = [header[0] for header in headers_of(data)[0]]
    for start, end in zip(positions, [*positions[3:], NO_BOUND, NO_BOUND, NO_BOUND], strict=False):
        assert rows_of(LocalFile(path), start, end)[0].equals(rows_of(data, start, end)[0])
        assert header_at(LocalFile(path), start).tolist() == header_at(data, start).tolist()


@pytest.mark.parametrize("window_bytes", [1, 777])
@pytest.mark.parametrize("path", FILES, ids=lambda path: name_of(path.parents[1]))
def test_damaged(path: Path, window_bytes: int, monkeypatch: pytest.MonkeyPatch):
    compare(path, window_bytes, monkeypatch)


@pytest.mark.parametrize("window_bytes", [1, 5000])
@pytest.mark.parametrize("path", SOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_sound(path: Path, window_bytes: int, monkeypatch: pytest.MonkeyPatch):
    compare(path, window_bytes, monkeypatch)


def log_of(folder: Path, count: int, base_offset: int = 0) -> Path:
    path = folder / "orders-0" / "00000000000000000000.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(kraftlog.encode(pa.table({"value": [b"x" * 1000] * count}), base_offset=base_offset))
    return path


def test_a_file_that_is_truncated_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LocalFile, "window_bytes", 64 << 10, raising=False)
    path = log_of(tmp_path, 4000)
    size = path.stat().st_size
    # by default it depends on the cache of the processor how much of the file the first batch of rows takes
    stream = kraftlog.open(path.parent).records(["offset"], batch_bytes=1 << 20)
    batches = stream.batches()
    offsets = next(batches)["offset"].to_pylist()
    with path.open("r+b") as file:
        file.truncate(size - 100_000)
    for batch in batches:
        offsets += batch["offset"].to_pylist()
    assert offsets == [*range(len(offsets))]
    (fault,) = stream.faults
    assert fault.error == "unreadable_file"
    assert (fault.position or 0) + (fault.size_in_bytes or 0) == size
    assert f"found {size - 100_000}: the file was truncated after it was listed" in fault.message


def test_a_file_that_is_truncated_and_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LocalFile, "window_bytes", 64 << 10, raising=False)
    path = log_of(tmp_path, 4000)
    file = LocalFile(path)
    decoder = RecordDecoder(file, 0, NO_BOUND, DecodePlan(COLUMNS, ReadOptions(batch_rows=100)))
    batches = decoder.batches([])
    offsets = next(batches)["offset"].to_pylist()
    log_of(tmp_path, 5000, base_offset=7000)
    with pytest.raises(InputError, match="were truncated and written again meanwhile") as caught:
        offsets.extend(offset for batch in batches for offset in batch["offset"].to_pylist())
    assert offsets == [*range(len(offsets))]
    assert caught.value.position < file.size


def transactions_of(batches_of_each: list[int], value: bytes) -> list[bytes]:
    """Batches of one record each, of committed transactions one after the other."""
    of_producer = {"producer_id": 3, "producer_epoch": 0}
    parts: list[bytes] = []
    for count in batches_of_each:
        for _ in range(count):
            rows = pa.table({"value": [value]})
            parts.append(
                bytes(
                    kraftlog.encode(
                        rows, base_offset=len(parts), base_sequence=len(parts), is_transactional=True, **of_producer
                    )
                )
            )
        parts.append(bytes(kraftlog.encode_marker("COMMIT", base_offset=len(parts), **of_producer)))
    return parts


def committed_of(path: Path, batch_rows: int) -> RecordDecoder:
    options = ReadOptions(isolation_level="read_committed", batch_rows=batch_rows)
    plan = DecodePlan(schema.RECORDS.select(["offset"]), options)
    return RecordDecoder(LocalFile(path), 0, NO_BOUND, plan, follows=True)


def test_a_file_that_is_written_again_behind_transactions_that_were_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The header that the decoder is at is still there; the last one in the window is not."""
    monkeypatch.setattr(LocalFile, "window_bytes", 64 << 10, raising=False)
    parts = transactions_of([100] * 10, b"x" * 1000)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(parts))
    batches = committed_of(path, batch_rows=10).batches([])
    offsets = next(batches)["offset"].to_pylist()
    kept = b"".join(parts[:103])  # the first two batches of the second transaction are still the same
    path.write_bytes(kept + kraftlog.encode(pa.table({"value": [b"x" * 1000] * 1000}), base_offset=7000))
    with pytest.raises(InputError, match="were truncated and written again meanwhile"):
        offsets.extend(offset for batch in batches for offset in batch["offset"].to_pylist())
    assert offsets == [*range(100)]


def test_a_file_that_is_written_again_behind_headers_that_were_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The last header that was looked at in the window is still there; the one that the decoder is at is not."""
    monkeypatch.setattr(LocalFile, "window_bytes", 16 << 10, raising=False)
    counts = [281, 200]  # more than is held of the first; the window ends in the first batch of the second
    parts = transactions_of(counts, b"x" * 1000)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(parts))
    batches = committed_of(path, batch_rows=1).batches([])
    offsets: list[int] = []
    while len(offsets) < counts[0] - 1:
        offsets.extend(next(batches)["offset"].to_pylist())
    path.write_bytes(b"".join(parts[: counts[0]] + transactions_of(counts, b"y" * 1000)[counts[0] :]))
    with pytest.raises(InputError, match="were truncated and written again meanwhile"):
        offsets.extend(offset for batch in batches for offset in batch["offset"].to_pylist())
    assert offsets == [*range(counts[0])]


def test_what_is_appended_after_the_listing_does_not_count(tmp_path: Path):
    path = log_of(tmp_path, 10)
    log = kraftlog.open(path.parent)
    with path.open("ab") as file:
        file.write(kraftlog.encode(pa.table({"value": [b"later"]}), base_offset=10))
    assert log.records(["offset"]).to_table()["offset"].to_pylist() == [*range(10)]
    assert kraftlog.open(path.parent).records(["offset"]).to_table().num_rows == 11
