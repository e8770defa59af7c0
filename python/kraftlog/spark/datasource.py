"""``spark.read.format("kraftlog")``: a Python data source over byte ranges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kraftlog.spark.arrow_schema import arrow_schema_of
from kraftlog.spark.options import parse_request
from kraftlog.spark.packed_parts import packed
from kraftlog.spark.part_partition import PartPartition
from kraftlog.spark.request import Request
from kraftlog.spark.s3a import S3aSettings
from kraftlog.spark.task import plan_tasks, read_part
from kraftlog.spark.title import title
from kraftlog.spark.unpickled import reduced
from kraftlog.spark.worker import settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("kraftlog.spark")


class KraftlogReader(DataSourceReader):
    """Reads the ranges of one request.

    It takes no filters (``pushFilters``): Spark would keep the plan that they narrowed with the frame, and answer later
    queries without filters from it.
    """

    def __init__(self, request: Request, schema: StructType) -> None:
        self.request = request
        self.schema = schema

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return reduced(self)

    def partitions(self) -> list[InputPartition]:
        """Return a partition for each task; files are listed at the time of the call."""
        parts = plan_tasks(self.request)
        _log.info("%s", title(self.request, parts))
        return [PartPartition(of_task) for of_task in packed(self.request, parts)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Return the rows of one partition."""
        settle()
        arrow_schema = arrow_schema_of(self.schema)
        if not isinstance(partition, PartPartition):  # None: Spark's stand-in for an empty list
            return
        for part in partition.parts:
            for batch in read_part(self.request, part, []):
                yield pa.RecordBatch.from_arrays(batch.columns, schema=arrow_schema)


class KraftlogSource(DataSource):
    """Kafka's log files as tables: segments, batches, records, messages, errors, and the tables of transactions.

    ``kraftlog.spark.options`` lists its options. They have the names of Spark's Kafka source where it has the same
    option.
    """

    settings = S3aSettings({})  # of the session that has registered the format

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kraftlog"

    @classmethod
    def of(cls, spark: SparkSession) -> type[KraftlogSource]:
        """Return the format with the settings of a session: Spark itself sends none to a Python data source."""

        class SessionSource(cls):  # type: ignore[misc, valid-type]
            settings = S3aSettings.of(spark)

        return SessionSource if SessionSource.settings.values else cls

    def schema(self) -> StructType:
        """Return the columns that the options ask for."""
        request = parse_request(self._given, is_streaming=None)
        return from_arrow_schema(request.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader; the user's schema selects columns by name."""
        return KraftlogReader(self._request(schema, is_streaming=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        """Return a reader of micro-batches."""
        from kraftlog.spark.stream import KraftlogStreamReader

        return KraftlogStreamReader(self._request(schema, is_streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer of a job; its options are those of ``kraftlog.spark.sink_options``."""
        from kraftlog.spark.sink import KraftlogWriter

        return KraftlogWriter(self._given, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  (Spark's name)
        """Return a writer of micro-batches; options as in ``writer``."""
        from kraftlog.spark.sink import KraftlogStreamWriter

        return KraftlogStreamWriter(self._given, schema, overwrite)

    @property
    def _given(self) -> dict[str, str]:
        return self.settings.added_to(self.options)

    def _request(self, schema: StructType, *, is_streaming: bool) -> Request:
        request = parse_request(self._given, is_streaming=is_streaming).with_columns(tuple(schema.fieldNames()))
        expected = from_arrow_schema(request.schema)
        for wanted, has in zip(schema, expected, strict=True):
            if wanted.dataType != has.dataType:
                raise ValueError(
                    f"column {has.name} is {has.dataType.simpleString()}, not {wanted.dataType.simpleString()}"
                )
        return request
