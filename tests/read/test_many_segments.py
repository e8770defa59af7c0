"""What read_committed does for each segment does not grow with their number: work is counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import kraftlog
from kraftlog.read.transaction_map import TransactionMap
from segments_of_transactions import SegmentsOfTransactions

FEW, MANY = 20, 80
MOST = 1.15  # times the work for one of few segments, for one of many


class Kept(dict[int, Any]):
    """What is kept of segments, and how many entries were asked for or gone over."""

    gone_over = 0

    def __contains__(self, key: object) -> bool:
        Kept.gone_over += 1
        return super().__contains__(key)

    def __iter__(self) -> Iterator[int]:
        Kept.gone_over += len(self)
        return super().__iter__()

    def keys(self) -> Any:
        Kept.gone_over += len(self)
        return super().keys()

    def values(self) -> Any:
        Kept.gone_over += len(self)
        return super().values()

    def items(self) -> Any:
        Kept.gone_over += len(self)
        return super().items()

    def copy(self) -> Any:
        Kept.gone_over += len(self)
        return super().copy()


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    make = TransactionMap.__init__

    def made(found: TransactionMap, *given: Any, **options: Any) -> None:
        make(found, *given, **options)
        found._opened, found._found = Kept(), Kept()

    monkeypatch.setattr(TransactionMap, "__init__", made)


def work(path: Path, *, segments: int) -> tuple[int, int]:
    """Return how many calls a reader makes, and how many kept entries it goes over."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    log = kraftlog.open(path)
    assert len(log.found.segments) == segments
    Kept.gone_over = 0
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        log.records(["offset"], isolation_level="read_committed", workers=1).to_table()
        log.last_stable_offsets()
    finally:
        sys.setprofile(before)
    return calls, Kept.gone_over


def written(folder: Path, segments: int, *, is_long: bool) -> None:
    """Write a log with a transaction over all segments, or one in each, which ends in the next."""
    log = SegmentsOfTransactions(folder)
    log.segment([("data", 1)])
    for number in range(1, segments - 1):
        log.segment([("plain",), ("data", 1)] if is_long else [("marker", number, "COMMIT"), ("data", number + 1)])
    log.segment([("marker", 1 if is_long else segments - 1, "ABORT"), ("plain",)])
    log.write_snapshots()


@pytest.mark.parametrize("has_snapshots", [True, False])
@pytest.mark.parametrize("is_long", [True, False])
def test_work_of_read_committed(tmp_path: Path, is_long: bool, has_snapshots: bool):
    found = {}
    for segments in (FEW, MANY):
        folder = tmp_path / str(segments) / "t-0"
        written(folder, segments, is_long=is_long)
        if not has_snapshots:
            for path in folder.glob("*.snapshot"):
                path.unlink()
        if segments == FEW:
            work(folder.parent, segments=segments)  # imports
        found[segments] = work(folder.parent, segments=segments)
    (few, few_over), (many, many_over) = found[FEW], found[MANY]
    assert many / MANY < few / FEW * MOST
    assert many_over / MANY < few_over / FEW * MOST
