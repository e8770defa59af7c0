"""``kraftlog export``: the same rows as ``records``, in files for each partition, day or hour."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.cli import time_folders
from kraftlog.cli.output import Writer, open_writer
from kraftlog.cli.time_folders import TimeFolders

CODECS = GOLDEN / "codecs" / "log"
ORDERS = GOLDEN / "transactions" / "log"
HOUR = 3_600_000
Command = Callable[..., Any]


def log_with(folder: Path, timestamps: list[int | None], *, batch_rows: int = 1000) -> Path:
    """Write a log with records at these times, in milliseconds; None is no timestamp."""
    partition = folder / "t-0"
    partition.mkdir(parents=True)
    data = b""
    for start in range(0, len(timestamps), batch_rows):
        some = timestamps[start : start + batch_rows]
        times = pa.array(some, pa.timestamp("ms", "UTC"))
        offsets = pa.array(range(start, start + len(some)))
        values = pa.array([str(offset).encode() for offset in range(start, start + len(some))])
        data += kraftlog.encode(pa.table({"offset": offsets, "value": values, "timestamp": times}))
    (partition / f"{0:020d}.log").write_bytes(data)
    return partition


def offsets_by_folder(output: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for path in sorted(output.rglob("*.parquet")):
        folder = str(path.parent.relative_to(output / "topic=t" / "partition=0"))
        found.setdefault(folder, []).extend(pq.ParquetFile(path).read()["offset"].to_pylist())
    return {folder: sorted(offsets) for folder, offsets in found.items()}


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "arrow"])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--start-offset", 20, "--end-offset", 60),
        ("-o", "-7"),
        ("--include-control", "--binary", "hex"),
        ("--no-check-crc", "--salvage"),
        ("--value-format", "hex", "--key-format", "base64"),
        ("--redact", "value=mask"),
        ("--isolation-level", "read_uncommitted"),
    ],
    ids=str,
)
def test_a_file_has_what_records_writes(
    kraftlog_command: Command, tmp_path: Path, form: str, options: tuple[object, ...]
) -> None:
    """With the same options; only the isolation level has another default."""
    if form in ("parquet", "arrow") and "--binary" in options:
        options = options[:1]
    arguments = ("-t", "orders", "-p", 0, *options)
    columns = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]
    columns += ["key_raw", "value_raw", "key_error", "value_error"] if "--value-format" in options else []
    level = () if "--isolation-level" in options else ("--isolation-level", "read_committed")
    done = kraftlog_command("export", ORDERS, tmp_path / "out", *arguments, "--format", form)
    assert done.returncode == 0, done.stderr
    one = tmp_path / f"one.{form}"
    asked = ("--columns", ",".join(columns), "--output", one)
    assert kraftlog_command("records", ORDERS, *arguments, *level, *asked).returncode == 0
    written = tmp_path / "out" / "topic=orders" / "partition=0" / f"records.{form}"
    assert written.read_bytes() == one.read_bytes()
    assert len(one.read_bytes()) > 100


def test_json_of_a_file_has_the_types_of_all_values(
    kraftlog_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As export has them: a sample is for what is shown as it is read."""
    monkeypatch.setattr("kraftlog.values.first_values._OF_A_PARTITION", 3)
    values = [b'{"id": 1}'] * 3 + [b'{"id": 2, "late": "x"}']
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(kraftlog.encode(pa.table({"value": values})))
    typed = ("--value-format", "json")
    output = tmp_path / "rows.jsonl"
    done = kraftlog_command("records", partition, *typed, "--output", output)
    assert (done.returncode, json.loads(output.read_text().splitlines()[3])["value"]["late"]) == (0, "x")
    assert kraftlog_command("records", partition, *typed, "--format", "jsonl").returncode == 1


def test_folders_of_days_and_hours(kraftlog_command: Command, tmp_path: Path) -> None:
    """UTC; before 1970 as well; records without a timestamp have the folder that readers take for null."""
    day = int(datetime(2026, 11, 26, tzinfo=UTC).timestamp()) * 1000
    partition = log_with(tmp_path / "log", [day, None, day - 1, day + 7 * HOUR, 0, day + 24 * HOUR - 1, None])
    null = "__HIVE_DEFAULT_PARTITION__"
    done = kraftlog_command("export", partition, tmp_path / "days", "--partition-by", "day")
    assert (done.returncode, done.stdout) == (0, "t: 7 records in 4 files\n")
    assert offsets_by_folder(tmp_path / "days") == {
        "day=1970-01-01": [4],
        "day=2026-11-25": [2],
        "day=2026-11-26": [0, 3, 5],
        f"day={null}": [1, 6],
    }
    hours = kraftlog_command(
        "export", partition, tmp_path / "hours", "--partition-by", "hour", "--columns", "offset,value"
    )
    assert hours.returncode == 0
    assert offsets_by_folder(tmp_path / "hours") == {
        "day=1970-01-01/hour=00": [4],
        "day=2026-11-25/hour=23": [2],
        "day=2026-11-26/hour=00": [0],
        "day=2026-11-26/hour=07": [3],
        "day=2026-11-26/hour=23": [5],
        f"day={null}/hour={null}": [1, 6],
    }
    (path, *_) = (tmp_path / "hours").rglob("*.parquet")
    assert pq.ParquetFile(path).schema_arrow.names == ["offset", "value"]
    read = ds.dataset(tmp_path / "days", format="parquet", partitioning="hive").to_table(["offset", "day"])
    assert {row["offset"] for row in read.to_pylist() if row["day"] is None} == {1, 6}


