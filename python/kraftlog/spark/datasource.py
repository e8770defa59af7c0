"""``spark.read.format("kraftlog")``: a Python data source over byte ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from kraftlog.log.ranges import Range
from kraftlog.spark.tables import Request, parse_request, plan_ranges, read, read_left_alone, spark_schema, with_columns


@dataclass
class RangePartition(InputPartition):
    """One range; None stands for what belongs to no range."""

    part: Range | None


class KraftlogReader(DataSourceReader):
    """Reads the ranges of one request."""

    def __init__(self, request: Request, schema: StructType) -> None:
        self.request = request
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return a partition for each range; the list of files is that of this moment."""
        parts: list[InputPartition] = [RangePartition(part) for part in plan_ranges(self.request)]
        if self.request.table in ("errors", "segments"):
            parts.append(RangePartition(None))
        return parts

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Return the rows of one partition."""
        arrow_schema = to_arrow_schema(self.schema, timezone="UTC")
        if partition is None:  # Spark's stand-in for an empty list
            return
        part = partition.part if isinstance(partition, RangePartition) else None
        rows = read_left_alone(self.request) if part is None else read(self.request, part)
        for batch in rows:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=arrow_schema)


class KraftlogSource(DataSource):
    """Log files of Kafka as the tables segments, batches, records and errors.

    Options: table, path or paths, columns, isolationLevel, startingOffset, endingOffset, startTimestamp, endTimestamp,
    topics, onError (fail, skip), rangeBytes, includeControl.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kraftlog"

    def schema(self) -> StructType:
        """Return the columns that the options ask for."""
        request = parse_request(self.options)
        return from_arrow_schema(spark_schema(request.table, request.columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader; a schema that the user gave selects columns by name."""
        request = with_columns(parse_request(self.options), tuple(schema.fieldNames()))
        expected = from_arrow_schema(spark_schema(request.table, request.columns))
        for wanted, has in zip(schema, expected, strict=True):
            if wanted.dataType != has.dataType:
                raise ValueError(
                    f"column {has.name} is {has.dataType.simpleString()}, not {wanted.dataType.simpleString()}"
                )
        return KraftlogReader(request, schema)
