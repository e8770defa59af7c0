"""The columns and rules of a decoder, for any number of buffers and files."""

from __future__ import annotations

import pyarrow as pa

from kraftlog._native import decoder as native
from kraftlog.codec.chunk_decoder import rules_of
from kraftlog.codec.options import READ_COMMITTED, ReadOptions
from kraftlog.codec.records import PLAIN, TRANSACTION_COLUMNS, Origin, select


class DecodePlan:
    """The columns of the rows, and the rules that leave some rows out.

    Parameters
    ----------
    arrow_schema : pyarrow.Schema
        Columns of the ``records`` table.
    options : ReadOptions
    origin : Origin
        Values of the columns ``topic`` and ``partition``, and known transactions.
    every_batch : bool
        Whether a chunk has the headers of all its batches, and not only of those with rows.
    only_markers : bool
        Whether only the transaction markers and feature levels of a metadata log become rows.
    layout : {"plain", "view"}
        Layout of key and value in the schema. From a file, bytes are copied in any case, because its window moves.

    Attributes
    ----------
    selection : Selection
        How the columns are built.
    columns : tuple of int, optional
        Their indexes in ``COLUMNS``, if chunks become record batches unchanged.
    transactions : TransactionView, optional
        Known transactions, if some are hidden.
    hides_offsets, hides_rows : bool
        Whether rows are left out of a chunk: because of transactions, or by any rule.
    rules : native.Rules
        The rules for the native decoder.
    """

    def __init__(
        self,
        arrow_schema: pa.Schema,
        options: ReadOptions,
        origin: Origin = Origin(),  # noqa: B008  (frozen)
        *,
        every_batch: bool = False,
        only_markers: bool = False,
        layout: str = PLAIN,
    ) -> None:
        self.schema = arrow_schema
        self.options = options
        self.origin = origin
        self.layout = layout
        self.selection = selection = select(tuple(arrow_schema.names), layout)
        self.transactions = origin.transactions if options.isolation_level == READ_COMMITTED else None
        self.hides_offsets = self.transactions is not None and self.transactions.hides_offsets
        self.hides_rows = self.hides_offsets or options.bounds_offsets or options.bounds_timestamps
        self.columns = None if self.hides_rows else selection.native
        want = selection.bits | (native.ONLY_MARKERS if only_markers else 0)
        if every_batch or not TRANSACTION_COLUMNS.isdisjoint(arrow_schema.names):
            want |= native.EVERY_BATCH  # the checksums of markers are then verified in any case
        if self.hides_offsets or options.bounds_offsets:
            want |= native.WANT["offset"]
        if options.bounds_timestamps:
            want |= native.WANT["timestamp_ms"]
        if options.from_headers and not want & sum(native.WANT.values()) & ~native.HEADER_COLUMNS:
            want |= native.FROM_HEADERS
        self.rules = rules_of(want, options)
