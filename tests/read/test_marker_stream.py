"""Markers beside records: those that Kafka's own reader lists, each once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from golden_files import GOLDEN, by_file, lines, log_files
from kraftlog.layout.discover import discover
from kraftlog.read.marker_stream import MarkerStream

_SCENARIOS = ["groups", "transactions", "transactions_tv0", "transactions_hanging"]


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


def _stream(file: Path, **options: int) -> MarkerStream:
    (segment,) = discover(file).segments
    return MarkerStream(segment, **options)


@pytest.mark.parametrize("scenario", _SCENARIOS)
def test_all_markers(scenario: str) -> None:
    expected = _markers(scenario)
    assert sum(map(len, expected.values())) > 0
    for file, markers in expected.items():
        found = _stream(file).rest().to_pylist()
        assert [(row["offset"], row["control_type"]) for row in found] == markers


@pytest.mark.parametrize("scenario", _SCENARIOS)
def test_each_is_handed_out_once_and_not_too_early(scenario: str) -> None:
    for file, markers in _markers(scenario).items():
        stream, found = _stream(file), []
        last = max([offset for offset, _ in markers], default=0)
        for offset in range(0, last + 3, 3):
            new = [row["offset"] for row in stream.through(offset).to_pylist()]
            assert all(offset - 3 < each <= offset for each in new)
            found += new
        assert found == [offset for offset, _ in markers]
        assert stream.rest().num_rows == 0


def test_an_end_offset_cuts() -> None:
    ((file, markers),) = [item for item in _markers("groups").items() if item[1]]
    (first, _), *_ = markers
    assert _stream(file, end_offset=first).rest().num_rows == 0
    assert _stream(file, end_offset=first + 1).rest().num_rows == 1
