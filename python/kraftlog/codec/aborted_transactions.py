"""The aborted transactions that a fetch response names, as stretches of its bytes that a consumer passes over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, HEADER_DTYPE
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import CONTROL_TYPES, Headers, last_offsets
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, READ_UNCOMMITTED
from kraftlog.types import Buffer, IsolationLevel

_ABORT = CONTROL_TYPES.index("ABORT")


def aborted_ranges(buffer: Buffer, transactions: Sequence[tuple[int, int]]) -> npt.NDArray[np.int64] | None:
    """Return where batches of aborted transactions stand, as Kafka's consumer finds them.

    A producer counts as aborted from the first batch of any producer whose last offset is not before the first offset
    of one of its aborted transactions, and up to its next ABORT marker.

    Parameters
    ----------
    buffer : buffer
        The batches of one partition in a fetch response.
    transactions : sequence of (producer_id, first_offset)

    Returns
    -------
    numpy.ndarray or None
        Rows, in order, of producer_id and the bytes of ``buffer`` from which on and up to which batches of the producer
        are aborted.

    Examples
    --------
    >>> import pyarrow as pa, kraftlog
    >>> from kraftlog.codec.aborted_transactions import aborted_ranges
    >>> rows = pa.table({"value": [b"a"]})
    >>> data = kraftlog.encode(rows, producer_id=7, producer_epoch=0, is_transactional=True)
    >>> marker = kraftlog.encode_marker("ABORT", producer_id=7, producer_epoch=0, base_offset=1)
    >>> aborted_ranges(data.to_pybytes() + marker.to_pybytes(), [(7, 0)]).tolist() == [[7, 0, len(data)]]
    True
    """
    pairs = np.array(sorted({(int(producer_id), int(first)) for producer_id, first in transactions}), np.int64)
    if not len(pairs):
        return None
    headers = _with_producers(buffer)
    if not len(headers):
        return None
    reached = np.searchsorted(np.maximum.accumulate(_known_last_offsets(buffer, headers)), pairs[:, 1])
    is_reached = reached < len(headers)
    producers, first = pairs[is_reached, 0], reached[is_reached]
    ranges = np.stack([producers, headers["position"][first], _next_markers(headers, producers, first)], axis=1)
    return np.asarray(ranges[np.lexsort((ranges[:, 1], ranges[:, 0]))])


def check_level(isolation_level: IsolationLevel, transactions: Sequence[tuple[int, int]] | None) -> None:
    """Raise ValueError when the transactions that a fetch response names do not go with the isolation level."""
    if isolation_level == READ_COMMITTED and transactions is None:
        raise ValueError("read_committed needs aborted_transactions, as the fetch response has them; [] for none")
    if isolation_level == READ_UNCOMMITTED and transactions:
        raise ValueError("aborted_transactions have no meaning with read_uncommitted")


def _with_producers(buffer: Buffer) -> Headers:
    found = [part[part["producer_id"] >= 0] for part in HeaderScan(buffer, check_control=True).headers()]
    return np.concatenate(found) if found else np.empty(0, HEADER_DTYPE)


def _known_last_offsets(buffer: Buffer, headers: Headers) -> npt.NDArray[np.int64]:
    """Return last offsets; where one reaches into the next batch, only if the checksum of its batch matches."""
    last = last_offsets(headers)
    for at in np.flatnonzero(last[:-1] >= headers["base_offset"][1:]):
        position = int(headers["position"][at])
        checked = next(HeaderScan(buffer, position, position + 1, check_crc=True).headers())
        if not checked["crc_ok"][0]:
            last[at] = -1
    return last


def _next_markers(
    headers: Headers, producers: npt.NDArray[np.int64], first: npt.NDArray[np.intp]
) -> npt.NDArray[np.int64]:
    """Return the byte of the first ABORT marker of each producer, from a header on; ``NO_BOUND`` without one."""
    is_abort = (headers["attributes"] & CONTROL_BIT != 0) & (headers["control_type"] == _ABORT)
    markers = np.flatnonzero(is_abort & (headers["crc_ok"] != 0) & np.isin(headers["producer_id"], producers))
    known, numbers = np.unique(producers, return_inverse=True)
    count = len(headers)
    places = np.sort(np.searchsorted(known, headers["producer_id"][markers]) * count + markers)
    at = np.searchsorted(places, numbers * count + first)
    following = np.append(places, NO_BOUND)[at]
    is_own = following // count == numbers
    return np.where(is_own, headers["position"][following % count], NO_BOUND)
