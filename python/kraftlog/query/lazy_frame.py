"""``scan``: a table of a log as a Polars lazy frame."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa
import pyarrow.dataset as ds

from kraftlog.disk.remote_path import AnyPath
from kraftlog.errors import DamagedLogWarning
from kraftlog.query.dataset import TableDataset
from kraftlog.stream import Stream, optional_package
from kraftlog.tables.all_tables import table_named
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.options import MessageOptions
from kraftlog.tables.redaction import Redaction

if TYPE_CHECKING:
    import polars


def scan(
    paths: AnyPath | Iterable[AnyPath],
    table: str = "records",
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    strict: bool = True,
    redact: Iterable[str] = (),
    redact_key: bytes | None = None,
    **options: Unpack[MessageOptions],
) -> polars.LazyFrame:
    """Read a table as a Polars lazy frame.

    Files are listed immediately; rows are read each time the frame is collected. Only columns that the query requires
    are decoded. Conditions that Polars can convert to Arrow are passed to the reader: partitions, offsets and times
    that cannot match are not read.

    Parameters
    ----------
    paths : path or iterable of paths
        As in ``open``.
    table : str
        One of ``kraftlog.tables.all_tables.TABLES``, or a message type such as ``PartitionRecord``.
    topics : str or iterable of str, optional
    partitions : iterable of int, optional
    strict : bool
        Raise at the first fault, because frames have no faults. If False, unreadable data is skipped, and each fault is
        a warning.
    redact, redact_key
        As in ``Log.records``, for the table ``records``. Conditions apply to redacted data, so that they do not reveal
        the original data.
    **options
        As in ``Log.records``: offsets, timestamps, ``isolation_level``, and others, if the table has them.

    Returns
    -------
    polars.LazyFrame
        With all columns of the table, including those on request.

    Raises
    ------
    ImportError
        When Polars is not installed.
    TypeError
        For an option that the table does not have.
    RecordError
        While the frame is collected, with ``strict``; Polars may raise it as its own ``ComputeError`` with that text.

    Examples
    --------
    >>> import kraftlog, polars
    >>> orders = kraftlog.scan("tests/golden/transactions/log", topics=["orders"])
    >>> last = orders.filter(polars.col("partition") == 1).select(polars.col("offset").max())
    >>> last.collect().item()
    68
    """
    frames = optional_package("polars", "scan", "'kraftlog[polars]'")
    from polars.io.plugins import register_io_source

    log = open_log(paths, topics=topics, partitions=partitions)
    definition = table_named(table, log.catalog)
    read = definition.read_options({**options, "strict": strict})
    redaction = Redaction.of(redact, redact_key)
    if redaction is not None and table != "records":
        raise ValueError(f"redaction is of the table records, not of {table}")

    def rows(columns: Sequence[str], filter: ds.Expression | None) -> Stream:
        return log.scan(table, columns, read, filter=filter, redaction=redaction, filters_redacted=True)

    def warned(columns: Sequence[str], filter: ds.Expression | None) -> Stream:
        stream = rows(columns, filter)

        def produce(_: object) -> Iterator[pa.RecordBatch]:
            try:
                yield from stream
            finally:  # a query with a limit leaves the rest
                for fault in stream.faults:
                    warnings.warn(fault.message, DamagedLogWarning, stacklevel=2)

        return Stream(stream.schema, produce)

    columns = definition.schema
    every = columns.select([*columns.shown, *columns.on_request])
    source = _Source(every, TableDataset(every, rows if strict else warned))
    return register_io_source(source.frames, schema=frames.from_arrow(every.empty_table()).schema)


class _Source:
    """What Polars reads: rows that an expression of Arrow leaves, and of these those that the predicate of Polars does.

    Arrow takes null in some functions for false, so that its expression may leave more.
    """

    def __init__(self, arrow_schema: pa.Schema, dataset: TableDataset) -> None:
        self._arrow_schema = arrow_schema
        self._dataset = dataset

    def frames(
        self, columns: list[str] | None, predicate: polars.Expr | None, n_rows: int | None, _: int | None
    ) -> Iterator[polars.DataFrame]:
        """Return the rows; ``n_rows`` are counted before the predicate."""
        import polars as pl

        names = self._arrow_schema.names if columns is None else columns
        reads = names if predicate is None else list(dict.fromkeys([*names, *predicate.meta.root_names()]))
        left = None if predicate is None or n_rows is not None else self._in_arrow(predicate)
        for batch in self._dataset.to_batches(reads, left):
            if n_rows is not None:
                if n_rows <= 0:
                    return
                batch = batch.slice(0, n_rows)
                n_rows -= batch.num_rows
            frame = pl.DataFrame(pl.from_arrow(batch))
            yield (frame if predicate is None else frame.filter(predicate)).select(names)

    def _in_arrow(self, predicate: polars.Expr) -> ds.Expression | None:
        """Return what Polars makes of a predicate for datasets of Arrow; None where it cannot."""
        import polars as pl

        found: list[ds.Expression | None] = []

        def no_rows(_: Sequence[str], filter: ds.Expression | None) -> Stream:
            found.append(filter)
            return Stream(self._arrow_schema, lambda _: iter(()))

        pl.scan_pyarrow_dataset(TableDataset(self._arrow_schema, no_rows)).filter(predicate).collect()
        return found[0] if len(found) == 1 else None
