"""Rows to bytes: Arrow columns packed into record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import encoder as native
from kraftlog.codec.batch_encoder import BatchEncoder
from kraftlog.codec.compressed_pieces import PIECE_BYTES, Joined
from kraftlog.codec.compression import compress_batches
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.codec.source import Rows, check_rows, lent_bytes, record_batches, sources
from kraftlog.types import Buffer


class EncodedLists(NamedTuple):
    """The batches of several lists of records, and the byte at which those of each list end."""

    batches: pa.Buffer
    ends: npt.NDArray[np.int64]


class Encoder(BatchEncoder):
    """Packs rows into record batches of magic 2, in pieces; for a table in memory use ``encode``.

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

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows; if that fails, with any exception, none of them is added.

        Parameters
        ----------
        rows : pyarrow.RecordBatch or pyarrow.Table
            Columns key, value (binary, string, or a dictionary or view of these), timestamp (timestamp of any unit) or
            timestamp_ms (integers), headers (list of struct of key and value, or map). A missing column means null, no
            timestamp, no headers. Other columns of the table ``records``, such as offset, are not encoded.

        Raises
        ------
        RecordTooLargeError
            When a single record, or a batch with the planned number of records, exceeds ``max_batch_bytes``.
        InvalidRecordError
            When a value is a marker, and ``refuse_markers`` is set.
        ValueError
            When there is no column to encode, a column is unknown or has a wrong type, offsets would exceed 64 bits, or
            there are more rows than planned.
        TypeError
            When the rows are neither a table nor a record batch.
        RuntimeError
            When another thread is using the encoder.
        """
        check_rows(rows)
        with self._native:
            self._check_room(rows.num_rows)
            self._check(self._native.write(sources(rows, first_row=self._rows), _data_bytes(rows), rows.num_rows))
            self._rows += rows.num_rows

    def write_pieces(self, rows: pa.RecordBatch | pa.Table, most_bytes: int) -> Iterator[int]:
        """Add rows in pieces of about this size; yields the bytes of each. Pieces before a failure are kept."""
        for source in sources(rows, first_row=self._rows, most_bytes=most_bytes):
            with self._native:
                self._check_room(source.rows)
                self._check(self._native.write((source,), 0, source.rows))
                self._rows += source.rows
            yield source.data_bytes

    def encode_lists(
        self, rows: pa.RecordBatch, ends: npt.NDArray[np.int64], markers: tuple[pa.Array, pa.Array] | None = None
    ) -> EncodedLists | None:
        """Encode lists of rows, each as a new encoder with the same options does; for a new encoder, and only once.

        Parameters
        ----------
        rows : pyarrow.RecordBatch
            Columns as in ``write``.
        ends : numpy.ndarray of int64
            End of each list: the number of rows up to it.
        markers : tuple of pyarrow.BinaryArray, optional
            Transaction markers of the metadata log before and after the rows of each list.

        Returns
        -------
        EncodedLists or None
            None if a record cannot be encoded.
        """
        with self._native:
            self._check_room(int(np.diff(ends, prepend=0).max(initial=0)))
            begin, end = (None, None) if markers is None else map(_marker_source, markers)
            found = self._native.write_lists(sources(rows), ends, rows.num_rows, begin, end)
            if found is None:
                return None
            sizes = np.frombuffer(found, np.int64)
            plain = self._native.take()
            if not self._compression:
                return EncodedLists(pa.py_buffer(plain), sizes)
            sizes = sizes.copy()
            return EncodedLists(pa.py_buffer(compress_batches(plain, self._compression, self._level, sizes)), sizes)

    def take(self) -> pa.Buffer:
        """Return the complete batches; the last one remains open for more rows."""
        return super().take()

    def finish(self) -> pa.Buffer:
        """Close the last batch and return the remaining batches."""
        return super().finish()

    def _made(self, batches: Buffer) -> pa.Buffer:
        return pa.py_buffer(batches)


def _marker_source(markers: pa.Array) -> native.Source | None:
    return next(sources(pa.RecordBatch.from_arrays([markers], ["value"])), None)


def _data_bytes(rows: pa.RecordBatch | pa.Table) -> int:
    """Return the approximate size of a table with many chunks; for a single chunk its columns give it."""
    if isinstance(rows, pa.RecordBatch) or not rows.num_columns or rows.column(0).num_chunks < 2:
        return 0
    return lent_bytes(rows)


def encode(
    rows: Rows,
    *,
    compression: str = "none",
    compression_level: int | None = None,
    max_batch_bytes: int = 1 << 20,
    max_batch_records: int | None = None,
    batch_records: npt.ArrayLike | None = None,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    timestamp_ms: int = NO_TIMESTAMP,
) -> pa.Buffer:
    """Encode rows as record batches, in order, in as few batches as the limits allow.

    Without compression the bytes are those of Kafka's own builder. Format: ``native/c/batch/batch.h``.

    Parameters
    ----------
    rows : pyarrow.Table, pyarrow.RecordBatch, iterable of these, or anything that is an Arrow stream
        Columns as in ``Encoder.write``: any of key, value, timestamp or timestamp_ms, and headers.
    compression : {"none", "gzip", "snappy", "lz4", "zstd"}
    compression_level : int, optional
        Level for gzip, lz4 or zstd.
    max_batch_bytes : int
        Maximum size of a batch before compression, in bytes, including the header.
    max_batch_records : int, optional
        Maximum number of records of a batch.
    batch_records : array_like of int, optional
        Number of records of each batch, such as the result of ``plan_batches``. The size limit still applies.
    base_offset : int
        Offset of the first record; the others follow without gaps.
    partition_leader_epoch, producer_id, producer_epoch, base_sequence : int
        As in the batch header; -1 means none. A producer_id requires producer_epoch and base_sequence. Sequences
        continue from batch to batch and wrap around as in Kafka.
    is_transactional, is_control : bool
        Bits of the batch attributes.
    timestamp_ms : int
        Timestamp of all records, if there is no timestamp column.

    Returns
    -------
    pyarrow.Buffer
        Consecutive batches; owns its memory. Empty without rows.

    Raises
    ------
    RecordTooLargeError
        When a single record, or a batch with the planned number of records, exceeds ``max_batch_bytes``; the message
        has the record's index, the size and the limit.
    ValueError
        When an option or a column is invalid.
    TypeError
        When the rows are not Arrow data.

    Examples
    --------
    >>> import pyarrow as pa, kraftlog
    >>> data = kraftlog.encode(pa.table({"key": [b"k"], "value": [b"v"], "timestamp_ms": [1700000000000]}))
    >>> data.size
    70
    """
    encoder = Encoder(
        compression=compression,
        compression_level=compression_level,
        max_batch_bytes=max_batch_bytes,
        max_batch_records=max_batch_records,
        batch_records=batch_records,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        timestamp_ms=timestamp_ms,
    )
    if compression != "none":
        return _encode_pieces(encoder, record_batches(rows))
    for each in record_batches(rows):
        encoder.write(each)
    return encoder.finish()


def _encode_pieces(encoder: Encoder, tables: Iterable[pa.RecordBatch | pa.Table]) -> pa.Buffer:
    """Encode and compress a piece at a time."""
    made: Joined | None = None
    waiting = 0
    for table in tables:
        for written in encoder.write_pieces(table, PIECE_BYTES):
            waiting += written
            if waiting >= PIECE_BYTES:
                made = made or Joined(4 * PIECE_BYTES)
                made.append(encoder.take())
                waiting = 0
    last = encoder.finish()
    if made is None:
        return last
    made.append(last)
    return made.all()
