"""The tables partition_transactions and metadata_transactions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, zip_longest

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec import header_columns
from kraftlog.codec.headers import Headers
from kraftlog.codec.metadata_markers import read_marker
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.codec.transaction_view import TRANSACTION_STATES
from kraftlog.errors import Fault, InvalidRecordError, error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Progress
from kraftlog.read.metadata_scan import MetadataScan
from kraftlog.read.partitions import by_partition, is_metadata, opened_before_segment
from kraftlog.read.segment_reader import located, segment_headers
from kraftlog.read.segment_transactions import read_opened
from kraftlog.stream import rows_of
from kraftlog.tables.read import Read
from kraftlog.transactions.metadata_columns import MetadataTransactions
from kraftlog.transactions.metadata_fold import Found
from kraftlog.transactions.producer import NONE, TransactionFold, Transactions

_WITHOUT_DATA = ("producer_epoch", "first_offset", "last_offset")
_OF_MARKER = ("marker_offset", "marker_epoch", "coordinator_epoch")


def partition_transaction_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table partition_transactions: for each partition the ended ones, by marker, then open ones."""
    for group in by_partition(read.segments):
        if is_metadata(group[0]):
            continue
        found: list[Fault] = []
        for transactions in _folded(group, found, read.on_progress):
            chosen = transactions_within(group[0], transactions, read.options)
            if len(chosen):
                yield _columns(group[0], chosen, read.schema)
            _pass_on(found, read.faults, strict=read.options.strict)


def _folded(group: list[Segment], faults: list[Fault], on_progress: Progress | None) -> Iterator[Transactions]:
    """Read the headers of a partition, with each crc verified; faults are added to ``faults``.

    Returns
    -------
    iterator of numpy.ndarray
        For each segment the transactions that ended in it; at the end the open ones. Transactions that may have ended
        in an unreadable segment are open.
    """
    fold = PartitionTransactions(group[0], faults)
    for segment, following in zip_longest(group, group[1:]):
        known = len(faults)
        ended = [fold.open[:0], *(fold.add(headers) for headers in segment_headers(segment, faults, check_crc=True))]
        if any(fault.error == "unreadable_file" for fault in faults[known:]):
            yield fold.lose(following, faults)
        yield np.concatenate(ended)
        if on_progress:
            on_progress(segment.size)
    yield fold.open


class PartitionTransactions:
    """Transactions of one partition, from its headers in order.

    Parameters
    ----------
    first : Segment
        The first segment; its snapshot has the transactions that are open before it.
    faults : list of Fault
        Receives an unreadable snapshot.
    """

    def __init__(self, first: Segment, faults: list[Fault]) -> None:
        opened = opened_before_segment(first, faults)
        self._fold = TransactionFold() if opened is None else TransactionFold(opened)

    @property
    def open(self) -> Transactions:
        """The open transactions, by first offset."""
        return self._fold.open

    def add(self, headers: Headers) -> Transactions:
        """Add the next headers, with verified crc; returns the transactions that ended in them."""
        return self._fold.add(headers)

    def lose(self, following: Segment | None, faults: list[Fault]) -> Transactions:
        """Continue after a segment that could not be read completely.

        Returns the transactions that may have ended in it: all open ones, except those that are open in the snapshot of
        the following segment.
        """
        still_open = (read_opened(following, faults) if following is not None else None) or {}
        producers = self.open["producer_id"].tolist()
        is_kept = np.array([still_open.get(one) is not None for one in producers]).astype(bool)
        lost: Transactions = self.open[~is_kept]
        self._fold = TransactionFold(self.open[is_kept])
        return lost


def _pass_on(found: list[Fault], faults: list[Fault], *, strict: bool) -> None:
    if found and strict:
        raise error_from_fault(found[0])
    faults += found
    found.clear()


