"""Transactions of a metadata log, from its files or from a piece of it in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kraftlog.codec.markers import api_key, scan_markers
from kraftlog.codec.metadata_markers import BEGIN_TRANSACTION, MARKER_NAMES
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Segment
from kraftlog.read.records import Progress, located, open_segment
from kraftlog.transactions.boundaries import (
    Boundaries,
    MetadataTransactionFold,
    MetadataTransactions,
    Resolved,
)
from kraftlog.types import Buffer

NOT_OPEN, ALREADY_OPEN = "end_outside_transaction", "begin_inside_transaction"
IN_SNAPSHOT, BEGUN_BEFORE = "marker_in_snapshot", "begun_before_log"


@dataclass(frozen=True)
class Scanned:
    """Transactions that ended in a stretch of the log; an open one at the end comes last.

    Attributes
    ----------
    transactions : numpy.ndarray
        Of ``METADATA_TRANSACTION_DTYPE``.
    begin_values, end_values : list of bytes or None
        Their marker records.
    illegal : numpy.ndarray
        Offsets of markers that are out of place.
    """

    transactions: MetadataTransactions
    begin_values: list[bytes | None]
    end_values: list[bytes | None]
    illegal: np.ndarray


def scan_boundaries(
    segments: list[Segment],
    faults: list[Fault],
    *,
    unread: list[Fault] | None = None,
    strict: bool = False,
    on_progress: Progress | None = None,
) -> Iterator[Scanned]:
    """Find the transactions of one metadata log, or of one of its snapshots.

    Parameters
    ----------
    segments : list of Segment
        Of one partition, in order.
    faults : list of Fault
        Receives markers that are out of place.
    unread : list of Fault, optional
        Receives what cannot be read, for those who do not read the records as well.
    strict : bool
        Raise at the first marker that is out of place.
    """
    fold: MetadataTransactionFold | None = None
    for segment in segments:
        missing: list[Fault] = []
        damaged: list[Fault] = []
        buffer = open_segment(segment, missing, strict=False)
        in_snapshot = segment.state == ".checkpoint"
        for headers, offsets, values in scan_markers(buffer, damaged):
            if fold is None:
                fold = MetadataTransactionFold(begun_before=bool(headers["base_offset"][0] > 0) and not in_snapshot)
            keys = np.array([api_key(value) for value in values], np.int64)
            found, resolved = fold.add(Boundaries.of_batches(headers, offsets, keys, values))
            if in_snapshot:
                resolved = Resolved.all_illegal(len(values))
                fold = MetadataTransactionFold()
            for fault in (located(segment, each) for each in _misplaced(found, resolved, in_snapshot=in_snapshot)):
                if strict:
                    raise error_from_fault(fault)
                faults.append(fault)
            yield _scanned(found, resolved)
        if unread is not None:
            unread += missing + [located(segment, fault) for fault in damaged]
        if on_progress:
            on_progress(segment.size)
    if fold is not None:
        yield _scanned(*fold.finish())


def scan_piece(buffer: Buffer) -> Iterator[Scanned]:
    """Find the transactions of a piece of a metadata log, which may begin and end inside of one.

    Parameters
    ----------
    buffer : buffer
        Record batches, one behind the other.

    Raises
    ------
    RecordError
        At the first batch that cannot be read, and at the first marker that is out of place.
    """
    fold: MetadataTransactionFold | None = None
    for headers, offsets, values in scan_markers(buffer, [], strict=True):
        fold = fold or MetadataTransactionFold(begun_before=bool(headers["base_offset"][0] > 0))
        keys = np.array([api_key(value) for value in values], np.int64)
        found, resolved = fold.add(Boundaries.of_batches(headers, offsets, keys, values))
        for fault in _misplaced(found, resolved, in_snapshot=False):
            if fault.error != BEGUN_BEFORE:
                raise error_from_fault(fault)
        yield _scanned(found, resolved)
    if fold is not None:
        yield _scanned(*fold.finish())


def _scanned(found: Boundaries, resolved: Resolved) -> Scanned:
    def values(at: np.ndarray) -> list[bytes | None]:
        return [None if index < 0 else found.values[index] for index in at.tolist()]

    return Scanned(
        resolved.transactions,
        values(resolved.begin_at),
        values(resolved.end_at),
        found.markers["offset"][resolved.illegal],
    )


def _misplaced(found: Boundaries, resolved: Resolved, *, in_snapshot: bool) -> Iterator[Fault]:
    """Return a fault for each marker that is out of place, and for a transaction whose Begin is not in the log."""
    begins = np.flatnonzero(found.markers["api_key"] == BEGIN_TRANSACTION)
    legal_begins = begins[~np.isin(begins, resolved.illegal)]
    for at in resolved.illegal.tolist():
        marker = found.markers[at]
        what = MARKER_NAMES[int(marker["api_key"])]
        if in_snapshot:
            code, why = IN_SNAPSHOT, "a snapshot holds no transactions"
        elif marker["api_key"] == BEGIN_TRANSACTION:
            since = found.markers["offset"][legal_begins[np.searchsorted(legal_begins, at) - 1]]
            code, why = ALREADY_OPEN, f"but a transaction is open since offset {since}"
        else:
            code, why = NOT_OPEN, "but no transaction is open"
        yield _fault(marker, code, f"{what} at offset {marker['offset']}, {why}")
    for transaction, at in zip(resolved.transactions, resolved.end_at.tolist(), strict=True):
        if transaction["begin_offset"] < 0:
            what = MARKER_NAMES[int(found.markers["api_key"][at])]
            why = f"{what} at offset {transaction['end_offset']}, but the transaction began before this log"
            yield _fault(found.markers[at], BEGUN_BEFORE, why)


def _fault(marker: np.void, code: str, what: str) -> Fault:
    position, base_offset = int(marker["position"]), int(marker["base_offset"])
    message = f"batch at byte {position}: {what}"
    return Fault(code, message, position, 0, base_offset, record_index=int(marker["offset"]) - base_offset)
