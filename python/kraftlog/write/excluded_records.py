"""Batches without the records whose keys are excluded; offsets, producers and sequences stay, as after compaction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native.compression import Decompressor
from kraftlog._native.scanner import DELETE_HORIZON_BIT
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.filtered_batch import empty_batch, filtered_batch
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.schema import RECORDS

NOT_EXTRACTED = "not_extracted"

IsExcluded = Callable[[pa.Array], pa.BooleanArray]
"""Returns of a column of keys which are excluded."""


def excluded_records(batch: bytes, is_excluded: IsExcluded, max_decompressed_bytes: int) -> npt.NDArray[np.bool_]:
    """Return which records of a batch have an excluded key; fewer than all records if some cannot be read."""
    options = ReadOptions(max_decompressed_bytes=max_decompressed_bytes)
    decoder = RecordDecoder(batch, 0, NO_BOUND, DecodePlan(RECORDS.select(["key"]), options))
    found = [is_excluded(rows.column("key")).to_numpy(zero_copy_only=False) for rows in decoder.batches([])]
    return np.concatenate(found).astype(bool) if found else np.empty(0, bool)


def batch_of_records(
    batch: bytes,
    header: np.void,
    keeps: npt.NDArray[np.bool_],
    decompressor: Decompressor,
    compression: int | None = None,
) -> bytes:
    """Return a batch with some of its records.

    Parameters
    ----------
    batch : bytes
    header : numpy.void
    keeps : numpy.ndarray
        Whether to keep each record; without any, the batch stays as an empty one.
    decompressor : Decompressor
    compression : int, optional
        Index into ``COMPRESSION_TYPES``, of the returned batch; by default unchanged.
    """
    if not keeps.any():
        return empty_batch(batch)
    horizon = int(header["base_timestamp"]) if header["attributes"] & DELETE_HORIZON_BIT else None
    return filtered_batch(batch, keeps, horizon, decompressor, compression)
