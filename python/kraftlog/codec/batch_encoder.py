"""Record batches of records that are no Arrow columns, and what all encoders have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from kraftlog._native import encoder as native
from kraftlog._native.scanner import CONTROL_BIT, RECORD_BATCH_OVERHEAD, TRANSACTIONAL_BIT
from kraftlog._native.status import CODES, TEXTS
from kraftlog._native.text_column import LAYOUTS, TextColumn
from kraftlog.codec.compression import COMPRESSION_TYPES, checked_level, compress_batches
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.codec.metadata_markers import read_marker
from kraftlog.codec.options import checked_integer
from kraftlog.errors import InvalidRecordError, RecordTooLargeError
from kraftlog.types import Buffer

MOST_BYTES = 2**31 - 1
MOST_RECORDS = 2**31 - 1
LARGEST_OFFSET = 2**63 - 1
_HEADER_FIELDS = {
    "base_offset": (0, LARGEST_OFFSET),
    "partition_leader_epoch": (-1, 2**31 - 1),
    "producer_id": (-1, 2**63 - 1),
    "producer_epoch": (-1, 2**15 - 1),
    "base_sequence": (-1, 2**31 - 1),
    "timestamp_ms": (NO_TIMESTAMP, 2**63 - 1),
    "max_timestamp_ms": (-(2**63), 2**63 - 1),
}


class BatchEncoder:
    """Packs records into record batches of magic 2, in pieces; ``Encoder`` is one of Arrow's columns.

    Parameters
    ----------
    compression : {"none", "gzip", "snappy", "lz4", "zstd"}
    compression_level : int, optional
        Level for gzip, lz4 or zstd.
    max_batch_bytes : int
        Maximum size of a batch before compression, in bytes, including the header.
    max_batch_records : int, optional
    batch_records : array_like of int, optional
        Number of records of each batch, such as the result of ``plan_batches``.
    base_offset : int
        Offset of the first record; the others follow without gaps.
    partition_leader_epoch, producer_id, producer_epoch, base_sequence : int
        As in the batch header; -1 means none. A producer_id requires producer_epoch and base_sequence. Sequences
        continue from batch to batch and wrap around as in Kafka.
    is_transactional, is_control : bool
        Bits of the batch attributes.
    timestamp_ms : int
        Timestamp of rows without a timestamp column; -1 means none. Can be set later, for the batches that start after
        that. A column may contain any number, as in logs; Kafka's own producer never writes negative ones.
    refuse_markers : bool
        Whether to refuse values that begin, end or abort a metadata transaction.
    """

    def __init__(
        self,
        *,
        compression: str = "none",
        compression_level: int | None = None,
        max_batch_bytes: int = 1 << 20,
        max_batch_records: int | None = None,
        batch_records: npt.ArrayLike | None = None,
        refuse_markers: bool = False,
        base_offset: int = 0,
        partition_leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        timestamp_ms: int = NO_TIMESTAMP,
    ) -> None:
        max_batch_bytes = checked_integer("max_batch_bytes", max_batch_bytes, RECORD_BATCH_OVERHEAD + 1, MOST_BYTES)
        if max_batch_records is not None:
            max_batch_records = checked_integer("max_batch_records", max_batch_records, 1, MOST_RECORDS)
        if batch_records is not None and max_batch_records is not None:
            raise ValueError("max_batch_records is for batches that are not planned; give either it or batch_records")
        header = checked_header(
            base_offset=base_offset,
            partition_leader_epoch=partition_leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            timestamp_ms=timestamp_ms,
        )
        check_producer(header, is_transactional=is_transactional, is_control=is_control)
        plan = None if batch_records is None else _plan(batch_records)
        self._compression = compression_type(compression)
        self._level = checked_level(self._compression, compression_level)
        self._base_offset = header["base_offset"]
        self._rows = 0
        self._markers = 0
        self._complete: list[Buffer] = []  # batches that were taken, and could not be compressed
        self._planned = LARGEST_OFFSET if plan is None else int(plan.sum(dtype=np.int64))
        self._native = native.Encoder(
            **header,
            attributes=self._compression | TRANSACTIONAL_BIT * is_transactional | CONTROL_BIT * is_control,
            max_batch_bytes=max_batch_bytes,
            max_batch_records=max_batch_records or MOST_RECORDS,
            batch_records=plan,
            refuse_markers=refuse_markers,
        )

    @property
    def timestamp_ms(self) -> int:
        """Timestamp of rows without a timestamp column."""
        return self._native.timestamp_ms

    @timestamp_ms.setter
    def timestamp_ms(self, timestamp_ms: int) -> None:
        self._native.timestamp_ms = checked_header(timestamp_ms=timestamp_ms)["timestamp_ms"]

    @property
    def next_offset(self) -> int:
        """Offset of the next record."""
        return self._base_offset + self._rows + self._markers

    def write_records(self, values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None) -> None:
        """Add records without headers; if that fails, with any exception, none of them is added.

        Parameters
        ----------
        values : sequence of bytes or None
        keys : sequence of bytes or None, optional
            One for each value; by default the records have no keys.

        Raises
        ------
        RecordTooLargeError, InvalidRecordError, ValueError
            As ``Encoder.write``.
        """
        source = native.Source(len(values))
        source.set_value(_column(values), 0)
        if keys is not None:
            source.set_key(_column(keys), 0)
        with self._native:
            self._check_room(len(values))
            self._check(self._native.write((source,), 0, len(values)))
            self._rows += len(values)

    def write_marker(self, value: bytes) -> None:
        """Add a transaction marker of the metadata log; error messages do not count it as a row.

        Raises
        ------
        InvalidRecordError
            When it is not a marker.
        """
        if read_marker(value) is None:
            raise InvalidRecordError("a metadata record that does not begin, end or abort a transaction")
        with self._native:
            self._check_room(1)
            self._check(self._native.write_marker(value))
            self._markers += 1

    def _check_room(self, rows: int) -> None:
        if self.next_offset + rows > LARGEST_OFFSET:
            raise ValueError(f"base_offset {self._base_offset} and {self._rows + rows} rows do not fit 64 bits")
        if self._rows + self._markers + rows > self._planned:
            raise ValueError(f"batch_records plans {self._planned} records, but there are more")

    def _check(self, failure: tuple[int, int, int, int, int] | None) -> None:
        if failure is None:
            return
        status, row, expected, actual, together = failure
        row += self._rows
        if CODES[status] == "unexpected_marker":
            raise InvalidRecordError(f"record {row}: {TEXTS['unexpected_marker']}")
        size = f"with it the batch of {together + 1} records that is planned" if together else "a batch of it alone"
        raise RecordTooLargeError(f"record {row}: {size} takes {actual} bytes, max_batch_bytes is {expected}")

    def take(self) -> Buffer:
        """Return the complete batches; the last one remains open for more rows."""
        with self._native:
            return self._taken()

    def _taken(self) -> Buffer:
        """Return complete batches. Batches that cannot be compressed for lack of memory remain for the next call."""
        self._complete = [*self._complete, b""]
        self._complete[-1] = self._native.take()  # from here on nothing fails before it is kept
        plain = self._complete[0] if len(self._complete) == 1 else b"".join(self._complete)
        made = self._made(compress_batches(plain, self._compression, self._level) if self._compression else plain)
        self._complete.clear()
        return made

    def _made(self, batches: Buffer) -> Buffer:
        """Return batches as ``take`` does."""
        return batches

    def finish(self) -> Buffer:
        """Close the last batch and return the remaining batches."""
        with self._native:
            self._native.close_batch()
            return self._taken()


def compression_type(name: str) -> int:
    """Return the number of a compression type.

    Raises
    ------
    ValueError
        When there is no such type.
    """
    if name not in COMPRESSION_TYPES:
        raise ValueError(f"compression {name!r} is not one of {', '.join(COMPRESSION_TYPES)}")
    return COMPRESSION_TYPES.index(name)


def checked_header(**fields: SupportsIndex) -> dict[str, int]:
    """Return fields of a batch header as integers.

    Raises
    ------
    TypeError
        When one is not an integer.
    ValueError
        When one does not fit its header field.
    """
    return {name: checked_integer(name, number, *_HEADER_FIELDS[name]) for name, number in fields.items()}


def check_producer(header: dict[str, int], *, is_transactional: bool, is_control: bool = False) -> None:
    """Raise ValueError unless the producer's state is complete, with the checks of MemoryRecordsBuilder."""
    producer_id = header["producer_id"]
    if producer_id < 0:
        if is_transactional:
            raise ValueError("a transactional batch needs a producer_id")
        return
    if header["producer_epoch"] < 0:
        raise ValueError(f"producer_id is {producer_id}, but producer_epoch is {header['producer_epoch']}")
    if header["base_sequence"] < 0 and not is_control:
        raise ValueError(f"producer_id is {producer_id}, but base_sequence is {header['base_sequence']}")


def _plan(batch_records: npt.ArrayLike) -> npt.NDArray[np.int32]:
    plan = np.asarray(batch_records)
    if plan.ndim != 1 or (plan.size and (plan.dtype.kind not in "iu" or plan.min() < 1 or plan.max() > MOST_RECORDS)):
        raise ValueError(f"batch_records is not a list of numbers between 1 and {MOST_RECORDS}")
    return np.ascontiguousarray(plan, np.int32)


def _column(values: Sequence[bytes | None]) -> TextColumn:
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value or b"") for value in values], out=ends[1:])
    is_there = np.packbits([value is not None for value in values], bitorder="little").data if None in values else None
    return TextColumn(LAYOUTS["ends64"], len(values), 0, is_there, ends.data, (b"".join(filter(None, values)),))