def transactions_within(segment: Segment, transactions: Transactions, options: ReadOptions) -> Transactions:
    """Return the transactions that overlap the bounds of offset and timestamp, and end after the log start offset."""
    options = options.from_log_start(segment.log_start_offset)
    has_data, has_ended = transactions["first_offset"] != NONE, transactions["marker_offset"] != NONE
    first = np.where(has_data, transactions["first_offset"], transactions["marker_offset"])
    last = np.where(has_ended, transactions["marker_offset"], NO_BOUND)
    begin = np.where(has_data, transactions["start_timestamp"], transactions["end_timestamp"])
    end = np.where(has_ended, transactions["end_timestamp"], NO_BOUND)
    keep = (first < options.end_offset) & (last >= options.start_offset)
    keep &= (begin < options.end_timestamp) & (end >= options.start_timestamp)
    chosen: Transactions = transactions[keep]
    return chosen


def _columns(segment: Segment, transactions: Transactions, arrow_schema: pa.Schema) -> pa.RecordBatch:
    count = len(transactions)
    columns = []
    for field in arrow_schema:
        if field.name in ("topic", "partition"):
            columns.append(header_columns.repeated(getattr(segment, field.name), field.type, count))
        elif field.name == "state":
            columns.append(header_columns.named(transactions["state"], TRANSACTION_STATES))
        elif field.type == schema.TIMESTAMP:
            columns.append(header_columns.timestamps(transactions[field.name]))
        else:
            values = np.ascontiguousarray(transactions[field.name.removesuffix("_ms")])
            nullable = field.name in _WITHOUT_DATA + _OF_MARKER or field.name.endswith("_ms")
            columns.append(pa.array(values, field.type, mask=values == NONE if nullable else None))
    return rows_of(columns, arrow_schema, count)


def metadata_transaction_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table metadata_transactions."""
    options, faults = read.options, read.faults
    for group in by_partition(read.segments):
        if not is_metadata(group[0]):
            continue
        unread: list[Fault] = []
        scan = MetadataScan(
            group,
            faults,
            unread=unread,
            strict=options.strict,
            bounds=(options.start_offset, options.end_offset),
            on_progress=read.on_progress,
        )
        for found in scan.found():
            _pass_on(unread, faults, strict=options.strict)
            found = _metadata_within(found, options)
            if len(found.transactions):
                bad_markers: list[Fault] = []
                yield metadata_transaction_columns(found, read.schema, bad_markers)
                faults += [located(group[0], fault) for fault in bad_markers]
        _pass_on(unread, faults, strict=options.strict)


def _metadata_within(found: Found, options: ReadOptions) -> Found:
    """Return the transactions that overlap the bounds of offset."""
    first, last = found.transactions["first_offset"], found.transactions["last_offset"]
    keep = (first < options.end_offset) & (last >= options.start_offset)
    begin_values, end_values = (list(compress(values, keep)) for values in (found.begin_values, found.end_values))
    return Found(found.transactions[keep], begin_values, end_values)


def metadata_transaction_columns(found: Found, arrow_schema: pa.Schema, faults: list[Fault]) -> pa.RecordBatch:
    """Return transactions as rows of the table metadata_transactions; faults receives markers without readable text.

    Parameters
    ----------
    found : Found
    arrow_schema : pyarrow.Schema
        Columns of the table.
    faults : list of Fault
    """
    names = pa.array([_text(value, faults) for value in found.begin_values], pa.string())
    reasons = pa.array([_text(value, faults) for value in found.end_values], pa.string())
    return columns_of_transactions(found.transactions, names, reasons, arrow_schema)


def columns_of_transactions(
    transactions: MetadataTransactions, names: pa.Array, reasons: pa.Array, arrow_schema: pa.Schema
) -> pa.RecordBatch:
    """Return transactions as rows of the table metadata_transactions, given the texts of their markers."""
    columns = []
    for field in arrow_schema:
        if field.name == "state":
            columns.append(header_columns.named(transactions["state"], TRANSACTION_STATES))
        elif field.name in ("name", "reason"):
            columns.append(names if field.name == "name" else reasons)
        else:
            values = np.ascontiguousarray(transactions[field.name])
            columns.append(pa.array(values, field.type, mask=values == NONE))
    return rows_of(columns, arrow_schema, len(transactions))


def _text(value: bytes | None, faults: list[Fault]) -> str | None:
    """Return the name of a Begin, or the reason of an Abort."""
    try:
        marker = None if value is None else read_marker(value)
        return marker.text if marker else None
    except InvalidRecordError as error:
        faults.append(Fault("bad_marker", str(error)))
        return None
