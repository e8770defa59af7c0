"""Bytes to rows: runs the native decoder over a range of a buffer and provides the data that it requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog import schema
from kraftlog._native.chunk import Chunk
from kraftlog._native.lookahead import Lookahead
from kraftlog.codec.aborted_transactions import aborted_ranges, named_transactions
from kraftlog.codec.buffer_stream import BufferStream, Progress
from kraftlog.codec.chunk_decoder import ChunkDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.headers import Headers
from kraftlog.codec.options import NO_BOUND, READ_UNCOMMITTED, ReadOptions
from kraftlog.codec.records import (
    LAYOUTS,
    MOST_ROWS,
    PLAIN,
    TRANSACTION_COLUMNS,
    VIEW,
    DecodedRows,
    record_batch,
)
from kraftlog.errors import Fault, fault_from_native
from kraftlog.topics import names
from kraftlog.types import Buffer, InputFile, IsolationLevel

DECODE_COLUMNS = tuple(name for name in schema.RECORDS.shown if name not in ("topic", "partition"))
BYTES_OF_A_TABLE = 64 << 20  # of input, that are decoded into one piece of memory when all rows are kept
BYTES_OF_VIEWS = 8 << 20  # the same when keys and values are not copied, whether rows are kept or not
BatchObserver = Callable[[Headers], None]
_import_rows = pa.RecordBatch._import_from_c
_OPTIONS = (
    "isolation_level",
    "include_control",
    "strict",
    "check_crc",
    "salvage",
    "max_decompressed_bytes",
)


class RecordDecoder(ChunkDecoder):
    """Decodes the record batches that start in [start, end) of a buffer or file into Arrow record batches.

    Parameters
    ----------
    buffer : buffer or file
        The whole file or message set; batches may reach beyond ``end``, never beyond the buffer. A file, as
        ``Disk.open`` returns it, is read through a window.
    start, end : int
        Positions in bytes; a batch must begin at ``start``.
    plan : DecodePlan
    aborted : numpy.ndarray, optional
        Byte ranges of aborted transactions from ``aborted_ranges``; by default those in the ``origin`` of the plan.
    whole : bool
        Whether all rows are kept: they are then decoded into larger chunks than the options of the plan request.
    follows : bool
        Whether to leave out records of aborted transactions based on the file itself, which is read ahead as far as
        required. No transaction may be open at its start. While transactions are open, the window contains up to 16
        times as much of the file as usual, in a block of at most 32 times the size.
    pieces : numpy.ndarray, optional
        Start and end of each piece of the buffer that is decoded as a buffer of its own; for strict plans. A fault ends
        its piece only.

    Attributes
    ----------
    torn_at : int
        Byte at which a torn tail starts; -1 when there is none.
    hidden_records : int
        Number of records of aborted transactions that were left out so far.
    is_undecided : bool
        Whether it ended at the start of a transaction that does not end in the file.
    salvaged_rows : int
        Number of rows so far from batches found by a search after damage.
    """

    def __init__(
        self,
        buffer: Buffer | InputFile,
        start: int,
        end: int,
        plan: DecodePlan,
        aborted: npt.NDArray[np.int64] | None = None,
        whole: bool = False,
        *,
        follows: bool = False,
        pieces: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.plan = plan
        self._whole = whole
        self._has_pieces = pieces is not None
        options = plan.options
        transactions = plan.transactions
        if aborted is None and transactions is not None:
            aborted = transactions.aborted()
        super().__init__(
            buffer,
            start,
            end,
            plan.rules,
            options,
            rows=MOST_ROWS if whole else options.batch_rows,
            size=BYTES_OF_A_TABLE if whole else options.batch_bytes,
            aborted=aborted,
            aborted_by_offset=transactions is not None and transactions.aborted_by_offset,
            lookahead=Lookahead(buffer, False) if follows else None,
            pieces=pieces,
        )
        self.salvaged_rows = 0

    def batches(self, faults: list[Fault], observe: BatchObserver | None = None) -> Iterator[pa.RecordBatch]:
        """Decode; faults are appended to ``faults``, or with ``strict`` raised after the preceding rows.

        ``observe`` is called with the headers of each chunk before its rows are returned.

        Raises
        ------
        InputError
            When the file cannot be read, after the preceding rows.
        """
        plan = self.plan
        is_cut = self._whole and not self._has_pieces  # rows of pieces are wanted in one array
        most_rows = plan.selection.shared_rows if is_cut else plan.selection.most_rows
        for chunk in self.native_chunks(faults):
            if observe is not None:
                observe(self._seen(chunk).headers)
            if plan.columns is None or self._native.salvaged_at >= 0:
                yield from self._rows(self._seen(chunk))
                continue
            start, rows = 0, chunk.rows
            while start < rows:
                yield chunk.to_record_batch(plan.columns, _import_rows, plan.schema, start, most_rows)
                start += most_rows

    def chunks(self, faults: list[Fault]) -> Iterator[DecodedRows]:
        """Decode like ``batches``, but return the buffers of each chunk, before rows out of bounds are left out."""
        for chunk in self.native_chunks(faults):
            yield self._seen(chunk)

    def piece_ends(self) -> tuple[npt.NDArray[np.int64], list[tuple[int, Fault]]]:
        """Return the numbers of rows and batches up to the end of each piece, and the first fault of each bad piece."""
        ends, faults = self._native.take_piece_ends()
        return np.frombuffer(ends, np.int64).reshape(-1, 2), [
            (piece, fault_from_native(found, detail)) for piece, found, detail in faults
        ]

    def _seen(self, chunk: Chunk) -> DecodedRows:
        return DecodedRows(chunk, self.plan.origin, self._native.salvaged_at)

    def _rows(self, rows: DecodedRows) -> Iterator[pa.RecordBatch]:
        batch = record_batch(rows, self.plan.schema, self.plan.selection)
        if self.plan.hides_rows or rows.salvaged_at >= 0:
            keep = self._shown(rows)
            self.salvaged_rows += int(np.count_nonzero(keep & rows.salvaged))
            if not keep.all():
                yield from _kept(batch, keep, self.plan.layout)
                return
        if batch.num_rows:
            yield batch

    def _shown(self, rows: DecodedRows) -> npt.NDArray[np.bool_]:
        options, transactions = self.plan.options, self.plan.transactions
        keep = np.ones(rows.chunk.rows, bool)
        if self.plan.hides_offsets and transactions is not None:
            keep &= transactions.shows(rows.headers, rows.numbers("offset"))
        if options.bounds_offsets:
            offsets = rows.numbers("offset")
            keep &= (offsets >= options.start_offset) & (offsets < options.end_offset)
        if options.bounds_timestamps:
            stamps = rows.numbers("timestamp_ms")
            keep &= (stamps >= options.start_timestamp) & (stamps < options.end_timestamp)
        return keep


def _kept(batch: pa.RecordBatch, keep: npt.NDArray[np.bool_], layout: str) -> Iterator[pa.RecordBatch]:
    """Return the rows to keep; views, which pyarrow cannot filter, are sliced run by run."""
    if layout == PLAIN:
        batch = batch.filter(pa.array(keep))
        if batch.num_rows:
            yield batch
        return
    edges = np.flatnonzero(np.diff(keep, prepend=False, append=False)).tolist()
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        yield batch.slice(first, end - first)


@lru_cache(maxsize=64, typed=True)
def _plan_of(
    columns: tuple[str, ...],
    layout: str,
    batch_rows: int | None,
    batch_bytes: int | None,
    start_offset: int | None,
    *given: Any,
) -> DecodePlan:
    usual = BYTES_OF_VIEWS if layout == VIEW else ReadOptions.batch_bytes  # views are small, whatever they show
    options = ReadOptions(
        start_offset=ReadOptions.start_offset if start_offset is None else start_offset,
        batch_rows=ReadOptions.batch_rows if batch_rows is None else batch_rows,
        batch_bytes=usual if batch_bytes is None else batch_bytes,
        **dict(zip(_OPTIONS, given, strict=True)),
    )
    return DecodePlan(schema_of(columns, layout), options, layout=layout)


@lru_cache(maxsize=64)
def strict_plan(columns: tuple[str, ...], *, include_control: bool) -> DecodePlan:
    """Return the plan of ``decode`` with ``strict``."""
    return DecodePlan(schema_of(columns, PLAIN), ReadOptions(strict=True, include_control=include_control))


@lru_cache(maxsize=64)
def schema_of(columns: tuple[str, ...], layout: str) -> pa.Schema:
    """Return the schema of some columns of the table ``records``.

    Raises
    ------
    ValueError
        When the layout is unknown, or a column is known only of a log.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
    of_transactions = sorted(TRANSACTION_COLUMNS & set(columns))
    if of_transactions:
        raise ValueError(f"{', '.join(of_transactions)}: only known of a log; use kraftlog.open")
    found = schema.RECORDS.select(columns)
    if layout == PLAIN:
        return found
    return pa.schema(
        [field.with_type(pa.binary_view()) if field.name in ("key", "value") else field for field in found]
    )