def test_the_timestamp_may_be_asked_for_as_well(kraftlog_command: Command, tmp_path: Path) -> None:
    partition = log_with(tmp_path / "log", [5, 6])
    options = ("--partition-by", "day", "--columns", "timestamp_ms,offset", "--format", "csv")
    assert kraftlog_command("export", partition, tmp_path / "out", *options).returncode == 0
    path = tmp_path / "out" / "topic=t" / "partition=0" / "day=1970-01-01" / "records.csv"
    assert path.read_text() == "timestamp_ms,offset\n5,0\n6,1\n"


def test_few_files_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of days that alternate, a further file continues a day whose file was closed; rows stay in order."""
    monkeypatch.setattr(time_folders, "MOST_OPEN_FILES", 3)
    is_open: set[Path] = set()
    most = [0]
    schema = pa.schema([("offset", pa.int64())])

    @contextmanager
    def opened(path: Path) -> Iterator[Writer]:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_open.add(path)
        most[0] = max(most[0], len(is_open))
        with open_writer("jsonl", str(path), schema, "text", force=False) as writer:
            yield writer
        is_open.remove(path)

    with TimeFolders(tmp_path, "day", "records.jsonl", opened) as folders:
        for offset, day in enumerate([*range(5), *range(5), 4, 2, 0]):
            rows = pa.record_batch([[offset]], schema=schema)
            folders.write(rows, pa.array([24 * HOUR * day + offset]))
    assert (most, is_open, folders.files) == ([3], set(), 11)
    first = tmp_path / "day=1970-01-01"
    assert {path.name: path.read_text() for path in first.iterdir()} == {
        "records.jsonl": '{"offset":0}\n',
        "records-1.jsonl": '{"offset":5}\n',
        "records-2.jsonl": '{"offset":12}\n',
    }
    last = (tmp_path / "day=1970-01-05" / "records-1.jsonl").read_text()
    assert last == '{"offset":9}\n{"offset":10}\n'
    with TimeFolders(tmp_path / "again", "day", "records.jsonl", opened) as folders:
        for day in (0, 1, 2, 0, 3, 0):  # the one that was used least recently is closed, not the oldest
            folders.write(pa.record_batch([[day]], schema=schema), pa.array([24 * HOUR * day]))
    assert folders.files == 4


def test_no_open_file_gets_its_name_when_an_export_fails(
    kraftlog_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left of the days that were open."""
    times: list[int | None] = [24 * HOUR * number for number in range(4)]
    partition = log_with(tmp_path / "log", times, batch_rows=1)
    path = partition / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    done = kraftlog_command("export", partition, tmp_path / "out", "--partition-by", "day", "--strict")
    assert done.returncode == 1
    assert "stored crc" in done.stderr
    assert [one for one in (tmp_path / "out").rglob("*") if one.is_file()] == []


@pytest.mark.parametrize(
    ("bounds", "most"),
    [
        ((), ""),
        (("--start-offset", 30), ""),
        (("--start-offset", 100_000), ""),
        (("--end-offset", 50), ""),
        (("-o", "-5"), ""),
        (("--include-control",), ""),
        (("--start-timestamp", "2024-01-01T00:01:00Z", "--end-timestamp", "2024-01-01T00:01:30Z"), "at most "),
    ],
    ids=str,
)
def test_the_note_counts_the_records_within_the_bounds(
    kraftlog_command: Command, tmp_path: Path, bounds: tuple[object, ...], most: str
) -> None:
    """As many as read_uncommitted writes in addition, without markers; aborted ones are not decoded for their times."""
    sums = []
    for level in ("read_committed", "read_uncommitted"):
        arguments = ("-t", "orders", "--columns", "offset,is_control", "--isolation-level", level, *bounds)
        done = kraftlog_command("export", ORDERS, tmp_path / level, *arguments)
        assert done.returncode == 0
        files = [pq.read_table(path) for path in (tmp_path / level).rglob("*.parquet")]
        sums.append(sum(rows["is_control"].to_pylist().count(False) for rows in files))
        if level == "read_committed":
            note = done.stderr.splitlines()[-1]
    assert note.startswith("read_committed: left out ")
    count = sum(int(number) for number in re.findall(r"([0-9]+) record", note))
    if most:
        assert f"{most}30 records of aborted transactions and 3 records from open" in note
        assert count > sums[1] - sums[0]
    else:
        assert (count, "at most" in note) == (sums[1] - sums[0], False)
