"""Rows that are read on demand, and their faults."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from html import escape
from importlib import import_module
from typing import Any

import pyarrow as pa

from kraftlog import schema
from kraftlog.errors import DamagedLogWarning, Fault, error_from_fault
from kraftlog.notes import Notes

Produce = Callable[[list[Fault]], Iterator[pa.RecordBatch]]


def errors_table(faults: list[Fault], columns: Sequence[str] | None = None) -> pa.Table:
    """Return faults as the ``errors`` table."""
    return pa.Table.from_pylist([asdict(fault) for fault in faults], schema=schema.ERRORS.select(columns))


def raising(rows: Iterator[pa.RecordBatch], faults: list[Fault]) -> Iterator[pa.RecordBatch]:
    """Return rows of a strict pass: a fault raises before rows that it may have changed.

    Raises
    ------
    RecordError
        For the first fault.
    """
    for batch in rows:
        if faults:
            break
        yield batch
    if faults:
        raise error_from_fault(faults[0])


def rows_of(columns: list[pa.Array], arrow_schema: pa.Schema, count: int) -> pa.RecordBatch:
    """Return columns as a record batch; a batch without columns still has a number of rows."""
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema)


def optional_package(name: str, user: str, how: str = "") -> Any:
    """Return an optional package; ``user`` requires it, and ``how`` is the way to install it, if not by its name.

    Raises
    ------
    ImportError
        When it is not installed; the message tells how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        message = f"{user} needs {name}, which is not installed: pip install {how or name}"
        raise ImportError(message, name=name) from None


class Stream:
    """Rows of a table, a record batch at a time, in bounded memory.

    Each call of ``batches``, and each loop over the stream, reads from the start. The stream implements the Arrow
    PyCapsule protocol, so that ``pyarrow.table(stream)``, Polars and DuckDB accept it directly.

    Parameters
    ----------
    arrow_schema : pyarrow.Schema
        Schema of each record batch.
    produce : callable
        Starts one pass; receives the list to which it must append faults.
    produce_whole : callable, optional
        The same with few record batches that are all kept, for ``to_table``.
    notes : Notes, optional
        Receives the notes of a pass.
    is_of_faults : bool
        Whether the rows are the faults, so that no warning is required.

    Attributes
    ----------
    notes : Notes
        Notes on the last pass, such as the offset at which a read_committed reader stopped.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = pa.record_batch({"offset": [0, 1]})
    >>> stream = Stream(rows.schema, lambda faults: iter([rows]))
    >>> sum(batch.num_rows for batch in stream)
    2
    >>> stream
    <Stream: offset int64>
    """

    _is_looked_at = True  # of an object without __init__

    def __init__(
        self,
        arrow_schema: pa.Schema,
        produce: Produce,
        produce_whole: Produce | None = None,
        notes: Notes | None = None,
        *,
        is_of_faults: bool = False,
    ) -> None:
        self.schema = arrow_schema
        self._produce = produce
        self._produce_whole = produce_whole or produce
        self._faults: list[Fault] = []
        self._is_of_faults = is_of_faults
        self.notes = Notes() if notes is None else notes

    @property
    def faults(self) -> list[Fault]:
        """The faults of the last pass.

        If there are faults and the program has not looked at them, a ``DamagedLogWarning`` is issued at the end of the
        stream.
        """
        self._is_looked_at = True
        return self._faults

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read from the start; ``faults`` and ``errors`` are complete at the end of the iteration."""
        return self._kept(self._start(self._produce))

    def _start(self, produce: Produce) -> Iterator[pa.RecordBatch]:
        self._faults = []
        self._is_looked_at = self._is_of_faults
        self.notes.clear()
        return produce(self._faults)

    def _kept(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return rows; they keep a reference to the stream, which warns at its end."""
        try:
            yield from rows
        except Exception:
            self._is_looked_at = True  # the fault is raised
            raise

    def __del__(self) -> None:
        if not self._is_looked_at and self._faults:
            first, count = self._faults[0].message, len(self._faults)
            of = "1 fault" if count == 1 else f"{count} faults, the first one"
            text = f"rows may be missing or wrong: {of}: {first}; Stream.faults has them, and strict=True raises"
            warnings.warn(text, DamagedLogWarning, stacklevel=2)

    def to_table(self) -> pa.Table:
        """Read everything into memory."""
        try:
            return pa.Table.from_batches(self._start(self._produce_whole), schema=self.schema)
        except Exception:
            self._is_looked_at = True  # the fault is raised
            raise

    def to_pandas(self) -> Any:
        """Read everything into a ``pandas.DataFrame``.

        Raises
        ------
        ImportError
            When pandas is not installed.
        """
        optional_package("pandas", "to_pandas")
        return self.to_table().to_pandas()

    def to_polars(self) -> Any:
        """Read everything into a ``polars.DataFrame``.

        Raises
        ------
        ImportError
            When Polars is not installed.
        """
        return optional_package("polars", "to_polars").from_arrow(self.to_table())

    def to_duckdb(self, connection: Any = None) -> Any:
        """Read everything into memory, as a relation of DuckDB.

        Parameters
        ----------
        connection : duckdb.DuckDBPyConnection, optional
            Default: DuckDB's default connection.

        Returns
        -------
        duckdb.DuckDBPyRelation
            Can be queried repeatedly: ``stream.to_duckdb().aggregate("count(*)")``.

        Raises
        ------
        ImportError
            When DuckDB is not installed.
        """
        duckdb = optional_package("duckdb", "to_duckdb")
        return (duckdb if connection is None else connection).from_arrow(self.to_table())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(f'{field.name} {field.type}' for field in self.schema)}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(f.name)}</td><td>{escape(str(f.type))}</td></tr>" for f in self.schema)
        table = f"<table><thead><tr><th>column</th><th>type</th></tr></thead><tbody>{rows}</tbody></table>"
        return f"<p>{type(self).__name__}: rows are read when they are asked for</p>{table}"

    @property
    def errors(self) -> pa.Table:
        """The faults of the last pass, as the ``errors`` table."""
        return errors_table(self.faults)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a ``pyarrow.RecordBatchReader`` over one pass."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)
