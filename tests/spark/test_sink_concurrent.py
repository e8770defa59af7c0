"""Two streams and jobs that write into one store at once: each row once, and none of another's commit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from kraftlog.codec.options import ReadOptions
from kraftlog.spark.sink_options import parse_sink_options
from object_store import BUCKET, object_store
from streaming_queries import run_to_its_end

ROWS = 60
FILES = 2


def test_two_streams_and_a_job(spark: Any, tmp_path: Path):
    """Both streams write to one topic of their own and to one that all share; the job, several times."""
    log = tmp_path / "log"
    sources = [tmp_path / name for name in ("first", "second")]
    for source in sources:
        source.mkdir()
        for number in range(FILES):
            lines = [f"{source.name} {number} {line}\n" for line in range(ROWS)]
            (source / f"{number}.txt").write_text("".join(lines))

    def started(source: Path) -> Any:
        lines = spark.readStream.format("text").option("maxFilesPerTrigger", "1").load(str(source))
        both = lines.selectExpr("value", f"explode(array('{source.name}', 'shared')) topic")
        writer = both.writeStream.format("kraftlog").option("partitions", '{"shared": 3}')
        writer = writer.option("checkpointLocation", f"{source}-checkpoint").trigger(availableNow=True)
        return writer.start(str(log))

    streams = [started(source) for source in sources]
    for number in range(FILES):
        frame = spark.range(ROWS).selectExpr(
            f"concat('job {number} ', id) value", "explode(array('job', 'shared')) topic"
        )
        frame.write.format("kraftlog").option("partitions", '{"shared": 3}').mode("append").save(str(log))
    for query in streams:
        query.awaitTermination()
    expected = {
        name: Counter(f"{name} {number} {line}" for number in range(FILES) for line in range(ROWS))
        for name in ("first", "second", "job")
    }
    expected["shared"] = sum(expected.values(), Counter())
    topics = sorted(expected)
    records = kraftlog.open(log, topics=topics).records(["topic", "value"], isolation_level="read_committed")
    found: dict[str, Counter[str]] = {topic: Counter() for topic in topics}
    for row in records.to_table().to_pylist():
        found[row["topic"]][row["value"].decode()] += 1
    assert found == expected
    transactions = (
        kraftlog.open(log, topics=topics).partition_transactions(["topic", "state", "producer_id"]).to_pylist()
    )
    assert {row["state"] for row in transactions} == {"committed"}
    in_shared = Counter(row["producer_id"] for row in transactions if row["topic"] == "shared")
    assert len(in_shared) == 3
    assert all(FILES <= count <= 3 * FILES for count in in_shared.values())
    assert [fault.message for fault in kraftlog.open(log).verify(ReadOptions())] == []
    assert not (log / ".kraftlog").exists()


def test_through_an_object_store(spark: Any, tmp_path: Path):
    """A stream and a job, whose tasks send their files to S3; nothing stays there."""
    log, source = tmp_path / "log", tmp_path / "source"
    source.mkdir()
    (source / "0.txt").write_text("".join(f"{line}\n" for line in range(ROWS)))
    with object_store() as server:
        options = {
            "stagingLocation": f"s3a://{BUCKET}/staging",
            "storageOptions": str(server.options).replace("'", '"'),
            "topic": "t",
            "partitions": "2",
        }
        lines = spark.readStream.format("text").load(str(source))
        writer = lines.writeStream.format("kraftlog").options(**options).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        run_to_its_end(lambda: writer.start(str(log)))
        frame = spark.range(ROWS, 2 * ROWS).selectExpr("string(id) value").repartition(3)
        frame.write.format("kraftlog").options(**options).mode("append").save(str(log))
        sent = {key for method, key, _ in server.requests if method == "PUT" and key.endswith(".log")}
        left = server.all_keys()
    assert len(sent) >= 4
    assert [key for key in left if not key.endswith("/")] == []
    values = kraftlog.open(log, topics=["t"]).records(["value"], isolation_level="read_committed").to_table()["value"]
    assert sorted(int(value) for value in values.to_pylist()) == list(range(2 * ROWS))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"stagingLocation": "staging"}, "option stagingLocation: 'staging' is neither a URI such as s3://bucket"),
        ({"storageOptions": "{}"}, "option storageOptions requires stagingLocation"),
        ({"stagingLocation": "s3://b/s", "storageOptions": "x"}, "option storageOptions is not JSON"),
    ],
)
def test_options_of_staging_that_are_refused(options: dict[str, str], text: str):
    with pytest.raises(ValueError, match=text):
        parse_sink_options({"path": "/log", **options}, is_streaming=False, overwrite=False)


def test_options_show_no_password():
    text = '{"secret_key": "hunter2", "access_key": "me"}'
    options = {"path": "/log", "stagingLocation": "s3://me:hunter2@b/s", "storageOptions": text}
    assert "hunter2" not in repr(parse_sink_options(options, is_streaming=False, overwrite=False))
