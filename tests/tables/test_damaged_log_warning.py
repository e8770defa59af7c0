"""Who reads a damaged log and does not look at its faults is warned once, where the stream ends."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog import DamagedLogWarning, Stream

DATA = bytearray(b"".join(kraftlog.encode(pa.table({"value": [b"a"]}), base_offset=n) for n in range(3)))
DATA[-1] ^= 1  # of the last of three batches


@pytest.fixture(params=["log", "buffer"])
def stream(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Stream]:
    """Return what opens a stream with a fault."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(DATA)
    if request.param == "buffer":
        return lambda **options: kraftlog.decode(bytes(DATA), columns=["offset"], **options)
    return lambda **options: kraftlog.open(folder).records(["offset"], **options)


def warned(caught: list[warnings.WarningMessage]) -> list[tuple[type[Warning], str]]:
    return [(one.category, Path(one.filename).name) for one in caught]


WAYS: dict[str, Callable[[Stream], object]] = {
    "table": lambda stream: stream.to_table(),
    "loop": lambda stream: [batch.num_rows for batch in stream],
    "pyarrow": lambda stream: pa.table(stream),
    "reader": lambda stream: stream.to_reader().read_all(),
    "two passes": lambda stream: (stream.to_table(), stream.to_table()),
    "the faults of the first pass": lambda stream: (stream.to_table(), stream.faults, stream.to_table()),
}


@pytest.mark.parametrize("way", WAYS)
def test_nobody_looks(stream: Callable[..., Stream], way: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WAYS[way](stream())
    (one,) = caught
    assert one.category is DamagedLogWarning
    assert "1 fault: " in str(one.message)
    assert "stored crc" in str(one.message)
    assert Path(one.filename) == Path(__file__)


def test_the_rest_of_a_loop(stream: Callable[..., Stream]) -> None:
    """Faults behind the rows that were taken are not known; those before them are."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = iter(stream())
        next(rows, None)
        for _ in rows:
            pass
        del rows
    assert len(caught) == 1


@pytest.mark.parametrize(
    "look",
    [
        lambda stream: (stream.to_table(), stream.faults),
        lambda stream: (stream.to_table(), stream.errors),
        lambda stream: ([*stream], stream.faults),
    ],
)
def test_who_looks_is_not_warned(stream: Callable[..., Stream], look: Callable[[Stream], object]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        look(stream())
    assert warned(caught) == []


@pytest.mark.parametrize("read", [lambda stream: stream.to_table(), lambda stream: [*stream]])
def test_a_fault_that_is_raised_is_looked_at(stream: Callable[..., Stream], read: Callable[[Stream], object]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(kraftlog.CorruptRecordError):
            read(stream(strict=True))
    assert warned(caught) == []


def test_who_reads_faults_as_rows_has_looked_at_them(tmp_path: Path) -> None:
    (folder := tmp_path / "t-0").mkdir()
    (folder / f"{0:020}.log").write_bytes(DATA)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert kraftlog.open(folder).errors().num_rows == 1
        assert kraftlog.open(folder).scan("errors").to_table().num_rows == 1
    assert warned(caught) == []


def test_a_sound_log_and_a_stream_that_nobody_reads(stream: Callable[..., Stream]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stream()
        kraftlog.decode(bytes(DATA[: len(DATA) * 2 // 3])).to_table()
        Stream.__new__(Stream)
    assert warned(caught) == []
