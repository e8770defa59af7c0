"""A table of a log as a dataset of Arrow, for engines that hand columns and filters down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from kraftlog.stream import Stream

Open = Callable[[Sequence[str], ds.Expression | None], Stream]


class TableDataset(ds.Dataset):  # type: ignore[misc]
    """A table that is read when it is scanned: only the columns that are wanted, and what the filter leaves.

    Parameters
    ----------
    arrow_schema : pyarrow.Schema
    open_stream : callable
        Returns the rows of some columns that pass a filter.
    """

    def __init__(self, arrow_schema: pa.Schema, open_stream: Open) -> None:
        self._arrow_schema = arrow_schema
        self._open = open_stream

    @property
    def schema(self) -> pa.Schema:
        """The columns there are."""
        return self._arrow_schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: ds.Expression | None = None, **_: Any
    ) -> TableScanner:
        """Return the rows of one scan."""
        return TableScanner(self._open(self._arrow_schema.names if columns is None else columns, filter))

    def to_batches(
        self, columns: Sequence[str] | None = None, filter: ds.Expression | None = None, **_: Any
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows of one scan, a batch at a time."""
        return iter(self.scanner(columns, filter).to_reader())


class TableScanner:
    """One scan. Rows are read when they are asked for, in the thread that asks; a scan that is left reads no more."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows."""
        return self._stream.to_reader()
