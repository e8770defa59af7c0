"""The aborted transactions of a fetch response, as byte ranges that a consumer skips."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, HEADER_DTYPE
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import CONTROL_TYPES, Headers, last_offsets
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, READ_UNCOMMITTED
from kraftlog.types import Buffer, IsolationLevel

_ABORT = CONTROL_TYPES.index("ABORT")


def named_transactions(
    isolation_level: IsolationLevel, transactions: Iterable[tuple[int, int]] | None
) -> npt.NDArray[np.int64] | None:
    """Return the aborted transactions of a fetch response as an array; the iterable is read once.

    Parameters
    ----------
    isolation_level : {"read_uncommitted", "read_committed"}
    transactions : iterable of (producer_id, first_offset), optional

    Returns
    -------
    numpy.ndarray or None
        Rows, in order, of producer_id and first_offset; None when there are none.

    Raises
    ------
    ValueError
        When they contradict the isolation level, or are not pairs of 64-bit integers.

    Examples
    --------
    >>> from kraftlog.codec.aborted_transactions import named_transactions
    >>> named_transactions("read_committed", iter([(7, 3), (2, 0), (7, 3)])).tolist()
    [[2, 0], [7, 3]]
    """
    if isolation_level == READ_COMMITTED and transactions is None:
        raise ValueError("read_committed needs aborted_transactions, as the fetch response has them; [] for none")
    named = () if transactions is None else transactions
    pairs = sorted({_pair(i, given) for i, given in enumerate(named)})
    if isolation_level == READ_UNCOMMITTED and pairs:
        raise ValueError("aborted_transactions have no meaning with read_uncommitted")
    return np.array(pairs, np.int64) if pairs else None


def _pair(i: int, given: tuple[int, int]) -> tuple[int, int]:
    try:
        producer_id, first_offset = (operator.index(number) for number in given)
    except (TypeError, ValueError):
        raise ValueError(f"aborted_transactions[{i}] is {given!r}, not (producer_id, first_offset)") from None
    for name, number in (("producer_id", producer_id), ("first_offset", first_offset)):
        if not -NO_BOUND - 1 <= number <= NO_BOUND:
            raise ValueError(f"aborted_transactions[{i}]: {name} {number} does not fit 64 bits")
    return producer_id, first_offset


def aborted_ranges(buffer: Buffer, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """Return the byte ranges of aborted batches, with the rules of Kafka's consumer.

    A producer counts as aborted from the first batch of any producer whose last offset is not before the first offset
    of one of its aborted transactions, and up to its next ABORT marker.

    Parameters
    ----------
    buffer : buffer
        The batches of one partition in a fetch response.
    pairs : numpy.ndarray
        The result of ``named_transactions``.

    Returns
    -------
    numpy.ndarray or None
        Rows, in order, of producer_id and the byte range of ``buffer`` in which batches of the producer are aborted.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, kraftlog
    >>> from kraftlog.codec.aborted_transactions import aborted_ranges
    >>> rows = pa.table({"value": [b"a"]})
    >>> producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    >>> data = kraftlog.encode(rows, **producer, is_transactional=True)
    >>> marker = kraftlog.encode_marker("ABORT", producer_id=7, producer_epoch=0, base_offset=1)
    >>> aborted_ranges(data.to_pybytes() + marker.to_pybytes(), np.array([(7, 0)])).tolist() == [[7, 0, len(data)]]
    True
    """
    headers = _with_producers(buffer)
    if not len(headers):
        return None
    reached = np.searchsorted(np.maximum.accumulate(_known_last_offsets(buffer, headers)), pairs[:, 1])
    is_reached = reached < len(headers)
    producers, first = pairs[is_reached, 0], reached[is_reached]
    ranges = np.stack([producers, headers["position"][first], _next_markers(headers, producers, first)], axis=1)
    return np.asarray(ranges[np.lexsort((ranges[:, 1], ranges[:, 0]))])


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
