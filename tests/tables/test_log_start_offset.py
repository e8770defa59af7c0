"""The log start offset: what a consumer gets, in every way of reading, and what a damaged checkpoint does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.codec.options import ReadOptions
from kraftlog.spark.data_loss import DataLossError
from kraftlog.spark.follow import LogFollower
from kraftlog.spark.options import parse_request
from kraftlog.spark.task import plan_tasks, read_part

SCENARIO = GOLDEN / "deleted_records"
LOG = SCENARIO / "log"
LEVELS = ("read_uncommitted", "read_committed")
START = 91  # of orders-del-7-0, inside of a batch; its first segment begins at offset 61

Row = tuple[str, int, int]


def consumed(level: str) -> list[Row]:
    """Return what the real consumer got."""
    answers = lines(SCENARIO / "expected" / f"consumer_{level}.jsonl")
    return sorted((row["topic"], row["partition"], row["offset"]) for row in answers if "offset" in row)


def records(path: Path, **options: object) -> list[Row]:
    table = kraftlog.open(path).records(["topic", "partition", "offset"], **options).to_table()  # type: ignore[arg-type]
    return [(row["topic"], row["partition"], row["offset"]) for row in table.to_pylist()]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("workers", [1, 3])
def test_records_are_those_of_a_consumer(level: str, workers: int):
    expected = consumed(level)
    assert records(LOG, isolation_level=level, workers=workers) == expected
    alone = [row for row in expected if row[1] == 0]
    assert records(LOG / "orders-del-7-0", isolation_level=level, workers=workers) == alone
    if level == "read_uncommitted":  # a file alone does not say how a transaction ends in the next one
        files = sorted((LOG / "orders-del-7-0").glob("*.log"))
        assert [row for file in files for row in records(file)] == alone


@pytest.mark.parametrize("level", LEVELS)
def test_include_deleted(level: str):
    log = kraftlog.open(LOG / "orders-del-7-0")
    hides = log.records(["offset"], isolation_level=level)
    shown = log.records(["offset"], isolation_level=level, include_deleted=True)
    every = shown.to_table()["offset"].to_pylist()
    assert hides.to_table()["offset"].to_pylist() == [offset for offset in every if offset >= START]
    assert [offset for offset in every if offset < START]
    assert shown.notes == []


def test_the_note_says_how_many():
    log = kraftlog.open(LOG / "orders-del-7-0")
    deleted = [offset for _, _, offset in records(LOG / "orders-del-7-0", include_deleted=True) if offset < START]

    def notes(**options: int) -> list[str]:
        stream = log.records(["offset"], **options)  # type: ignore[arg-type]
        stream.to_table()
        return stream.notes

    before = "before the log start offset 91"
    assert notes() == [f"orders-del-7-0: {len(deleted)} records {before} are not shown; include_deleted shows them"]
    assert notes(start_offset=deleted[-1]) == [
        f"orders-del-7-0: 1 record {before} is not shown; include_deleted shows it"
    ]
    assert notes(start_offset=deleted[3], end_offset=deleted[5]) == [
        f"orders-del-7-0: 2 records {before} are not shown; include_deleted shows them"
    ]
    assert notes(start_offset=START) == []


@pytest.mark.parametrize("start_offset", [0, 61, 70, 90, 91, 92, 126])
def test_a_start_offset_before_it_reads_from_it(start_offset: int):
    every = [row for row in consumed("read_uncommitted") if row[1] == 0]
    got = records(LOG / "orders-del-7-0", start_offset=start_offset)
    assert got == [row for row in every if row[2] >= start_offset]


def test_tables_of_files_show_what_is_on_disk():
    log = kraftlog.open(LOG / "orders-del-7-0")
    assert log.segments(["base_offset"])["base_offset"].to_pylist() == [0, 61, 126]
    expected = [
        row["base_offset"] for row in lines(SCENARIO / "expected" / "batches.jsonl") if "del-7-0/" in row["file"]
    ]
    live = [offset for offset in expected if offset >= 61]
    assert log.batches(["base_offset"])["base_offset"].to_pylist() == live
    assert min(log.index_entries(["offset"])["offset"].to_pylist()) < START


@pytest.mark.parametrize("start", [91, 130, 145, 160, 169])
def test_producers_before_it_are_not_known(tmp_path: Path, start: int):
    """As a broker that rebuilds them: of snapshots only those behind the log start offset count."""
    copy = Path(shutil.copytree(LOG, tmp_path / "log"))
    (copy / "log-start-offset-checkpoint").write_text(f"0\n1\norders-del-7 0 {start}\n")
    log = kraftlog.open(copy / "orders-del-7-0")
    if start > 126:
        batches = log.batches(["producer_id", "last_offset"]).to_pylist()
        expected = sorted({row["producer_id"] for row in batches if row["last_offset"] >= start} - {-1})
    else:
        expected = [0, 1]
    assert log.producers(["producer_id"])["producer_id"].to_pylist() == expected
    shown = log.scan("producers", ["producer_id"], ReadOptions(include_deleted=True)).to_table()
    assert shown["producer_id"].to_pylist() == [0, 1]


def test_messages(tmp_path: Path):
    copy = Path(shutil.copytree(GOLDEN / "groups" / "log", tmp_path / "log"))
    log = kraftlog.open(copy, topics=["__consumer_offsets"])
    columns = ["partition", "offset", "type", "key", "value"]
    every = log.messages(columns).to_table().to_pylist()
    counts = {row["partition"]: row["offset"] for row in every}
    partition = max(counts, key=lambda number: counts[number])
    start = counts[partition] - 5
    (copy / "log-start-offset-checkpoint").write_text(f"0\n1\n__consumer_offsets {partition} {start}\n")
    log = kraftlog.open(copy, topics=["__consumer_offsets"])
    stream = log.messages(columns)
    expected = [row for row in every if row["partition"] != partition or row["offset"] >= start]
    assert stream.to_table().to_pylist() == expected
    assert [note for note in stream.notes if "before the log start offset" in note]
    assert log.messages(columns, include_deleted=True).to_table().to_pylist() == every
    types = log.messages(["partition", "offset"], type="OffsetCommit").to_table().to_pylist()
    of_type = [row for row in expected if row["type"] == "OffsetCommit"]
    assert types == [{"partition": row["partition"], "offset": row["offset"]} for row in of_type]
    # the coordinator reads from the log start offset, too
    left = {row["key"] for row in expected if row["type"] == "OffsetCommit" and row["value"] is not None}
    assert log.offsets().num_rows <= len(left)


def test_transactions_that_ended_before_it_are_not_shown():
    log = kraftlog.open(LOG / "orders-del-7-0")
    every = log.partition_transactions(["first_offset", "marker_offset"], include_deleted=True).to_pylist()
    assert [row["marker_offset"] for row in every if row["marker_offset"] < START]
    shown = log.partition_transactions(["first_offset", "marker_offset"]).to_pylist()
    assert shown == [row for row in every if row["marker_offset"] >= START]
    assert any(row["first_offset"] < START for row in shown)  # begun before it, ended behind it


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n", "line 1: expected version 0, found ''"),
        (b"1\n0\n", "line 1: expected version 0, found '1'"),
        (b"0\n2\norders-del-7 0 91\n", "line 2: expected 2 entries, found 1"),
        (b"0\n1\norders-del-7 0\n", "line 3: expected 3 words, found 2"),
        (b"0\n1\norders-del-7 0 x\n", "line 3: expected a number, found 'x'"),
        (b"0\n1\norders-del-7 0 99999999999999999999\n", "line 3: 99999999999999999999 does not fit 64 bits"),
        (b"0\n1\n\xff 0 91\n", "byte 4: expected UTF-8"),
    ],
)
def test_a_damaged_checkpoint_hides_nothing(tmp_path: Path, content: bytes, message: str):
    copy = Path(shutil.copytree(LOG, tmp_path / "log"))
    (copy / "log-start-offset-checkpoint").write_bytes(content)
    log = kraftlog.open(copy)
    stream = log.records(["offset"])
    assert stream.to_table().num_rows == len(records(LOG, include_deleted=True))
    assert [(fault.error, fault.message) for fault in stream.faults] == [
        ("bad_checkpoint", f"log/log-start-offset-checkpoint: log-start-offset-checkpoint: {message}")
    ]
    assert "bad_checkpoint" in log.errors()["error"].to_pylist()
    with pytest.raises(kraftlog.CorruptRecordError, match="log-start-offset-checkpoint"):
        log.records(["offset"], strict=True).to_table()


def spark_rows(**options: str) -> list[Row]:
    request = parse_request({"path": str(LOG), "columns": "topic,partition,offset", **options})
    rows: list[Row] = []
    for part in plan_tasks(request):
        for batch in read_part(request, part, []):
            rows += [tuple(row.values()) for row in batch.to_pylist()]
    return sorted(rows)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("range_bytes", ["500", "1g"])
def test_spark_tasks(level: str, range_bytes: str):
    assert spark_rows(isolationLevel=level, rangeBytes=range_bytes) == consumed(level)
    shown = spark_rows(isolationLevel=level, rangeBytes=range_bytes, includeDeleted="true")
    assert shown == records(LOG, isolation_level=level, include_deleted=True)


def test_spark_an_offset_before_it_is_lost_data():
    with pytest.raises(ValueError, match="asks for offset 70, but the log begins at 91"):
        spark_rows(subscribe="orders-del-7", startingOffsets='{"orders-del-7": {"0": 70, "1": -2}}')
    given = {"subscribe": "orders-del-7", "startingOffsets": '{"orders-del-7": {"0": 70, "1": -2}}'}
    assert spark_rows(**given, failOnDataLoss="false") == consumed("read_uncommitted")
    assert (("orders-del-7", 0, 70) in spark_rows(**given, includeDeleted="true")) is True


@pytest.mark.parametrize("level", LEVELS)
def test_streaming(level: str):
    given = {"path": str(LOG), "subscribe": "orders-del-7", "isolationLevel": level, "startingOffsets": "earliest"}
    partitions = [("orders-del-7", 0), ("orders-del-7", 1)]
    request = parse_request(given, is_streaming=True)
    assert LogFollower(request).starting() == dict(zip(partitions, (START, 0), strict=True))
    end = dict.fromkeys(partitions, 169)
    with pytest.raises(DataLossError, match="offsets 70 to 90 are gone, the log begins at 91"):
        LogFollower(request).parts({partitions[0]: 70, partitions[1]: 0}, end)
    every = LogFollower(parse_request(given | {"includeDeleted": "true"}, is_streaming=True))
    assert every.starting()[partitions[0]] == 61
    assert every.parts({partitions[0]: 70, partitions[1]: 0}, end)


def test_an_empty_checkpoint_is_that_of_a_new_broker(tmp_path: Path):
    copy = Path(shutil.copytree(LOG, tmp_path / "log"))
    (copy / "log-start-offset-checkpoint").write_bytes(b"")
    stream = kraftlog.open(copy).records(["offset"], strict=True)
    assert stream.to_table().num_rows == len(records(LOG, include_deleted=True))
