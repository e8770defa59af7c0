"""The jobs that are timed: the same query over every way to the rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cores
import parquet_alone
import pyarrow as pa
import transport
from topics import ORDERS, PARTITIONS, PAYMENTS

from kraftlog.spark import read_ranges, to_parquet
from report import Block
from rounds import Contender

READ_RANGES, FORMAT = "read_ranges", 'format("kraftlog")'
MAP_IN_ARROW, DATA_SOURCE = "floor: mapInArrow, a batch sent again", "floor: data source, a batch sent again"
CONNECTOR, TUNED = 'format("kafka"), as it comes', 'format("kafka"), tuned'
TO_PARQUET, PYARROW = "to_parquet", "floor: pyarrow alone, two processes"
PARQUET_FILES = "the same rows in Parquet, zstd"
ONE_CORE = ", one core"
COMMITTED = ", read_committed"
ALL, OFFSET, VALUES, TAIL, COUNT, ISOLATION, PARQUET = (
    "all columns", "offset alone, sum", "sum of length(value)", "last offsets, all columns", "count",
    "isolation level", "to Parquet, zstd",
)  # fmt: skip
WORKS = [ALL, OFFSET, VALUES, TAIL, COUNT, ISOLATION, PARQUET]

RECORD_BYTES = 108  # of key and value
TAIL_OF = 20  # the last offsets are one part of so many
SUM_BY_PARTITION = {OFFSET: lambda rows: rows * (rows - 1) // 2, VALUES: lambda rows: 100 * rows}
QUERIES = {OFFSET: ("offset", "sum(offset)"), VALUES: ("value", "sum(length(value))")}
TUNING = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(4 << 20),
}

Work = Callable[[], int | None]


class Jobs:
    """Everything that a contender needs.

    Attributes
    ----------
    spark : SparkSession
    log_dir : pathlib.Path
        Has the topics.
    records : int
        In each topic.
    scratch : pathlib.Path
        A folder for what is written.
    bootstrap_servers : str or None
        The broker of the log directory; without it Spark's own Kafka source takes no part.
    """

    def __init__(self, spark: Any, log_dir: Path, records: int, scratch: Path, bootstrap_servers: str | None) -> None:
        self.spark = spark
        self.log_dir = str(log_dir)
        self.records = records
        self.scratch = scratch
        self.bootstrap_servers = bootstrap_servers
        self._at_the_end: list[Callable[[], None]] = []
        self.jvm = spark.sparkContext._gateway.jvm.java.lang.ProcessHandle.current().pid()

    def close(self) -> None:
        """End what the jobs have started."""
        for end in self._at_the_end:
            end()

    def block(self, work: str) -> Block:
        """Return the contenders of one piece of work."""
        make = {
            ALL: self._all, COUNT: self._count, TAIL: self._tail, ISOLATION: self._isolation, PARQUET: self._parquet,
        }  # fmt: skip
        runs = make[work]() if work in make else self._sum(work)
        records = self.records // TAIL_OF if work == TAIL else self.records
        topic = PAYMENTS if work == ISOLATION else ORDERS
        return Block(work, topic, [Contender(name, run, records, records * RECORD_BYTES) for name, run in runs.items()])

    def _ranges(self, topic: str, **options: str) -> Any:
        return read_ranges(self.spark, self.log_dir, subscribe=topic, **options)

    def _format(self, topic: str, **options: str) -> Any:
        return self.spark.read.format("kraftlog").options(subscribe=topic, **options).load(self.log_dir)

    def _connector(self, tuning: dict[str, str], options: dict[str, str]) -> Any:
        servers = {"kafka.bootstrap.servers": self.bootstrap_servers, "subscribe": ORDERS}
        return self.spark.read.format("kafka").options(**servers, **tuning, **options).load()

    def _connectors(self, job: Callable[[Any], int | None], **options: str) -> dict[str, Work]:
        """Return a job over Spark's own Kafka source, where there is a broker."""
        if self.bootstrap_servers is None:
            return {}
        return {
            CONNECTOR: lambda: job(self._connector({}, options)),
            TUNED: lambda: job(self._connector(TUNING, options)),
        }

    def _parquet_files(self) -> Any:
        """Return the topic as Spark reads it from Parquet; its files are written at the first call."""
        files = self.scratch / "orders.parquet"
        if not files.exists():
            to_parquet(self.spark, self.log_dir, str(files), subscribe=ORDERS)
        return self.spark.read.parquet(str(files))

    def _all(self) -> dict[str, Work]:
        batch = self.scratch / "batch.arrow"
        frame = self._ranges(ORDERS)
        transport.save_batch(frame, batch)
        sent = (self.spark, frame.schema, str(batch), self.records, frame.rdd.getNumPartitions())
        both: dict[str, Work] = {
            MAP_IN_ARROW: lambda: noop(transport.map_in_arrow(*sent)),
            READ_RANGES: lambda: noop(self._ranges(ORDERS)),
            DATA_SOURCE: lambda: noop(transport.data_source(*sent)),
            FORMAT: lambda: noop(self._format(ORDERS)),
        }
        names = (READ_RANGES, FORMAT) if cores.AVAILABLE else ()
        alone = {name + ONE_CORE: self._on_one_core(both[name]) for name in names}
        return both | alone | self._connectors(noop) | {PARQUET_FILES: lambda: noop(self._parquet_files())}

    def _on_one_core(self, run: Work) -> Work:
        def confined() -> int | None:
            with cores.one_core(self.jvm):
                return run()

        return confined

    def _sum(self, work: str) -> dict[str, Work]:
        column, query = QUERIES[work]
        expected = sum(SUM_BY_PARTITION[work](self.records // len(PARTITIONS)) for _ in PARTITIONS)

        def check(frame: Any) -> None:
            ((found,),) = frame.selectExpr(query).collect()
            assert found == expected, f"{work}: {found}, not {expected}"

        own: dict[str, Work] = {
            READ_RANGES: lambda: check(self._ranges(ORDERS, columns=column)),
            FORMAT: lambda: check(self._format(ORDERS, columns=column)),
        }
        return own | self._connectors(check) | {PARQUET_FILES: lambda: check(self._parquet_files())}

    def _tail(self) -> dict[str, Work]:
        of_partition = self.records // len(PARTITIONS)
        first = of_partition - of_partition // TAIL_OF
        options = {"startingOffsets": json.dumps({ORDERS: {str(partition): first for partition in PARTITIONS}})}
        return {
            READ_RANGES: lambda: noop(self._ranges(ORDERS, **options)),
            FORMAT: lambda: noop(self._format(ORDERS, **options)),
            **self._connectors(noop, **options),
            PARQUET_FILES: lambda: noop(self._parquet_files().where(f"offset >= {first}")),
        }

    def _count(self) -> dict[str, Work]:
        own: dict[str, Work] = {
            READ_RANGES: lambda: self._ranges(ORDERS).count(),
            FORMAT: lambda: self._format(ORDERS).count(),
        }
        both = own | self._connectors(lambda frame: frame.count())
        return both | {PARQUET_FILES: lambda: self._parquet_files().count()}

    def _isolation(self) -> dict[str, Work]:
        committed = {"isolationLevel": "read_committed"}
        return {
            READ_RANGES: lambda: noop(self._ranges(PAYMENTS)),
            READ_RANGES + COMMITTED: lambda: noop(self._ranges(PAYMENTS, **committed)),
            FORMAT: lambda: noop(self._format(PAYMENTS)),
            FORMAT + COMMITTED: lambda: noop(self._format(PAYMENTS, **committed)),
        }

    def _parquet(self) -> dict[str, Work]:
        out = str(self.scratch / "rows.parquet")
        sources = [self.scratch / f"{partition}.arrow" for partition in PARTITIONS]
        for partition, source in enumerate(sources):
            frame = read_ranges(self.spark, self.log_dir, assign=f'{{"{ORDERS}": [{partition}]}}')
            _save(frame, source)
        writer = parquet_alone.Writer(sources)
        self._at_the_end.append(writer.close)

        def by_spark(frame: Any) -> None:
            frame.write.mode("overwrite").option("compression", "zstd").parquet(out)

        own: dict[str, Work] = {
            PYARROW: writer.write,
            TO_PARQUET: lambda: to_parquet(self.spark, self.log_dir, out + "s", overwrite=True, subscribe=ORDERS).rows,
        }
        return own | self._connectors(by_spark)


def noop(frame: Any) -> None:
    """Read every row of a frame and drop it."""
    frame.write.format("noop").mode("overwrite").save()


def _save(frame: Any, target: Path) -> None:
    """Write the rows of a frame as one Arrow file, in the types that Spark has them in."""

    def write(batches: Any) -> Any:
        rows, file = 0, None
        for batch in batches:
            file = file or pa.ipc.new_file(str(target), batch.schema)
            file.write(batch)
            rows += batch.num_rows
        if file:
            file.close()
        yield pa.record_batch({"rows": pa.array([rows])})

    frame.coalesce(1).mapInArrow(write, "rows long").collect()
