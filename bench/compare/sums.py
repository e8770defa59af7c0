"""What everyone who reads the same records must find: sums that no record can be missing from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Sums = tuple[int, ...]  # records, bytes of keys, bytes of values, headers, sum of offsets, sum of timestamps


def _copied(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return views as plain values, of which Arrow knows the length."""
    return column.cast(pa.binary()) if pa.types.is_binary_view(column.type) else column


def of_table(table: pa.Table | pa.RecordBatch) -> Sums:
    """Return the sums of columns key, value, offset, timestamp and perhaps headers."""
    headers = pc.sum(pc.list_value_length(table["headers"])) if "headers" in table.schema.names else pa.scalar(0)
    milliseconds = table["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    summed = (
        pc.sum(pc.binary_length(_copied(table["key"]))),
        pc.sum(pc.binary_length(_copied(table["value"]))),
        headers,
        pc.sum(table["offset"]),
        pc.sum(milliseconds),
    )
    return (table.num_rows, *(value.as_py() or 0 for value in summed))


def of_batches(batches: Iterable[pa.RecordBatch]) -> Sums:
    """Return the sums of all of them, which wrap as everybody's do."""
    return tuple(np.sum([of_table(batch) for batch in batches], axis=0, dtype=np.int64).tolist())


def of_written(headers: npt.NDArray[np.void]) -> Sums:
    """Return records, bytes and sum of checksums of batches with these headers."""
    last = headers[-1]
    size = int(last["position"]) + int(last["batch_length"]) + 12
    return int(headers["records_count"].sum()), size, int(headers["crc"].astype(np.int64).sum())
