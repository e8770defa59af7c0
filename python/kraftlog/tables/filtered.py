"""Rows of a table that pass a filter; what the filter rules out is not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.dataset as ds

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.layout.discover import Discovery
from kraftlog.tables.filter_bounds import FilterBounds

# Their rows are single records: offsets and times of rows are those of the log.
_OF_RECORDS = ("records", "messages")
# Their topics and partitions are those of the log.
_OF_PARTITIONS = (*_OF_RECORDS, "batches", "segments", "replicas", "index_entries")

Read = Callable[[Discovery, pa.Schema, ReadOptions], Iterator[pa.RecordBatch]]


class Filtered:
    """Reads a table for a filter.

    Parameters
    ----------
    expression : pyarrow.compute.Expression
        On columns of the table, whether they are shown or not.
    table : TableSchema
    columns : sequence of str
        Of the rows that come out.
    """

    def __init__(self, expression: ds.Expression, table: schema.TableSchema, columns: Sequence[str]) -> None:
        self._expression = expression
        self._columns = list(columns)
        self._bounds = FilterBounds(expression, table)
        self._reads = table.select([*columns, *(name for name in self._bounds.columns if name not in columns)])
        self._is_of_records = table.name in _OF_RECORDS or table.name not in schema.TABLES
        self._is_of_partitions = self._is_of_records or table.name in _OF_PARTITIONS

    def rows(self, found: Discovery, options: ReadOptions, read: Read) -> Iterator[pa.RecordBatch]:
        """Return the rows that pass; ``read`` returns all rows of some files, for a schema and options."""
        if self._is_of_partitions:
            found = self._bounds.of(found)
        if self._is_of_records:
            options = self._bounds.within(options)
        for batch in read(found, self._reads, options):
            passed = pa.Table.from_batches([batch]).filter(self._expression).select(self._columns)
            yield from passed.combine_chunks().to_batches()
