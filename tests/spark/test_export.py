"""``to_parquet``: the library's rows in files, all or none of them, and only once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk.disk import Disk, use_disk
from kraftlog.spark import Counters, to_parquet
from kraftlog.spark.export_part import row_groups
from kraftlog.spark.export_publish import only_writer
from kraftlog.tables.all_tables import TABLES, table_named
from segment_files import flip, write_partition
from spark_rows import NoJob, comparable, expected_rows, log_directories, plain_rows, rows_of, write_schemas


def rows_in(output: Path) -> list[dict[str, Any]]:
    """Return what pyarrow reads."""
    return plain_rows(ds.dataset(output, format="parquet", partitioning="hive").to_table())


def inodes(output: Path) -> dict[str, int]:
    """Return which file lies under each name."""
    return {path.name: path.stat().st_ino for path in output.rglob("*.parquet")}


def leftovers(output: Path) -> list[Path]:
    """Return what a finished export must not leave behind."""
    return [path for path in output.rglob("*") if path.name.startswith(".") or "_kraftlog" in path.parts]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("folder", log_directories(), ids=lambda path: path.parent.name)
def test_records(spark, tmp_path: Path, folder: Path):
    output = tmp_path / "output"
    export = to_parquet(spark, str(folder), str(output), includeHeaders=True, rangeBytes="16k")
    expected = comparable(expected_rows("records", folder, commits=True))
    assert comparable(rows_in(output)) == expected
    frame = spark.read.parquet(str(output))
    assert comparable(rows_of(frame)) == expected
    assert frame.schema == spark.read.schema(export.schema).parquet(str(output)).schema
    assert export.rows == len(expected)
    assert leftovers(output) == []


@pytest.mark.sweep(4)
@pytest.mark.parametrize("table", [table for table in TABLES if table != "records"])
def test_tables(spark, tmp_path: Path, table: str):
    folders = {"offsets": "groups", "groups": "groups", "hanging_transactions": "transactions_hanging"}
    folders |= {
        "metadata_transactions": "metadata_txn/committed_many_batches",
        "metadata_changes": "metadata",
        "errors": "deleted_records",
    }
    log = GOLDEN / folders.get(table, "transactions") / "log"
    if table == "schemas":  # no golden log has the topic of a registry
        log = write_schemas(tmp_path / "log")
    options = {"checkCrc": True} if "check_crc" in TABLES[table].option_names else {}
    check_table(spark, log, tmp_path / "output", table, table=table, **options)


def test_a_type_of_message(spark, tmp_path: Path):
    check_table(spark, GOLDEN / "metadata" / "log", tmp_path / "output", "PartitionRecord", type="PartitionRecord")


def check_table(spark, log: Path, output: Path, name: str, **options: object) -> None:
    """Compare what Spark reads of an export with what the library reads."""
    export = to_parquet(spark, str(log), str(output), **options)
    definition = table_named(name)
    commits = definition.has_records and "isolation_level" in definition.option_names
    expected = comparable(expected_rows(name, log, commits=commits))
    assert export.rows == len(expected) > 0
    assert comparable(rows_of(spark.read.schema(export.schema).parquet(str(output)))) == expected


@pytest.mark.parametrize("name", [None, "isolationLevel", "kafka.isolation.level"])
def test_isolation_level(spark, tmp_path: Path, name: str | None):
    """By default committed records are handed on, and a note says how many others were left out."""
    folder = GOLDEN / "transactions" / "log"
    columns = ["topic", "partition", "offset", "value"]
    level = "read_committed" if name is None else "read_uncommitted"
    options = {"columns": columns, "rangeBytes": "1k"} | ({} if name is None else {name: level})
    export = to_parquet(spark, str(folder), str(tmp_path / "output"), **options)
    stream = kraftlog.open(folder).records(columns, isolation_level=level)
    assert comparable(rows_in(tmp_path / "output")) == comparable(stream.to_table().to_pylist())
    aborted = stream.notes.aborted_records
    expected = [f"read_committed: left out {aborted} records of aborted transactions"] if name is None else []
    assert export.notes == expected
    assert (aborted > 0) == (name is None)


def test_topics_of_any_name(spark, tmp_path: Path):
    topics = ["2024-01-01", "17", "a=b c", "100%", "Größe", "[x]{y}", 'q"#:?*\\', "__HIVE", "_hidden", ".dot"]
    for topic in topics:
        write_partition(tmp_path / "log" / f"{topic}-3")
    (tmp_path / "log" / "17-3").rename(tmp_path / "log" / "17-4")
    export = to_parquet(spark, str(tmp_path / "log"), str(tmp_path / "output"))
    expected = comparable(expected_rows_without_headers(tmp_path / "log"))
    assert len(expected) == 10 * len(topics)
    assert comparable(rows_of(spark.read.schema(export.schema).parquet(str(tmp_path / "output")))) == expected
    assert comparable(rows_in(tmp_path / "output")) == expected


def expected_rows_without_headers(folder: Path) -> list[dict[str, Any]]:
    """Return records as they are exported by default."""
    return [
        {name: value for name, value in row.items() if name != "headers"} for row in expected_rows("records", folder)
    ]


def test_manifest(spark, tmp_path: Path):
    write_partition(tmp_path / "log" / "orders-0", segments=3)
    write_partition(tmp_path / "log" / "orders-1")
    output = tmp_path / "output"
    keys = {"storageOptions": {"key": "not for readers"}}
    export = to_parquet(spark, str(tmp_path / "log"), str(output), max_rows_per_file=4, row_group_rows=3, **keys)
    assert "not for readers" not in export.manifest.read_text()
    manifest = json.loads(export.manifest.read_text())
    assert manifest["partitions"] == [
        {"topic": "orders", "partition": 0, "rows": 30, "first_offset": 0, "last_offset": 29},
        {"topic": "orders", "partition": 1, "rows": 10, "first_offset": 0, "last_offset": 9},
    ]
    assert {file["path"] for file in manifest["files"]} == {
        str(path.relative_to(output)) for path in output.rglob("*.parquet")
    }
    for file in manifest["files"]:
        metadata = pq.read_metadata(output / file["path"])
        assert metadata.num_rows == file["rows"] == file["last_offset"] - file["first_offset"] + 1 <= 4
        assert file["size_in_bytes"] == (output / file["path"]).stat().st_size
    assert (manifest["rows"], manifest["size_in_bytes"]) == (export.rows, export.size_in_bytes)
    assert (manifest["kraftlog_version"], manifest["table"]) == (kraftlog.__version__, "records")
    assert (output / "_SUCCESS").exists()


def test_what_cannot_be_read(spark, tmp_path: Path):
    folder = GOLDEN / "damaged" / "bit_flip_payload" / "log"
    export = to_parquet(spark, str(folder), str(tmp_path / "output"), onError="skip")
    expected = kraftlog.open(folder).records()
    assert export.rows == expected.to_table().num_rows == 17
    assert export.errors.equals(expected.errors)
    assert export.errors.num_rows == 1


def test_no_rows(spark, tmp_path: Path):
    folder = GOLDEN / "codecs" / "log" / "codec-lz4-0"
    export = to_parquet(spark, str(folder), str(tmp_path / "output"), startingOffsets=5, endingOffsets=5)
    assert (export.rows, export.files) == (0, 1)
    frame = spark.read.parquet(str(tmp_path / "output"))
    assert frame.count() == 0
    assert set(frame.columns) == {"key", "value", "topic", "partition", "offset", "timestamp", "timestampType"}


def test_goes_on_after_a_part_that_failed(spark, tmp_path: Path):
    log, output = tmp_path / "log", tmp_path / "output"
    write_partition(log / "orders-0", segments=6)
    poisoned = log / "orders-0" / f"{40:020d}.log"
    flip(poisoned)
    with pytest.raises(Exception, match="stored crc"):
        to_parquet(spark, str(log), str(output))
    written = inodes(output)
    assert 4 <= len(written) <= 5
    assert ds.dataset(output, format="parquet").files == []
    with pytest.raises(FileExistsError, match="unfinished export of other options"):
        to_parquet(spark, str(log), str(output), compression="none")
    flip(poisoned)
    counters = Counters(spark)
    export = to_parquet(spark, str(log), str(output), counters=counters)
    assert counters.rows == 60 - 10 * len(written)
    assert written.items() <= inodes(output).items()
    assert (export.rows, export.files, leftovers(output)) == (60, 6, [])
    assert [row["offset"] for row in rows_in(output)] == list(range(60))


def test_goes_on_with_renames(spark, tmp_path: Path):
    log, output = tmp_path / "log", tmp_path / "output"
    write_partition(log / "orders-0", segments=3)
    to_parquet(spark, str(log), str(output), columns="value")

    class Crashing(Disk):
        def sync_folder(self, folder: Path) -> None:
            super().sync_folder(folder)
            if (output / "topic=orders").exists():
                raise KeyboardInterrupt

    with use_disk(Crashing()), pytest.raises(KeyboardInterrupt):
        to_parquet(spark, str(log), str(output), overwrite=True)
    assert not (output / "_SUCCESS").exists()
    one = next(output.rglob("topic=orders/**/*.parquet"))
    one.rename(output / "_kraftlog" / next((output / "_kraftlog").iterdir()).name / "files" / one.relative_to(output))
    counters = Counters(spark)
    export = to_parquet(spark, str(log), str(output), counters=counters)
    assert (counters.rows, export.rows, leftovers(output)) == (0, 30, [])
    assert comparable(rows_in(output)) == comparable(expected_rows_without_headers(log))


def test_overwrite(spark, tmp_path: Path):
    log, output = tmp_path / "log", tmp_path / "output"
    write_partition(log / "orders-0", segments=2)
    write_partition(log / "users-0")
    to_parquet(spark, str(log), str(output))
    before = inodes(output)
    with pytest.raises(FileExistsError, match="holds a finished export; overwrite=True replaces it"):
        to_parquet(spark, str(log), str(output))
    assert inodes(output) == before
    flip(log / "orders-0" / f"{10:020d}.log")
    with pytest.raises(Exception, match="stored crc"):
        to_parquet(spark, str(log), str(output), overwrite=True, subscribe="orders")
    assert len(rows_in(output)) == 30
    export = to_parquet(spark, str(log), str(output), overwrite=True, assign={"orders": [0]}, onError="skip")
    assert (export.rows, leftovers(output)) == (10, [])
    assert [row["offset"] for row in rows_in(output)] == list(range(10))
    assert sorted(path.name for path in output.iterdir()) == ["_SUCCESS", "_manifest.json", "topic=orders"]


def test_refusals(tmp_path: Path):
    log, output = tmp_path / "log", tmp_path / "output"
    write_partition(log / "orders-0")
    for wrong, text in (
        ({"output": "s3://bucket/lake"}, "output is s3://bucket/lake, not a folder"),
        ({"compression": "zip"}, "zip"),
        ({"row_group_rows": 0}, "row_group_rows is 0"),
        ({"max_rows_per_file": 0}, "max_rows_per_file is 0"),
        ({"table": "record"}, "option table is 'record'"),
    ):
        with pytest.raises(ValueError, match=text):
            to_parquet(NoJob(), str(log), **{"output": str(output), **wrong})
    assert not output.exists()
    output.mkdir()
    (output / "mine.txt").touch()
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match=r"mine\.txt: not a file of an export"):
            to_parquet(NoJob(), str(log), str(output), overwrite=overwrite)
    with only_writer(output), pytest.raises(FileExistsError, match="another export is writing there"):
        to_parquet(NoJob(), str(log), str(output))
    assert [path.name for path in output.iterdir()] == ["mine.txt"]


def test_row_groups_are_of_bounded_size(monkeypatch: pytest.MonkeyPatch):
    batches = [pa.record_batch({"value": [b"x" * 100] * rows}) for rows in (7, 1, 12)]
    assert [group.num_rows for group in row_groups(batches, 8)] == [8, 8, 4]
    assert [group.num_rows for group in row_groups(batches, 100)] == [20]
    monkeypatch.setattr("kraftlog.spark.export_part.ROW_GROUP_BYTES", 700)
    assert [group.num_rows for group in row_groups(batches, 100)] == [7, 13]
