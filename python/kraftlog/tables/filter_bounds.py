"""Bounds of a filter: columns, partitions, offsets and times outside of which no row matches.

A filter is a pyarrow expression. It is not parsed: Arrow decides whether it can be true for rows with known properties,
such as offsets below a limit, as for the files of a dataset. Expressions of any form are therefore supported, as far as
Arrow can decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.layout.discover import Discovery
from kraftlog.schema.table import TIMESTAMP, TableSchema

Bounds = tuple[int, int]

_FORMAT = ds.ParquetFileFormat()
_FILES = LocalFileSystem()
_LAST_MICROSECOND = NO_BOUND // 1000  # in milliseconds: later times do not fit a timestamp


class FilterBounds:
    """The bounds of a filter for the rows of a table.

    Parameters
    ----------
    expression : pyarrow.compute.Expression
        Matches rows for which it is true.
    table : TableSchema

    Raises
    ------
    ValueError
        When it uses a column that the table does not have, or compares incompatible types.

    Examples
    --------
    >>> import pyarrow.compute as pc
    >>> from kraftlog.schema import RECORDS
    >>> bounds = FilterBounds((pc.field("topic") == "orders") & (pc.field("offset") > 5), RECORDS)
    >>> bounds.columns, bounds.allows("orders", 0), bounds.allows("payments", 0)
    (['topic', 'offset'], True, False)
    >>> bounds.within(ReadOptions()).start_offset
    5
    """

    def __init__(self, expression: ds.Expression, table: TableSchema) -> None:
        self._expression = expression
        self._schema = table.select([*table.shown, *table.on_request])
        self._check(self._schema, f"table {table.name}")
        self.columns = [name for name in self._schema.names if not self._binds(self._without(name))]

    def _check(self, schema: pa.Schema, where: str) -> None:
        try:
            self._bind(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
            cause = str(error).split(" in key:")[0].splitlines()[0]
            raise ValueError(f"filter {self._expression} does not go with {where}: {cause}") from None

    def _bind(self, schema: pa.Schema) -> None:
        ds.Scanner.from_batches([], schema=schema, columns=[], filter=self._expression)

    def _binds(self, schema: pa.Schema) -> bool:
        try:
            self._bind(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError):
            return False
        return True

    def _without(self, column: str) -> pa.Schema:
        return self._schema.remove(self._schema.get_field_index(column))

    def _may_be_true(self, known: ds.Expression) -> bool:
        """Return whether the filter can match a row with known properties."""
        fragment = _FORMAT.make_fragment("", filesystem=_FILES, partition_expression=known)
        dataset = ds.FileSystemDataset([fragment], self._schema, _FORMAT)
        try:
            return any(True for _ in dataset.get_fragments(self._expression))
        except pa.ArrowInvalid:  # a value of the filter cannot be compared with one of these bounds
            return True

    def allows(self, topic: str | None, partition: int | None) -> bool:
        """Return whether rows of a partition can pass."""
        return self.allows_values(topic=topic, partition=partition)

    def allows_values(self, **values: object) -> bool:
        """Return whether rows can pass that have these values in the columns of these names."""
        each = (_is(name, value, self._schema.field(name).type) for name, value in values.items())
        return self._may_be_true(reduce(and_, each))

    def of(self, found: Discovery) -> Discovery:
        """Return the files whose rows can match."""
        if "topic" not in self.columns and "partition" not in self.columns:
            return found
        known: dict[tuple[str | None, int | None], bool] = {}

        def allows(topic: str | None, partition: int | None) -> bool:
            if (topic, partition) not in known:
                known[topic, partition] = self.allows(topic, partition)
            return known[topic, partition]

        return found.only(allows)

    def within(self, options: ReadOptions) -> ReadOptions:
        """Return options with the bounds of offsets and times as well."""
        if "offset" in self.columns:
            start, end = self._bounds(ds.field("offset"), _as_is, -NO_BOUND, NO_BOUND)
            start, end = max(start, options.start_offset), min(end, options.end_offset)
            options = replace(options, start_offset=start, end_offset=end)
        if "timestamp" in self.columns and not self._may_be_true(_is("timestamp", None, TIMESTAMP)):
            start, end = self._bounds(ds.field("timestamp"), _as_timestamp, -_LAST_MICROSECOND, _LAST_MICROSECOND)
            if start > -_LAST_MICROSECOND:
                options = replace(options, start_timestamp=max(start, options.start_timestamp))
            if end < _LAST_MICROSECOND:
                options = replace(options, end_timestamp=min(end, options.end_timestamp))
        return options

    def _bounds(self, field: ds.Expression, as_scalar: Callable[[int], pa.Scalar], least: int, most: int) -> Bounds:
        """Return the range of values of matching rows, within [least, most)."""
        start, stop = least, most
        while start < stop:  # the last value before which none passes
            middle = (start + stop + 1) // 2
            start, stop = (start, middle - 1) if self._may_be_true(field < as_scalar(middle)) else (middle, stop)
        end, stop = start, most
        while end < stop:  # the first value from which on none passes
            middle = (end + stop) // 2
            end, stop = (middle + 1, stop) if self._may_be_true(field >= as_scalar(middle)) else (end, middle)
        return start, end


def _is(column: str, value: object, kind: pa.DataType) -> ds.Expression:
    field = ds.field(column)
    return field.is_null() if value is None else field == pa.scalar(value, kind)


def _as_is(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.int64())


def _as_timestamp(milliseconds: int) -> pa.Scalar:
    return pa.scalar(milliseconds * 1000, TIMESTAMP)
