"""Transactions of a partition from the small files beside its segments, as a broker finds them for a consumer.

Each ``.txnindex`` names the aborted transactions whose markers are in its segment, and the ``.snapshot`` of the last
segment the transactions that were open where it begins. Only the headers of the last segment are read, for what has
ended or begun there. No other log file is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kraftlog.codec.header_scan import HeaderScan, in_chain
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.disk.remote_files import READS_AT_ONCE
from kraftlog.disk.remote_path import RemotePath
from kraftlog.errors import Fault
from kraftlog.layout.discover import Segment
from kraftlog.layout.index_files import read_index
from kraftlog.read.partitions import opened_before_segment
from kraftlog.read.ranges import relevant
from kraftlog.read.remote_windows import windows
from kraftlog.transactions.offset_view import FOREVER, OFFSET_DTYPE, OffsetView
from kraftlog.transactions.producer import ABORTED, OPEN, TransactionFold, Transactions

_VERSION = 0  # of the entries of a .txnindex


@dataclass(frozen=True)
class KnownTransactions:
    """What the files of a partition say.

    Attributes
    ----------
    view : OffsetView
    first_open : tuple of int or None
        Producer id and first offset of the transaction that holds read_committed readers back.
    """

    view: OffsetView
    first_open: tuple[int, int] | None


def known_transactions(group: Sequence[Segment], options: ReadOptions) -> KnownTransactions | None:
    """Return the transactions of a remote partition, as far as the options need them.

    Parameters
    ----------
    group : sequence of Segment
        Live segments of one partition, in order; some can hold what is asked for.
    options : ReadOptions

    Returns
    -------
    KnownTransactions or None
        None when one of these files is missing, or it or the last segment is damaged: then only the headers of all
        segments tell.
    """
    behind = group[group.index(next(relevant(list(group), options))) :]
    if not all(_has_files(segment) for segment in behind):
        return None
    *closed, last = behind
    faults: list[Fault] = []
    opened = opened_before_segment(last, faults)
    if opened is None or faults:
        return None
    try:
        with ThreadPoolExecutor(READS_AT_ONCE) as pool:
            indexed = list(pool.map(_indexed, closed))
        ended, still_open = _fold(last, opened, options)
    except (OSError, ValueError):
        return None
    aborted = _rows(ended[ended["state"] == ABORTED])
    rows = np.concatenate([*indexed, aborted, _rows(still_open)])
    first = (int(still_open["producer_id"][0]), int(still_open["first_offset"][0])) if len(still_open) else None
    stable = first[1] if first is not None and options.isolation_level == READ_COMMITTED else NO_BOUND
    return KnownTransactions(OffsetView(np.sort(rows, order=["producer_id", "first_offset"]), stable), first)


def _has_files(segment: Segment) -> bool:
    """Whether the files beside a segment were copied along; of offset 0 there is no snapshot."""
    return "index" in segment.beside and ("snapshot" in segment.beside or segment.base_offset == 0)


def _indexed(segment: Segment) -> npt.NDArray[np.void]:
    """Return the aborted transactions that a ``.txnindex`` names; it is only there when there are some."""
    path = segment.beside.get("txnindex")
    if path is None:
        return np.empty(0, OFFSET_DTYPE)
    faults: list[Fault] = []
    entries = read_index(path, "txnindex", segment.base_offset or 0, faults)
    if faults or (entries["version"] != _VERSION).any():
        raise ValueError(f"{path} is damaged")
    rows = np.empty(len(entries["offset"]), OFFSET_DTYPE)
    rows["producer_id"], rows["first_offset"] = entries["producer_id"], entries["offset"]
    rows["marker_offset"], rows["state"] = entries["last_offset"], ABORTED
    return rows


def _fold(last: Segment, opened: Transactions, options: ReadOptions) -> tuple[Transactions, Transactions]:
    """Return the transactions that ended in the last segment, and those that are open at its end."""
    fold = TransactionFold(opened)
    ended = [opened[:0]]
    begins_behind = (last.base_offset or 0) >= options.end_offset
    concerns = not begins_behind or (opened["first_offset"] < options.end_offset).any()
    base_offset_before = last.base_offset
    if concerns and isinstance(last.path, RemotePath):
        for buffer, start, end in windows(last.path, 0, NO_BOUND):
            scan = HeaderScan(buffer, start, end, check_crc=True)
            for headers in scan.headers():
                # a crc does not cover the base offset, and what lies behind a marker is told by offsets alone
                if not in_chain(headers, base_offset_before).all():
                    raise ValueError(f"{last.path}: offsets do not ascend")
                base_offset_before = int(headers["base_offset"][-1])
                ended.append(fold.add(headers))
            if scan.faults:
                raise ValueError(f"{last.path}: {scan.faults[0].message}")
    return np.concatenate(ended), fold.open


def _rows(transactions: Transactions) -> npt.NDArray[np.void]:
    rows = np.empty(len(transactions), OFFSET_DTYPE)
    for name in OFFSET_DTYPE.names or ():
        rows[name] = transactions[name]
    rows["marker_offset"][rows["state"] == OPEN] = FOREVER
    return rows[transactions["first_offset"] >= 0]  # a marker without data hides nothing
