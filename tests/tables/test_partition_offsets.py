"""The offsets of partitions are those that the broker gave whose files these are."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN, lines
from golden_releases import LOGS, answers, folder_of

STATES = sorted(path for path in GOLDEN.glob("*/expected/broker_state.json") if "partitions" in path.read_text())
COMMITTED = "read_committed"


def known(state: Path) -> dict[str, dict[str, int]]:
    """Return what a broker said of those partitions whose files were kept."""
    partitions: dict[str, dict[str, int]] = json.loads(state.read_text()).get("partitions", {})
    return {name: answer for name, answer in partitions.items() if (state.parents[1] / "log" / name).exists()}


def found(log: Path, time: object = "latest", **options: str) -> dict[str, tuple[int | None, int | None]]:
    """Return offset and timestamp of each partition."""
    stream = kraftlog.open(log).partition_offsets(time, ["topic", "partition", "offset", "timestamp_ms"], **options)  # type: ignore[arg-type]
    rows = stream.to_table().to_pylist()
    assert not stream.faults
    return {f"{row['topic']}-{row['partition']}": (row["offset"], row["timestamp_ms"]) for row in rows}


@pytest.mark.parametrize("state", STATES, ids=lambda path: path.parts[-3])
def test_offsets_of_a_broker(state: Path):
    """Log start, end, last stable offset and largest timestamp; with compaction, deleted records, open transactions."""
    log, expected = state.parents[1] / "log", known(state)
    columns = {
        "log_start_offset": found(log, "earliest"),
        "high_watermark": found(log),
        "last_stable_offset": found(log, isolation_level=COMMITTED),
    }
    for name, offsets in columns.items():
        there = {partition: answer[name] for partition, answer in expected.items()}
        assert {partition: offsets[partition][0] for partition in there} == there, name
    largest = found(log, "max-timestamp")
    for partition, answer in expected.items():
        offset = None if answer["offset_of_max_timestamp"] == -1 else answer["offset_of_max_timestamp"]
        timestamp = None if offset is None else answer["max_timestamp"]
        assert largest[partition] == (offset, timestamp), partition


def test_there_are_answers():
    assert len(STATES) > 5
    assert sum(len(known(state)) for state in STATES) > 15


@pytest.mark.parametrize("name", ["transactions", "deleted_records", "codecs"])
def test_offsets_at_a_time(name: str):
    """The first record of the log, from its start on, that is as late or later."""
    folder = GOLDEN / name
    every = [row for row in lines(folder / "expected" / "records.jsonl") if ".log" in row["file"]]
    starts = {key: offset for key, (offset, _) in found(folder / "log", "earliest").items()}
    partitions: dict[str, list[tuple[int, int]]] = {key: [] for key in starts}
    for row in every:
        partition = Path(row["file"]).parent.name
        if partition in partitions and row["file"].endswith(".log") and row["offset"] >= starts[partition]:
            partitions[partition].append((row["offset"], row["timestamp"]))
    stamps = sorted({stamp for rows in partitions.values() for _, stamp in rows})
    for stamp in [*stamps[:: len(stamps) // 12], stamps[-1], stamps[-1] + 1]:
        later = {key: [row for row in sorted(rows) if row[1] >= stamp] for key, rows in partitions.items()}
        assert found(folder / "log", stamp) == {key: rows[0] if rows else (None, None) for key, rows in later.items()}


def test_nothing_is_told_behind_the_last_stable_offset():
    """Of a record behind it a read_committed consumer learns nothing, as from a broker."""
    log = GOLDEN / "transactions" / "log"
    assert found(log, "max-timestamp")["orders-1"] == (67, 1795230811630)
    assert found(log, "max-timestamp", isolation_level=COMMITTED)["orders-1"] == (None, None)


@pytest.mark.parametrize(("release", "state"), LOGS)
def test_ends_that_consumers_of_other_releases_reached(release: str, state: str):
    """Of all formats; of a broker that was killed as well."""
    log = folder_of(release, state) / "log"
    ends = answers(release, state, "end")
    assert ends
    for level in ("read_uncommitted", COMMITTED):
        said = {f"{row['topic']}-{row['partition']}": row for row in ends if row["isolation_level"] == level}
        for time, name in (("latest", "end"), ("earliest", "log_start_offset")):
            offsets = found(log, time, isolation_level=level)
            assert {partition: offsets[partition][0] for partition in said} == {
                partition: row[name] for partition, row in said.items()
            }


def test_columns_on_request():
    names = ["topic", "log_start_offset", "last_stable_offset", "log_end_offset"]
    log = kraftlog.open(GOLDEN / "deleted_records" / "log", topics=["orders-del-7"], partitions=[0])
    assert log.partition_offsets(columns=names).to_table().to_pylist() == [
        {"topic": "orders-del-7", "log_start_offset": 91, "last_stable_offset": 169, "log_end_offset": 169}
    ]


def test_times_are_moments_too():
    log = GOLDEN / "transactions" / "log"
    moment = datetime.fromtimestamp(1704067268, UTC)
    assert found(log, moment) == found(log, 1704067268000)
    with pytest.raises(ValueError, match="time 'lately' is not one of earliest, latest, max-timestamp"):
        found(log, "lately")


def test_a_damaged_end_is_a_fault(tmp_path: Path):
    """The end is behind the last sound batch, and the damage is told; a torn tail is none."""
    source = GOLDEN / "damaged" / "good" / "log" / "t-0" / f"{0:020}.log"
    (tmp_path / "t-0").mkdir()
    target = tmp_path / "t-0" / source.name
    shutil.copy(source, target)
    whole = kraftlog.open(target).batches()
    last = whole.num_rows - 1
    target.write_bytes(source.read_bytes()[:-3])
    assert found(tmp_path)["t-0"][0] == whole["base_offset"][last].as_py()
    data = bytearray(source.read_bytes())
    data[-1] ^= 1
    target.write_bytes(data)
    stream = kraftlog.open(tmp_path).partition_offsets(strict=False)
    assert stream.to_table()["offset"].to_pylist() == [whole["base_offset"][last].as_py()]
    assert [fault.error for fault in stream.faults] == ["bad_crc"]
    with pytest.raises(kraftlog.CorruptRecordError):
        kraftlog.open(tmp_path).partition_offsets().to_table()


def test_an_empty_partition(tmp_path: Path):
    """Its log starts and ends with its segment; there is no record."""
    (tmp_path / "empty-0").mkdir()
    (tmp_path / "empty-0" / f"{7:020}.log").touch()
    assert found(tmp_path) == found(tmp_path, "earliest") == {"empty-0": (7, None)}
    assert found(tmp_path, "max-timestamp") == found(tmp_path, 0) == {"empty-0": (None, None)}


def test_a_checkpoint_that_cannot_be_read_is_told_of_each_topic(tmp_path: Path):
    shutil.copytree(GOLDEN / "deleted_records" / "log", tmp_path / "log")
    (tmp_path / "log" / "log-start-offset-checkpoint").write_text("9\n")
    stream = kraftlog.open(tmp_path / "log", topics=["orders-del-7"]).partition_offsets("earliest", strict=False)
    assert stream.to_table().num_rows == 2
    assert [fault.error for fault in stream.faults] == ["bad_checkpoint"]


@pytest.mark.parametrize("largest", [0, 1, 2**63 - 2, 2**63 - 1])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_the_largest_timestamps_there_are(largest: int, compression: str, tmp_path: Path):
    """Kafka compares timestamps as they are: the last one that a field can hold is found as others are."""
    (tmp_path / "t-0").mkdir()
    rows = pa.table({"value": [b"a", b"b", b"c"], "timestamp_ms": pa.array([0, largest, largest], pa.int64())})
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(kraftlog.encode(rows, compression=compression))
    first = 0 if largest == 0 else 1
    assert found(tmp_path, "max-timestamp") == found(tmp_path, largest) == {"t-0": (first, largest)}
