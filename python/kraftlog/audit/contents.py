"""``Contents``: offsets and hashes of the records of a partition, for the comparison of two clusters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.options import ReadOptions
from kraftlog.codec.value_hashes import crc32c, murmur2
from kraftlog.errors import Fault
from kraftlog.read.partitions import Partition
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.read import Read
from kraftlog.transactions.transaction import COMMITTED

Hashes = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]

_COLUMNS = ["offset", "key", "value", "headers", "transaction_state"]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_HALF = np.uint64(32)


@dataclass(frozen=True)
class Contents:
    """The records of a partition, in the order of their offsets: 25 bytes each.

    Attributes
    ----------
    offsets : int64 array
    hashes : uint64 array
        Of key, value and headers: timestamps and offsets of a copy may differ.
    keys : uint64 array
        Hashes of the keys.
    is_committed : bool array
        Whether a read_committed consumer gets the record.
    """

    offsets: Offsets
    hashes: Hashes
    keys: Hashes
    is_committed: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, partition: Partition, faults: list[Fault]) -> Contents:
        """Read a partition.

        Parameters
        ----------
        partition : Partition
        faults : list of Fault
            Receives what cannot be read.
        """
        read = Read.of_segments(TABLES["records"], partition.segments, _COLUMNS, ReadOptions(), faults)
        pieces = [cls._of_rows(batch) for batch in read.rows() if batch.num_rows]
        pieces.append(cls(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, bool)))
        return cls(
            np.concatenate([one.offsets for one in pieces]),
            np.concatenate([one.hashes for one in pieces]),
            np.concatenate([one.keys for one in pieces]),
            np.concatenate([one.is_committed for one in pieces]),
        )

    @classmethod
    def _of_rows(cls, rows: pa.RecordBatch) -> Contents:
        keys = _hashes(rows.column("key"))
        hashes = _mixed(_mixed(keys) + _hashes(rows.column("value")))
        hashes = _mixed(hashes + _header_hashes(rows.column("headers")))
        states = rows.column("transaction_state")
        is_committed = pc.fill_null(pc.equal(states, COMMITTED), True)  # null: outside of a transaction
        return cls(rows.column("offset").to_numpy(), hashes, keys, np.asarray(is_committed, bool))

    def __len__(self) -> int:
        return len(self.offsets)

    def only(self, is_wanted: npt.NDArray[np.bool_]) -> Contents:
        """Return some of the records."""
        return Contents(
            self.offsets[is_wanted], self.hashes[is_wanted], self.keys[is_wanted], self.is_committed[is_wanted]
        )

    @cached_property
    def committed(self) -> Contents:
        """The records that a read_committed consumer gets."""
        return self.only(self.is_committed)

    @cached_property
    def unique(self) -> Contents:
        """The committed records whose content no other record has, in order of their hashes."""
        hashes, first, counts = np.unique(self.hashes, return_index=True, return_counts=True)
        at = first[counts == 1]
        once = Contents(self.offsets[at], hashes[counts == 1], self.keys[at], self.is_committed[at])
        return once.only(once.is_committed)


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
