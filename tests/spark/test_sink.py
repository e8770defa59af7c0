"""What Spark writes is in the log once, and only when the whole job has succeeded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.options import ReadOptions
from kraftlog.codec.partitioner import partition_for_key
from kraftlog.spark.paths import local_folder
from kraftlog.spark.sink_options import parse_sink_options
from streaming_queries import run_to_its_end

COLUMNS = ["topic", "partition", "key", "value", "headers", "timestamp"]


def opened(directory: Path) -> kraftlog.Log:
    """Return the log directory without the topics that Kafka keeps its own state in."""
    topics = {path.parent.name.rpartition("-")[0] for path in directory.glob("[!_]*-*/*.log")}
    return kraftlog.open(directory, topics=sorted(topics))


def committed(directory: Path, columns: list[str] | None = None) -> list[dict]:
    records = opened(directory).records(columns or COLUMNS, isolation_level="read_committed")
    return records.to_table().to_pylist()


def values(directory: Path) -> list[str]:
    return sorted(row["value"].decode() for row in committed(directory, ["value"]))


def assert_sound(directory: Path) -> None:
    log = kraftlog.open(directory)
    assert [fault.message for fault in log.verify(ReadOptions())] == []
    assert set(opened(directory).partition_transactions()["state"].to_pylist()) == {"committed"}
    assert not (directory / ".kraftlog").exists()


def write(frame, directory: Path, mode: str = "append", **options: str) -> None:
    frame.write.format("kraftlog").options(**options).mode(mode).save(str(directory))


def test_every_column(spark, tmp_path: Path):
    when = datetime(2024, 2, 29, 12, 30, 1, 234000, UTC)
    rows = [
        ("a", 1, b"k", b"v", [("h", b"1"), ("h", None)], when),
        ("a", 0, None, b"", [], when),
        ("b", 2, b"", None, None, when),
    ]
    types = "topic string, partition int, key binary, value binary, headers array<struct<key:string,value:binary>>"
    frame = spark.createDataFrame(rows, f"{types}, timestamp timestamp")
    for compression in ("zstd", "none"):
        directory = tmp_path / compression
        write(frame, directory, compression=compression)
        found = {(row["topic"], row["partition"]): row for row in committed(directory)}
        for topic, partition, key, value, headers, timestamp in rows:
            assert found[topic, partition] == {
                "topic": topic,
                "partition": partition,
                "key": key,
                "value": value,
                "headers": [{"key": k, "value": v} for k, v in headers or []],
                "timestamp": timestamp,
            }
        assert_sound(directory)
        assert set(opened(directory).batches()["compression"].to_pylist()) == {compression, "none"}


def test_what_spark_wrote_spark_reads(spark, tmp_path: Path):
    directory = tmp_path / "log"
    frame = spark.range(5000).selectExpr("concat('row ', id) value", "cast(id % 7 as string) key")
    write(frame.repartition(3), directory, topic="t", partitions="4", batchSize="4000")
    reader = spark.read.format("kraftlog").option("isolationLevel", "read_committed").option("subscribe", "t")
    read = reader.load(str(directory))
    assert sorted(row.value.decode() for row in read.select("value").collect()) == sorted(
        f"row {n}" for n in range(5000)
    )
    keys = pa.array([str(n) for n in range(7)])
    expected = dict(zip(keys.to_pylist(), partition_for_key(keys, 4).to_pylist(), strict=True))
    assert {(row.key.decode(), row.partition) for row in read.select("key", "partition").distinct().collect()} == set(
        expected.items()
    )
    assert sorted(path.name for path in directory.glob("t-*")) == ["t-0", "t-1", "t-2", "t-3"]
    assert_sound(directory)


def test_a_log_is_copied_with_the_columns_that_the_source_has(spark, tmp_path: Path):
    """Offsets and timestamp types of the source are those of its log: the copy has its own."""
    source, options = str(GOLDEN / "transactions" / "log"), {"subscribe": "orders", "includeHeaders": "true"}
    columns = ["partition", "key", "value", "headers", "timestamp"]
    expected = kraftlog.open(source, topics=["orders"]).records(columns).to_table().to_pylist()
    write(spark.read.format("kraftlog").options(**options).load(source), tmp_path / "jobs", topic="copied")
    stream = spark.readStream.format("kraftlog").options(**options, startingOffsets="earliest").load(source)
    writer = stream.writeStream.format("kraftlog").option("topic", "copied").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    run_to_its_end(lambda: writer.start(str(tmp_path / "streams")))
    for directory in (tmp_path / "jobs", tmp_path / "streams"):
        found = [row for row in committed(directory, ["topic", *columns]) if row.pop("topic") == "copied"]
        assert sorted(found, key=repr) == sorted(expected, key=repr)
        assert_sound(directory)


def test_rows_without_keys_come_to_all_partitions(spark, tmp_path: Path):
    before = datetime.now(UTC)
    write(spark.range(40000).selectExpr("string(id) value").coalesce(1), tmp_path, topic="t", partitions='{"t": 3}')
    rows = committed(tmp_path, ["partition", "timestamp"])
    assert {row["partition"] for row in rows} == {0, 1, 2}
    assert all(row["timestamp"] >= before.replace(microsecond=0) for row in rows)
    assert len(values(tmp_path)) == 40000


def test_append_and_overwrite(spark, tmp_path: Path):
    write(spark.createDataFrame([("t", "1"), ("u", "other")], "topic string, value string"), tmp_path)
    write(spark.createDataFrame([("2",)], "value string"), tmp_path, topic="t")
    assert values(tmp_path) == ["1", "2", "other"]
    write(spark.createDataFrame([("3",)], "value string"), tmp_path, "overwrite", topic="t", overwriteTopics="true")
    assert values(tmp_path) == ["3", "other"]
    assert_sound(tmp_path)
    write(spark.createDataFrame([], "value string"), tmp_path, "overwrite", topic="t", overwriteTopics="true")
    assert values(tmp_path) == ["other"]


def test_records_are_removed_on_request_only(spark, tmp_path: Path):
    rows = spark.createDataFrame([("1",)], "value string")
    write(rows, tmp_path, topic="t")
    with pytest.raises(PySparkException, match="mode overwrite removes all records of the topics"):
        write(rows, tmp_path, "overwrite", topic="t")
    with pytest.raises(PySparkException, match="overwriteTopics requires mode overwrite"):
        write(rows, tmp_path, topic="t", overwriteTopics="true")
    assert values(tmp_path) == ["1"]


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_modes_that_spark_refuses(spark, tmp_path: Path, mode: str):
    with pytest.raises(PySparkException, match=r"cannot be written in the .* mode\. Please use either the"):
        write(spark.createDataFrame([("1",)], "value string"), tmp_path / "log", mode, topic="t")
    assert not (tmp_path / "log").exists()


def test_tables_of_the_catalog_are_refused(spark, tmp_path: Path):
    """Also to write to: the messages name what works."""
    write(spark.createDataFrame([("1",)], "value string"), tmp_path, topic="t")
    options = f"USING kraftlog OPTIONS (path '{tmp_path}')"
    with pytest.raises(PySparkException, match="use CREATE TEMPORARY VIEW with the same USING kraftlog OPTIONS"):
        spark.sql(f"CREATE TABLE refused {options}")
    with pytest.raises(PySparkException, match=r"use \.save.* Spark passes no options of CREATE TABLE and writeTo"):
        spark.sql(f"CREATE TABLE refused {options} AS SELECT 'a' value, 't' topic")
    spark.sql(f"CREATE TEMPORARY VIEW shown {options}")
    try:
        with pytest.raises(PySparkException, match="Cannot write to `kraftlog`, the reason is not enough data columns"):
            spark.sql("INSERT INTO shown SELECT 'a' value, 't' topic")
    finally:
        spark.catalog.dropTempView("shown")
    assert values(tmp_path) == ["1"]


def test_a_folder_of_other_things_is_refused(spark, tmp_path: Path):
    (tmp_path / "keep.txt").write_text("mine")
    with pytest.raises(PySparkException, match=r"expected a log directory or an empty folder, found keep\.txt"):
        write(spark.createDataFrame([("1",)], "value string"), tmp_path, topic="t")
    assert [path.name for path in tmp_path.iterdir()] == ["keep.txt"]
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    write(spark.createDataFrame([("1",)], "value string"), tmp_path, topic="t")
    assert values(tmp_path) == ["1"]


def test_a_failed_job_leaves_nothing(spark, tmp_path: Path):
    write(spark.createDataFrame([("before",)], "value string"), tmp_path, topic="t")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def fails(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if "0" in batch.column(0).to_pylist():
                raise RuntimeError("no more")

    frame = spark.range(30000).selectExpr("string(id) value").repartition(3).mapInArrow(fails, "value string")
    with pytest.raises(Exception, match="no more"):
        write(frame, tmp_path, topic="t")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert_sound(tmp_path)


def test_a_job_that_happens_once(spark, tmp_path: Path):
    for batch_id, value in (("1", "a"), ("1", "again"), ("0", "again"), ("2", "b")):
        frame = spark.createDataFrame([(value,)], "value string")
        write(frame, tmp_path, topic="t", transactionalId="loader", batchId=batch_id)
    assert values(tmp_path) == ["a", "b"]
    assert_sound(tmp_path)


@pytest.mark.sweep(5)
@pytest.mark.parametrize(
    ("select", "options", "text"),
    [
        ("id value", {"topic": "t"}, "column value is int64, neither binary nor string"),
        ("string(id) value, id number", {"topic": "t"}, "unknown column number; there are key, value"),
        ("string(id) key", {"topic": "t"}, "expected a column value"),
        ("string(id) value", {}, "expected the option topic or a column topic"),
        ("string(id) value, 'a/b' topic", {}, "topic 'a/b': expected 1 to 249"),
        ("string(id) value, string(null) topic", {}, "topic is null, and there is no option topic"),
        (
            "string(id) value, 5 partition",
            {"topic": "t", "partitions": "5"},
            "partition 5 of t is not in the range 0",
        ),
        ("string(id) value, -1 partition", {"topic": "t"}, "partition -1 of t is not in the range 0"),
        (
            "string(id) value, 2000000000 partition",
            {"topic": "t"},
            "partition 2000000000 of t is not in the range",
        ),
        ("string(id) value, 1.5D partition", {"topic": "t"}, "column partition is double, not an integer"),
        ("string(id) value, id timestamp", {"topic": "t"}, "column timestamp is int64, not a timestamp"),
        ("string(id) value", {"topic": "t", "retention": "1"}, "unknown option retention; there are batchId"),
        ("space(2000) value", {"topic": "t", "batchSize": "1000"}, "max_batch_bytes is 1000"),
    ],
)
def test_what_cannot_be_written(spark, tmp_path: Path, select: str, options: dict[str, str], text: str):
    with pytest.raises(Exception, match=text):
        write(spark.range(3).selectExpr(*select.split(", ")), tmp_path / "log", **options)
    assert not any((tmp_path / "log").rglob("*.log"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"partitions": "0"}, "option partitions is '0', neither a number from 1 to 10000 nor JSON"),
        ({"partitions": "10001"}, "option partitions is '10001', neither a number from 1 to 10000 nor JSON"),
        ({"partitions": '{"t": "x"}'}, "neither a number from 1 to 10000 nor JSON"),
        ({"compression": "rar"}, "option compression is 'rar', not one of none, gzip"),
        ({"batchSize": "big"}, "option batchSize is 'big', not a number"),
        ({"segmentBytes": "0"}, "option segmentBytes is 0, less than 1"),
        (
            {"batchSize": "2000", "segmentBytes": "2000"},
            "option batchSize is 2000; a batch and a marker of 78 bytes do not fit",
        ),
        ({"batchSize": "2000000000"}, "option batchSize is 2000000000; a batch and a marker of 78 bytes do not fit"),
        ({"batchSize": "5"}, "option batchSize is 5, less than 62"),
        ({"segmentBytes": "2147483648"}, r"option segmentBytes is 2147483648, more than 2\^31 - 1"),
        ({"compressionLevel": "7"}, "option compressionLevel is 7, but compression none has no levels"),
        ({"compressionLevel": "7", "compression": "snappy"}, "compression snappy has no levels"),
        ({"compressionLevel": "77", "compression": "gzip"}, "compressionLevel is 77, not in gzip's range of 1 to 9"),
        ({"transactionalId": "a"}, "options transactionalId and batchId require each other"),
        ({"batchId": "1"}, "options transactionalId and batchId require each other"),
        ({"topic": "a b"}, "topic 'a b': expected 1 to 249"),
    ],
)
def test_options(tmp_path: Path, options: dict[str, str], text: str):
    with pytest.raises(ValueError, match=text):
        parse_sink_options({"path": str(tmp_path), **options}, is_streaming=False, overwrite=False)


def test_options_of_streams(tmp_path: Path):
    path = {"path": str(tmp_path)}
    with pytest.raises(ValueError, match="batchId does not apply to streams"):
        parse_sink_options({**path, "batchId": "1", "transactionalId": "a"}, is_streaming=True, overwrite=False)
    assert parse_sink_options({**path, "CHECKPOINTLOCATION": "c"}, is_streaming=True, overwrite=False).checkpoint == "c"
    with pytest.raises(ValueError, match="no path"):
        parse_sink_options({}, is_streaming=True, overwrite=False)


@pytest.mark.parametrize("prefix", ["", "file:", "file://", "FILE:"])
@pytest.mark.parametrize("name", ["a", "a%20b", "a#b", "a?b", "a:b"])
def test_paths(tmp_path: Path, prefix: str, name: str):
    given = f"{prefix}{tmp_path}/{name}"
    assert parse_sink_options({"path": given}, is_streaming=False, overwrite=False).log_directory == tmp_path / name
    assert local_folder("output", given) == tmp_path / name


@pytest.mark.parametrize(
    "path",
    ["s3://b/log", "s3a:/b", "hdfs:/data/logs", "dbfs:/mnt/x", "S3A:b", "file://host/tmp", "file:x", "file:////x"],
)
def test_paths_of_other_file_systems(path: str):
    with pytest.raises(ValueError, match=f"path is {path}, not a folder of a mounted file system"):
        parse_sink_options({"path": path}, is_streaming=False, overwrite=False)


@pytest.fixture
def run_stream(spark, tmp_path: Path) -> Callable[[], None]:
    """Run a query from files to a log directory, until it has read them all."""

    def run() -> None:
        lines = spark.readStream.format("text").option("maxFilesPerTrigger", "1").load(str(tmp_path / "source"))
        writer = lines.writeStream.format("kraftlog").option("topic", "t").option("partitions", "2")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        run_to_its_end(lambda: writer.start(str(tmp_path / "log")))

    (tmp_path / "source").mkdir()
    return run


def test_stream(tmp_path: Path, run_stream: Callable[[], None]):
    """Batches come once, also those that Spark does not know to be committed when it starts again."""
    source, directory, checkpoint = tmp_path / "source", tmp_path / "log", tmp_path / "checkpoint"
    for number in range(2):
        (source / f"{number}.txt").write_text("".join(f"{number}.{line}\n" for line in range(50)))
    run_stream()
    expected = [f"{number}.{line}" for number in range(2) for line in range(50)]
    assert values(directory) == sorted(expected)
    assert_sound(directory)
    (source / "2.txt").write_text("2.0\n2.1\n")
    run_stream()
    assert values(directory) == sorted([*expected, "2.0", "2.1"])
    # the driver died before it had noted the last batch
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    (source / "3.txt").write_text("3.0\n")
    run_stream()
    assert values(directory) == sorted([*expected, "2.0", "2.1", "3.0"])
    assert_sound(directory)
    producers = opened(directory).partition_transactions(["producer_id"])["producer_id"]
    assert len(producers.unique()) == 1
    assert kraftlog.open(directory).offsets(["offset"])["offset"].to_pylist() == [4]
    shutil.rmtree(checkpoint)  # then it is another query, which begins from the start
    run_stream()
    assert values(directory) == sorted([*expected, "2.0", "2.1", "3.0"] * 2)
