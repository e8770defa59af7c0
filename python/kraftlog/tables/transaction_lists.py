"""A column of pieces of a metadata log: a list of the transactions of each, matched in one pass over the column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.arrow_arrays import array_of
from kraftlog.codec.list_column import binary_values, by_chunk, lists_of
from kraftlog.codec.markers import ColumnMarkers, column_markers
from kraftlog.codec.metadata_markers import BEGIN_TRANSACTION
from kraftlog.errors import Fault, RecordError, error_from_fault
from kraftlog.read.metadata_scan import scan_piece
from kraftlog.tables.transaction_tables import columns_of_transactions, metadata_transaction_columns
from kraftlog.transactions.metadata_columns import (
    MARKER_DTYPE,
    Ints,
    Stretch,
    rows_between,
)
from kraftlog.transactions.producer import NONE, OPEN
from kraftlog.types import Buffer

_TABLE = schema.METADATA_TRANSACTIONS.select()
TRANSACTION = pa.struct(list(_TABLE))
Flags = npt.NDArray[np.bool_]


@by_chunk
def transaction_lists(column: pa.Array, *, on_fault_null: bool = False) -> pa.ListArray:
    """Return the transactions of each value, as rows of the table metadata_transactions.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray of binary
        Each value is a piece of a metadata log.
    on_fault_null : bool
        Whether a value with a fault becomes null instead of an exception.

    Returns
    -------
    pyarrow.ListArray
        Null for null.

    Raises
    ------
    RecordError
        For the first value with an unreadable batch or a misplaced marker.
    """
    data, bounds, is_null = binary_values(column)
    found = column_markers(data, bounds)
    if not len(found.markers.headers):
        pieces, rows, is_odd = np.empty(0, np.int64), pa.array([], TRANSACTION), found.is_bad.copy()
    else:
        pieces, rows, is_odd = _matched(found)
    if on_fault_null:
        is_null = is_null | found.is_bad
        is_odd &= ~found.is_bad
    keep = ~(is_odd | is_null)[pieces]
    if not keep.all():
        pieces, rows = pieces[keep], rows.filter(array_of(keep))
    parts, numbers = [rows], [pieces]
    for piece in np.flatnonzero(is_odd).tolist():
        try:
            start, end = bounds[piece]
            transactions = piece_transactions(memoryview(data)[start:end])
        except RecordError:
            if not on_fault_null:
                raise
            is_null[piece] = True
            continue
        parts.append(transactions)
        numbers.append(np.full(len(transactions), piece))
    if len(parts) > 1:
        pieces = np.concatenate(numbers)
        rows = pa.concat_arrays(parts).take(array_of(np.argsort(pieces, kind="stable")))
    return lists_of(rows, np.cumsum(np.bincount(pieces, minlength=len(is_null))), is_null)


def piece_transactions(data: Buffer) -> pa.StructArray:
    """Return the transactions of a piece of a metadata log.

    Raises
    ------
    RecordError
        At the first unreadable batch, and at the first misplaced marker.
    """
    faults: list[Fault] = []
    rows = [metadata_transaction_columns(found, _TABLE, faults) for found in scan_piece(data)]
    if faults:
        raise error_from_fault(faults[0])
    return pa.Table.from_batches(rows, _TABLE).combine_chunks().to_struct_array().combine_chunks()


def _matched(found: ColumnMarkers) -> tuple[Ints, pa.StructArray, Flags]:
    """Return the transactions of all pieces, the piece of each, and which pieces need ``piece_transactions``.

    Where no offset is missing, a marker ends the transaction that the marker before it in the same piece began.
    """
    stretch = Stretch.of(found.markers)
    cells = found.markers.outline[0]
    batch_ends = found.batch_ends
    batch_counts = np.diff(batch_ends, prepend=0)
    has_batches = batch_counts > 0
    first_batch = batch_ends - batch_counts
    marker_ends = np.searchsorted(stretch.batch_of, batch_ends)
    marker_counts = np.diff(marker_ends, prepend=0)
    piece_of = np.repeat(np.arange(len(batch_ends)), marker_counts)

    is_odd = found.is_bad | _has_gaps(stretch, first_batch[has_batches], batch_ends)
    is_odd[piece_of[found.is_odd]] = True
    is_begin = stretch.api_keys == BEGIN_TRANSACTION
    is_first = np.zeros(len(cells), bool)
    is_first[(marker_ends - marker_counts)[marker_counts > 0]] = True
    may_be_inside = np.zeros(len(batch_ends), bool)
    may_be_inside[has_batches] = stretch.base[first_batch[has_batches]] > 0
    is_open = np.append(False, is_begin[:-1])
    is_open[is_first] = ~is_begin[is_first] & may_be_inside[piece_of[is_first]]
    is_odd[piece_of[is_begin == is_open]] = True

    # behind the markers: a row for the start of each piece that ends a transaction which it does not begin, and a row
    # for the end of each piece that leaves one open
    last = (marker_ends - 1)[marker_counts > 0]
    ends, opened = np.flatnonzero(~is_begin), last[is_begin[last]]
    is_cut = is_first[ends]
    starts = _edges(stretch, first_batch[piece_of[ends[is_cut]]])
    starts["batches"] += 1
    finishes = _edges(stretch, batch_ends[piece_of[opened]])
    table = [cells, *(rows.view(np.int64).reshape(-1, cells.shape[1]) for rows in (starts, finishes) if len(rows))]
    rows = np.concatenate(table) if len(table) > 1 else cells
    begins = ends - 1
    begins[is_cut] = len(cells) + np.arange(len(starts))
    begins, finished = np.append(begins, opened), np.append(ends, len(rows) - len(finishes) + np.arange(len(finishes)))
    pieces = piece_of[np.append(ends, opened)]
    if len(opened):
        order = np.argsort(pieces, kind="stable")
        pieces, begins, finished = pieces[order], begins[order], finished[order]
    transactions = rows_between(*(rows.take(at, axis=0).view(MARKER_DTYPE)[:, 0] for at in (begins, finished)))
    is_left_open = finished >= len(cells)
    transactions["state"][is_left_open] = OPEN
    names = found.texts.take(array_of(begins, mask=begins >= len(cells)))
    reasons = found.texts.take(array_of(finished, mask=is_left_open))
    return pieces, columns_of_transactions(transactions, names, reasons, _TABLE).to_struct_array(), is_odd


def _has_gaps(stretch: Stretch, first_batches: Ints, batch_ends: Ints) -> Flags:
    """Return which pieces lack offsets between their batches."""
    is_gap = np.append(False, stretch.base[1:] > stretch.last[:-1] + 1)
    is_gap[first_batches] = False
    gaps = np.append(0, np.cumsum(is_gap))[np.append(0, batch_ends)]
    return np.asarray(np.diff(gaps) > 0)


def _edges(stretch: Stretch, batches: Ints) -> npt.NDArray[np.void]:
    """Return rows for the places in front of batches, where there is no marker."""
    records, data_batches, sizes = (np.append(0, sums)[batches] for sums in stretch.sums)
    rows = np.zeros(len(batches), MARKER_DTYPE)
    rows["offset"] = rows["partition_leader_epoch"] = NONE
    rows["records"] = records - np.searchsorted(stretch.batch_of, batches)
    rows["batches"] = data_batches
    rows["bytes_before"] = rows["bytes_through"] = sizes
    return rows
