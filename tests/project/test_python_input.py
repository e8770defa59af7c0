"""What Python users give: times as text, paths as bytes, isolation levels."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN, lines

LOG = GOLDEN / "codecs" / "log" / "codec-lz4-0"
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "moment",
    [
        "2024-01-01T12:00:00Z",
        "2024-01-01T12:00:00+00:00",
        "2024-01-01 13:00+01:00",
        "2024-01-01T12:00:00.000",
        "20240101T120000Z",
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(timezone(timedelta(hours=-5))),
        int(NOON.timestamp() * 1000),
    ],
    ids=str,
)
def test_times(moment: datetime | str | int):
    answers = lines(GOLDEN / "codecs" / "expected" / "records.jsonl")
    noon = int(NOON.timestamp() * 1000)
    expected = [row["offset"] for row in answers if "codec-lz4-0/" in row["file"] and row["timestamp"] >= noon]
    found = kraftlog.open(LOG).records(["offset"], start_timestamp=moment).to_table()["offset"].to_pylist()
    assert found == expected != []


def test_what_is_no_time():
    log = kraftlog.open(LOG)
    with pytest.raises(ValueError, match="timestamp 'noon' is not a time such as 2026-11-21T08:00:00Z"):
        log.records(start_timestamp="noon")
    with pytest.raises(TypeError, match=r"timestamp 1\.5 is not a datetime, text such as"):
        log.records(end_timestamp=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("paths", [b"logs/orders-0", [b"logs/orders-0"]])
def test_bytes_are_no_path(paths: object):
    text = (
        r"path b'logs/orders-0' is neither a str nor an os.PathLike; os.fsdecode makes text of bytes: 'logs/orders-0'"
    )
    with pytest.raises(TypeError, match=text):
        kraftlog.open(paths)  # type: ignore[arg-type]


def of_epoch(path: str) -> kraftlog.MetadataLogWriter:
    return kraftlog.MetadataLogWriter(path, 1)


def test_an_empty_path():
    """What an unset variable of a script leaves: no reader and no writer takes it for the current folder."""
    makers: list[Callable[[str], object]] = [kraftlog.open, kraftlog.LogStore, of_epoch]
    for make in [*makers, lambda path: kraftlog.extract(LOG, path)]:
        with pytest.raises(ValueError, match="expected a path, found an empty text"):
            make("")


def test_what_is_written_is_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    makers: list[Callable[[str], object]] = [kraftlog.LogStore, of_epoch]
    for make in [*makers, lambda path: kraftlog.extract(LOG, path)]:
        with pytest.raises(ValueError, match="expected a local path; only local files can be changed"):
            make("s3://bucket/logs")
    kraftlog.LogStore(f"file://{tmp_path}/store").close()
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("paths", [7, None, [None]])
def test_what_is_no_path(paths: object):
    with pytest.raises(TypeError, match=r"is neither a str nor an os\.PathLike"):
        kraftlog.open(paths)  # type: ignore[arg-type]


def takes_options(owner: object) -> Iterator[tuple[str, Callable[..., object], list[str]]]:
    """Return what takes options by name: its own name, and the names of what has to be given besides."""
    for name in dir(owner):
        taker = getattr(owner, name)
        if name.startswith("_") or not callable(taker):
            continue
        try:
            given = inspect.signature(taker).parameters.values()
        except ValueError:  # of classes that are built in, or compiled
            continue
        if any(one.kind is one.VAR_KEYWORD for one in given):
            positional = (one for one in given if one.kind is one.POSITIONAL_OR_KEYWORD)
            yield name, taker, [one.name for one in positional if one.default is one.empty]


def test_an_option_that_nobody_knows_is_refused_at_the_call(tmp_path: Path):
    known = {"path": tmp_path / "new", "paths": LOG, "log": LOG, "count": 1, "unit": "hour", "faults": []}
    named, names = {"grep": {"value": "text"}}, set()
    for owner in (kraftlog, kraftlog.open(LOG)):
        for name, taker, needed in takes_options(owner):
            names.add(name)
            with pytest.raises(TypeError, match="start_ofset"):
                taker(*(known[one] for one in needed), **named.get(name, {}), start_ofset=1)
    assert {"LogStore", "batches", "follow", "grep", "messages", "partition_transactions", "scan", "writes"} <= names
    assert not (tmp_path / "new").exists()


def test_paths_of_other_kinds(tmp_path: Path):
    class Named:
        def __fspath__(self) -> str:
            return str(LOG)

    assert kraftlog.open(Named()).segments_count == kraftlog.open({LOG: 1}.keys()).segments_count == 2


def test_deleted_segments_say_so(tmp_path: Path):
    folder = tmp_path / "codec-lz4-0"
    folder.mkdir()
    for name, suffix in (("00000000000000000000.log", ""), ("00000000000000000341.log", ".deleted")):
        (folder / f"{name}{suffix}").write_bytes((LOG / name).read_bytes())
    rows = kraftlog.open(tmp_path).segments().to_pylist()
    found = [(row["base_offset"], row["state"], row["records"]) for row in rows]
    assert found == [(0, "live", 341), (341, "deleted", None)]
