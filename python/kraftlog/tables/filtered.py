"""Rows of a table that match a filter; data that cannot match is not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlog.tables.read import Read
from kraftlog.tables.stage import Source
from kraftlog.tables.table import Narrows, Table
from kraftlog.topics import names

if TYPE_CHECKING:
    import pyarrow.dataset as ds


def among(wanted: Mapping[str, str | Iterable[str] | None]) -> ds.Expression | None:
    """Return the filter for rows whose columns have one of some values; None when all rows are wanted."""
    chosen = {name: names(values) for name, values in wanted.items() if values is not None}
    if not chosen:
        return None
    import pyarrow.compute as pc

    return reduce(and_, (pc.field(name).isin(values) for name, values in chosen.items()))


class Filtered:
    """Keeps the rows for which an expression is true.

    Parameters
    ----------
    expression : pyarrow.compute.Expression
        Uses columns of the table, also those that are not returned.
    table : Table

    Raises
    ------
    ValueError
        When it uses a column that the table does not have, or compares incompatible types.
    """

    def __init__(self, expression: ds.Expression, table: Table) -> None:
        from kraftlog.tables.filter_bounds import FilterBounds

        self._expression, self._table = expression, table
        self._bounds = FilterBounds(expression, table.schema)

    def rows(self, read: Read, source: Source) -> Iterator[pa.RecordBatch]:
        """Return the matching rows."""
        names, files, options = read.schema.names, read.files, read.options
        more = [name for name in self._bounds.columns if name not in names]
        if self._table.narrows is not Narrows.NOTHING:
            files = self._bounds.of(files)
        if self._table.narrows is Narrows.RECORDS:
            options = self._bounds.within(options)
        wanted = self._table.schema.select([*names, *more])
        for batch in source(replace(read, files=files, options=options, schema=wanted, bounds=self._bounds)):
            passed = pa.Table.from_batches([batch]).filter(self._expression).select(names)
            yield from passed.combine_chunks().to_batches()
