"""Markers beside records: those that Kafka's own reader lists, each once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from golden_files import GOLDEN, by_file, lines, log_files
from kraftlog import schema
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import discover
from kraftlog.messages.last_records import Markers
from kraftlog.read.log_pass import Pass
from kraftlog.read.marker_stream import MarkerStream
from kraftlog.read.ranges import plan
from kraftlog.read.records import read_range

_SCENARIOS = ["groups", "transactions", "transactions_tv0", "transactions_hanging"]
_MARKER_BYTES = 78  # of a batch


def _markers(scenario: str) -> dict[Path, list[tuple[int, str]]]:
    answers: dict[str, list[dict[str, Any]]] = by_file(lines(GOLDEN / scenario / "expected" / "records.jsonl"))
    return {
        file: [
            (row["offset"], row["control_type"])
            for row in answers.get(str(file.relative_to(GOLDEN / scenario / "log")), [])
            if row["control_type"] in ("ABORT", "COMMIT")
        ]
        for file in log_files(GOLDEN / scenario)
    }


def _named(markers: Markers) -> list[tuple[int, str]]:
    names = ["COMMIT" if is_commit else "ABORT" for is_commit in markers.is_commit.tolist()]
    return list(zip(markers.offsets.tolist(), names, strict=True))


def _read(
    file: Path, faults: list[Fault], end_offset: int = NO_BOUND, **options: Any
) -> Iterator[tuple[pa.RecordBatch | None, Markers]]:
    """Yield record batches and the markers that come with each, then those behind the last."""
    segments = discover(file).segments
    bounds = ReadOptions(end_offset=end_offset, **options)
    stream = MarkerStream(end_offset)
    for part in plan(segments, bounds, None):
        columns = schema.RECORDS.select(["offset", "producer_id"])
        for batch in read_range(part, columns, Pass(bounds, faults), observe=stream.see):
            yield batch, stream.take()
    yield None, stream.take()


@pytest.mark.parametrize("scenario", _SCENARIOS)
def test_all_markers(scenario: str) -> None:
    expected = _markers(scenario)
    assert sum(map(len, expected.values())) > 0
    for file, markers in expected.items():
        assert [one for _, found in _read(file, []) for one in _named(found)] == markers


@pytest.mark.parametrize("batch_rows", [1, 3, 50])
@pytest.mark.parametrize("scenario", _SCENARIOS)
def test_each_comes_with_the_rows_around_it(scenario: str, batch_rows: int) -> None:
    for file, markers in _markers(scenario).items():
        before, all_found = -1, []
        for batch, found in _read(file, [], batch_rows=batch_rows):
            assert all(offset > before for offset in found.offsets.tolist())
            if batch is not None:
                before = batch.column("offset")[-1].as_py()
                assert batch.column("offset")[0].as_py() > max([one[0] for one in all_found], default=-1)
            all_found += _named(found)
        assert all_found == markers


def test_an_end_offset_cuts() -> None:
    ((file, markers),) = [item for item in _markers("groups").items() if item[1]]
    (first, _), *_ = markers
    assert not [one for _, found in _read(file, [], end_offset=first) for one in _named(found)]
    assert [one for _, found in _read(file, [], end_offset=first + 1) for one in _named(found)] == markers[:1]


@pytest.mark.parametrize("check_crc", [True, False])
def test_a_marker_with_a_wrong_checksum_does_not_count(tmp_path: Path, check_crc: bool) -> None:
    ((file, markers),) = [item for item in _markers("groups").items() if item[1]]
    (first, _), *others = markers
    data = bytearray(file.read_bytes())
    at = data.index(first.to_bytes(8) + (_MARKER_BYTES - 12).to_bytes(4))
    data[at + _MARKER_BYTES - 2] ^= 1  # its coordinator's epoch
    damaged = tmp_path / file.parent.name / file.name
    damaged.parent.mkdir()
    damaged.write_bytes(data)
    faults: list[Fault] = []
    assert [one for _, found in _read(damaged, faults, check_crc=check_crc) for one in _named(found)] == others
    assert [(fault.error, fault.base_offset) for fault in faults] == [("bad_crc", first)]