def decode(
    buffer: Buffer,
    *,
    columns: Sequence[str] | None = None,
    start_offset: int | None = None,
    isolation_level: IsolationLevel = READ_UNCOMMITTED,
    aborted_transactions: Iterable[tuple[int, int]] | None = None,
    include_control: bool = False,
    strict: bool = False,
    check_crc: bool = True,
    salvage: bool = False,
    max_decompressed_bytes: int = ReadOptions.max_decompressed_bytes,
    batch_rows: int | None = None,
    batch_bytes: int | None = None,
    layout: str = PLAIN,
) -> BufferStream:
    """Decode record batches, and message sets of older formats, into Arrow.

    The format is specified in "Messages" of Kafka's protocol documentation; ``native/c/batch/batch.h`` draws it.

    Parameters
    ----------
    buffer : buffer
        Any contiguous buffer with consecutive record batches, such as a log file or a fetch response.
    columns : sequence of str, optional
        Columns of the ``records`` table; only these are decoded. By default key, value, offset, timestamp,
        timestamp_type and headers.
    start_offset : int, optional
        Records before it are left out: the first batch of a fetch response may begin before the requested offset.
    isolation_level : {"read_uncommitted", "read_committed"}
        ``read_committed`` leaves out records of ``aborted_transactions``. A fetch response at read_committed contains
        no open transactions. For a log use ``kraftlog.open``, which finds both itself.
    aborted_transactions : iterable of (producer_id, first_offset), optional
        The aborted transactions of the fetch response; the iterable is read once. Required with read_committed; empty
        if there are none.
    include_control : bool
        Whether to include records of control batches.
    strict : bool
        Raise at the first fault, after the preceding rows, instead of adding it to ``errors``.
    check_crc : bool
        Whether to verify the checksum of each batch; ``read_committed`` always does.
    salvage : bool
        Whether to search for batches after damage that leaves no header at which to continue, and in the partial batch
        at the end. A batch found in this way may be part of a producer's value; the column ``salvaged`` marks it.
    max_decompressed_bytes : int
        Maximum size of a batch after decompression, in bytes.
    batch_rows, batch_bytes : int, optional
        Size of a record batch: rows, or bytes of input. By default ``to_table`` decodes into larger chunks than an
        iteration.
    layout : {"plain", "view"}
        Layout of key and value: Arrow's binary, or its binary_view. Views point into ``buffer`` and do not copy from
        it, except from compressed batches. They reference it as long as they exist; it must not change during that
        time. Polars and DuckDB accept views; pyarrow, at least up to 26, slices and casts views but does not filter
        them.

    Returns
    -------
    BufferStream
        The rows, and the number of consumed bytes. Decoding is lazy. Record batches own their memory; ``buffer`` is
        referenced during an iteration, and by views.

    Raises
    ------
    ValueError
        When a column or layout is unknown, or ``aborted_transactions`` contradict the isolation level.
    RecordError
        While rows are read, with ``strict``.

    Examples
    --------
    >>> import pyarrow as pa, kraftlog
    >>> data = kraftlog.encode(pa.table({"value": [b"a", None]}), base_offset=7)
    >>> kraftlog.decode(data, columns=["offset", "value"]).to_table().to_pylist()
    [{'offset': 7, 'value': b'a'}, {'offset': 8, 'value': None}]
    >>> kraftlog.decode(data, columns=["value"], layout="view").schema.field("value").type
    DataType(binary_view)

    A fetch response in which producer 3 has aborted what it wrote from offset 0 on:

    >>> of_producer = {"producer_id": 3, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    >>> parts = [
    ...     kraftlog.encode(pa.table({"value": [b"a"]}), base_offset=0, **of_producer),
    ...     kraftlog.encode_marker("ABORT", producer_id=3, producer_epoch=0, base_offset=1),
    ...     kraftlog.encode(pa.table({"value": [b"b", b"c"]}), base_offset=2, **of_producer),
    ... ]
    >>> response = b"".join(part.to_pybytes() for part in parts)
    >>> rows = kraftlog.decode(response, isolation_level="read_committed", aborted_transactions=[(3, 0)])
    >>> rows.to_table().column("offset").to_pylist()
    [2, 3]
    """
    plan = _plan_of(
        DECODE_COLUMNS if columns is None else tuple(names(columns)),
        layout,
        batch_rows,
        batch_bytes,
        start_offset,
        isolation_level,
        include_control,
        strict,
        check_crc,
        salvage,
        max_decompressed_bytes,
    )
    pairs = named_transactions(isolation_level, aborted_transactions)
    progress = Progress()
    has_size = batch_rows is not None or batch_bytes is not None

    def produce(faults: list[Fault], whole: bool = False) -> Iterator[pa.RecordBatch]:
        aborted = None if pairs is None else aborted_ranges(buffer, pairs)
        return progress.follow(RecordDecoder(buffer, 0, NO_BOUND, plan, aborted, whole), faults)

    return BufferStream(plan.schema, produce, progress, lambda faults: produce(faults, not has_size))
