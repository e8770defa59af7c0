"""What it takes Spark to carry Arrow from Python workers to the JVM: one batch, made before, is sent over and over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

ROWS_PER_BATCH = 16_384


@dataclass
class Share(InputPartition):
    """The rows that one task sends."""

    rows: int


def save_batch(frame: Any, path: Path) -> None:
    """Keep the first rows of a frame as the batch that is sent."""
    batch = frame.limit(ROWS_PER_BATCH).toArrow().combine_chunks().to_batches()[0]
    with pa.ipc.new_file(path, batch.schema) as file:
        file.write(batch)


def repeated(path: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the kept batch until there are so many rows."""
    batch = pa.ipc.open_file(pa.memory_map(path)).get_batch(0)
    while rows > 0:
        yield batch.slice(0, rows)
        rows -= batch.num_rows


def shares(rows: int, tasks: int) -> list[int]:
    """Cut rows into even shares."""
    return [rows * (task + 1) // tasks - rows * task // tasks for task in range(tasks)]


def map_in_arrow(spark: Any, schema: Any, path: str, rows: int, tasks: int) -> Any:
    """Return a frame that gets the batch through ``mapInArrow``."""
    of_task = shares(rows, tasks)

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield from repeated(path, of_task[task])

    return spark.range(0, tasks, 1, tasks).mapInArrow(send, schema)


class TransportReader(DataSourceReader):
    """Sends the batch."""

    def __init__(self, path: str, rows: int, tasks: int) -> None:
        self.path = path
        self.shares = shares(rows, tasks)

    def partitions(self) -> list[InputPartition]:
        """Return a partition for each task."""
        return [Share(rows) for rows in self.shares]

    def read(self, partition: Share) -> Iterator[pa.RecordBatch]:
        """Return the rows of one task."""
        return repeated(self.path, partition.rows)


class TransportSource(DataSource):
    """The batch as ``format("transport")``, with the options path, rows and tasks; the reader gives the schema."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "transport"

    def reader(self, schema: Any) -> TransportReader:
        """Return a reader."""
        return TransportReader(self.options["path"], int(self.options["rows"]), int(self.options["tasks"]))


def data_source(spark: Any, schema: Any, path: str, rows: int, tasks: int) -> Any:
    """Return a frame that gets the batch through a data source."""
    spark.dataSource.register(TransportSource)
    return spark.read.format("transport").schema(schema).options(rows=rows, tasks=tasks).load(path)
