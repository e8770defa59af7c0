"""Tasks that fail and are tried again leave each row in the log once."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

import kraftlog
from kraftlog.codec.options import ReadOptions


def fails_at_random(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fail most first and some later attempts, somewhere among the rows; never the last one."""
    from pyspark import TaskContext

    task = TaskContext.get()
    dice = random.Random(f"{task.partitionId()} {task.attemptNumber()}")
    fails = task.attemptNumber() < 3 and dice.random() < (0.7, 0.4, 0.3)[task.attemptNumber()]
    for batch in batches:
        yield batch
        if fails and dice.random() < 0.4:
            raise RuntimeError(f"attempt {task.attemptNumber()} fails")
    if fails:
        raise RuntimeError(f"attempt {task.attemptNumber()} fails at its end")


def test_each_row_once(retrying_spark, tmp_path: Path):
    retrying_spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
    for mode, first in (("append", 0), ("append", 3000), ("overwrite", 0)):
        frame = retrying_spark.range(first, first + 3000, 1, 4).selectExpr("string(id) value")
        frame = frame.mapInArrow(fails_at_random, "value string")
        writer = frame.write.format("kraftlog").option("topic", "t").option("partitions", "3").mode(mode)
        writer.option("overwriteTopics", mode == "overwrite")
        writer.option("batchSize", "3000").option("segmentBytes", "9000").save(str(tmp_path))
        log = kraftlog.open(tmp_path)
        rows = (
            kraftlog.open(tmp_path, topics=["t"])
            .records(["value"], isolation_level="read_committed")
            .to_table()["value"]
            .to_pylist()
        )
        assert sorted(rows) == sorted(str(n).encode() for n in range(first + 3000))
        assert [fault.message for fault in log.verify(ReadOptions())] == []
        assert not (tmp_path / ".kraftlog").exists()
