"""The outcome of the transactions of records: that of the next marker of their producer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.last_by_key import numbers
from kraftlog.transactions.producer import ABORTED, COMMITTED, OPEN

_CONTROL_TYPES = {"ABORT": ABORTED, "COMMIT": COMMITTED}


def ends_of(
    offsets: npt.NDArray[np.int64], producer_ids: npt.NDArray[np.int64], markers: Sequence[pa.RecordBatch]
) -> npt.NDArray[np.int8]:
    """Return ``COMMITTED``, ``ABORTED`` or ``OPEN`` for each record.

    Parameters
    ----------
    offsets, producer_ids : numpy.ndarray
        Of the records, in any order.
    markers : sequence of pyarrow.RecordBatch
        Columns ``offset``, ``producer_id`` and ``control_type``; other control records are ignored.
    """
    ends = np.full(len(offsets), OPEN, np.int8)
    marker_offsets, marker_producers, results = _by_offset(markers)
    if not len(results):
        return ends
    # a number for each marker that sorts by producer and then by place
    known, producer_of_marker = np.unique(marker_producers, return_inverse=True)
    width = len(results) + 1
    places = producer_of_marker * width + np.arange(len(results))
    by_place = np.argsort(places)
    producer = np.searchsorted(known, producer_ids).clip(max=len(known) - 1)
    earliest = producer * width + np.searchsorted(marker_offsets, offsets, side="right")
    at = np.searchsorted(places[by_place], earliest)
    marker = by_place[at.clip(max=len(places) - 1)]
    has_ended = (at < len(places)) & (known[producer] == producer_ids) & (producer_of_marker[marker] == producer)
    ends[has_ended] = results[marker[has_ended]]
    return ends


def _by_offset(
    markers: Sequence[pa.RecordBatch],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int8]]:
    if not markers:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8)
    table = pa.Table.from_batches(markers)
    results = np.full(table.num_rows, OPEN, np.int8)
    for name, end in _CONTROL_TYPES.items():
        results[pc.equal(table.column("control_type"), name).to_numpy()] = end
    offsets, producer_ids = numbers(table, "offset"), numbers(table, "producer_id")
    is_end = np.flatnonzero(results != OPEN)
    order = is_end[np.argsort(offsets[is_end], kind="stable")]
    return offsets[order], producer_ids[order], results[order]
