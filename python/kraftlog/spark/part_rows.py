"""A DataFrame with a row for each part of the work, each in a partition of its own.

It is a Python data source, because no other DataFrame of Spark has all of these: it works on Spark Connect; each row
travels with its own task only, without a shuffle; and Spark does not take the frame for a small one. The sizes of a
range or a local relation would be those of the parts, and Spark would broadcast the log that is read from them.
"""

from __future__ import annotations

import base64
import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kraftlog.spark.arrow_schema import arrow_schema_of
from kraftlog.spark.unpickled import reduced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTS = "parts"


def part_rows(spark: SparkSession, parts: Sequence[bytes]) -> DataFrame:
    """Return a DataFrame of a binary column, with a row and a partition for each part, in order."""
    spark.dataSource.register(PartRows)
    text = base64.b85encode(zlib.compress(pickle.dumps(list(parts)), 1)).decode()
    return spark.read.format(PartRows.name()).option(_PARTS, text).load()


class PartRows(DataSource):
    """The parts in the option ``parts``. Options belong to a frame, while a name belongs to a session."""

    options: dict[str, str]

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kraftlog-parts"

    def schema(self) -> str:
        """Return the only column."""
        return "part binary"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader. What is sent to tasks from here on has no parts: Spark sends the data source as well."""
        packed = self.options[_PARTS]
        self.options = {}
        return PartRowsReader(packed, schema)


class PartRowsReader(DataSourceReader):
    """Gives each task its part.

    Parameters
    ----------
    packed : str
        All parts; those of a reader in a task are none.
    schema : StructType
    """

    def __init__(self, packed: str, schema: StructType) -> None:
        self.packed = packed
        self.schema = schema

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return reduced(PartRowsReader("", self.schema))

    def partitions(self) -> list[InputPartition]:
        """Return a partition for each part."""
        parts: list[bytes] = pickle.loads(zlib.decompress(base64.b85decode(self.packed)))
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Return the row of one part."""
        part = None if partition is None else partition.value
        if part is not None:  # None: Spark's stand-in for an empty list
            yield pa.record_batch([pa.array([part], pa.binary())], schema=arrow_schema_of(self.schema))
