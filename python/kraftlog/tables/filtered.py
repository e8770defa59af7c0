"""Rows of a table that pass a filter; what the filter rules out is not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.dataset as ds

from kraftlog.codec.options import ReadOptions
from kraftlog.layout.discover import Discovery
from kraftlog.tables.filter_bounds import FilterBounds
from kraftlog.tables.table import Narrows, Table

Read = Callable[[Discovery, pa.Schema, ReadOptions], Iterator[pa.RecordBatch]]


class Filtered:
    """Reads a table for a filter.

    Parameters
    ----------
    expression : pyarrow.compute.Expression
        On columns of the table, whether they are shown or not.
    table : Table
    columns : sequence of str
        Of the rows that come out.
    """

    def __init__(self, expression: ds.Expression, table: Table, columns: Sequence[str]) -> None:
        self._expression = expression
        self._columns = list(columns)
        self._bounds = FilterBounds(expression, table.schema)
        self._reads = table.schema.select([*columns, *(name for name in self._bounds.columns if name not in columns)])
        self._narrows = table.narrows

    def rows(self, found: Discovery, options: ReadOptions, read: Read) -> Iterator[pa.RecordBatch]:
        """Return the rows that pass; ``read`` returns all rows of some files, for a schema and options."""
        if self._narrows is not Narrows.NOTHING:
            found = self._bounds.of(found)
        if self._narrows is Narrows.RECORDS:
            options = self._bounds.within(options)
        for batch in read(found, self._reads, options):
            passed = pa.Table.from_batches([batch]).filter(self._expression).select(self._columns)
            yield from passed.combine_chunks().to_batches()
