"""Offsets and hashes of the records of a partition, for the comparison of two clusters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.options import ReadOptions
from kraftlog.codec.value_hashes import crc32c, murmur2
from kraftlog.disk.spilled_rows import Rows
from kraftlog.errors import Fault
from kraftlog.read.partitions import Partition
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.read import Read
from kraftlog.transactions.transaction import COMMITTED

Hashes = npt.NDArray[np.uint64]

_COLUMNS = ["offset", "key", "value", "headers", "transaction_state"]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_HALF = np.uint64(32)


CONTENT = np.dtype([("hash", "u8"), ("key", "u8"), ("offset", "i8"), ("is_committed", "?")])
"""The content of a record.

``hash`` is of key, value and headers: timestamps and offsets of a copy may differ; ``key`` is a hash of the key.
``is_committed`` says whether a read_committed consumer gets the record.
"""


def contents_of(partition: Partition, faults: list[Fault]) -> Iterator[Rows]:
    """Return the contents of the records of a partition, piece by piece, in the order of their offsets.

    Different hashes prove that contents differ. That equal ones are of equal contents is only likely: two contents have
    the same 64 bits by chance once in 2^64 comparisons.

    Parameters
    ----------
    partition : Partition
    faults : list of Fault
        Receives what cannot be read.
    """
    read = Read.of_segments(TABLES["records"], partition.segments, _COLUMNS, ReadOptions(), faults)
    return (_contents(batch) for batch in read.rows() if batch.num_rows)


def _contents(records: pa.RecordBatch) -> Rows:
    rows = np.empty(records.num_rows, CONTENT)
    keys = _hashes(records.column("key"))
    hashes = _mixed(_mixed(keys) + _hashes(records.column("value")))
    rows["hash"] = _mixed(hashes + _header_hashes(records.column("headers")))
    rows["key"] = keys
    rows["offset"] = records.column("offset").to_numpy()
    states = records.column("transaction_state")
    rows["is_committed"] = pc.fill_null(pc.equal(states, COMMITTED), True)  # null: outside of a transaction
    return rows


def _mixed(hashes: Hashes) -> Hashes:
    """Return hashes in which each bit depends on many, so that sums of them tell their order."""
    mixed = (hashes ^ (hashes >> _SHIFT)) * _ODD
    return np.asarray((mixed ^ (mixed >> _HALF)) * _ODD, np.uint64)


def _hashes(values: pa.Array) -> Hashes:
    """Return 64 bits for each value of a column of bytes or text."""
    if not len(values):
        return np.empty(0, np.uint64)
    high, low = (
        np.asarray(one(values).fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64).astype(np.uint64)
        for one in (murmur2, crc32c)
    )
    return _mixed((high << _HALF) ^ low)  # an empty value has other numbers than null


def _header_hashes(headers: pa.ListArray) -> Hashes:
    """Return 64 bits for the headers of each record: keys, values and their order."""
    counts = np.diff(headers.offsets.to_numpy())
    flat = headers.flatten()
    number = np.arange(len(flat)) - np.repeat(np.cumsum(counts) - counts, counts)
    each = _mixed(_mixed(_hashes(flat.field("key"))) + _hashes(flat.field("value")))
    sums = np.concatenate(([np.uint64(0)], np.cumsum(_mixed(each + number.astype(np.uint64) * _ODD), dtype=np.uint64)))
    ends = np.cumsum(counts)
    return np.asarray(sums[ends] - sums[ends - counts] + counts.astype(np.uint64), np.uint64)
