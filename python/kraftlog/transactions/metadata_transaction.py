"""A transaction of the metadata log (KIP-868) as batches: Begin, records, End or Abort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.codec.arrow_arrays import bytes_of
from kraftlog.codec.batch_encoder import MOST_RECORDS
from kraftlog.codec.encode import EncodedLists, Encoder
from kraftlog.codec.encode_column import encoded_lists
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.codec.list_column import Column
from kraftlog.codec.metadata_markers import (
    abort_transaction,
    begin_transaction,
    begin_transactions,
    end_transaction,
)
from kraftlog.codec.metadata_version import has_metadata_transactions, metadata_version_level
from kraftlog.transactions.metadata_encoder import DEFAULT_BATCH_BYTES, is_list_of_bytes, metadata_encoder

ONE_BATCH = (MOST_RECORDS,)  # a plan that is broken by a second batch

Values: TypeAlias = pa.Array | pa.ChunkedArray | Iterable["Values"]


def value_batches(records: Values) -> Iterator[pa.RecordBatch]:
    """Return serialized metadata records as rows with a column ``value``.

    Parameters
    ----------
    records : pyarrow.Array or pyarrow.ChunkedArray of binary, list of bytes, or iterable of these

    Raises
    ------
    ValueError
        When one is null, or an item is not an array.
    """
    if isinstance(records, pa.ChunkedArray):
        records = records.chunks
    elif is_list_of_bytes(records):
        records = bytes_of(records)
    if isinstance(records, pa.Array):
        if records.null_count:
            index = records.is_null().index(True).as_py()
            raise ValueError(f"record {index} is null; a metadata record has a value")
        if len(records):
            yield pa.RecordBatch.from_arrays([records], ["value"])
        return
    if isinstance(records, str | bytes) or not isinstance(records, Iterable):
        raise ValueError(f"records are {type(records).__name__}, not an Arrow array")
    for each in records:
        yield from value_batches(each)


def _new_encoder(
    *,
    max_batch_bytes: int = DEFAULT_BATCH_BYTES,
    max_batch_records: int | None = None,
    base_offset: int = 0,
    partition_leader_epoch: int = 0,
    timestamp_ms: int = NO_TIMESTAMP,
    metadata_version: int | str | None = None,
) -> tuple[Encoder, bool]:
    """Return an encoder of a transaction's records, and whether markers begin and end the transaction."""
    has_markers = has_metadata_transactions(metadata_version_level(metadata_version))
    encoder = metadata_encoder(
        Encoder,
        max_batch_bytes,
        base_offset,
        partition_leader_epoch,
        timestamp_ms,
        max_batch_records=max_batch_records,
        one_batch=not has_markers,
    )
    return encoder, has_markers


class TransactionEncoder:
    """Packs one transaction of the metadata log in pieces; for one in memory use ``pack_transaction``.

    Parameters
    ----------
    name : str, optional
        Name of the transaction; at most 255 bytes of UTF-8.
    metadata_version : int or str, optional
        Below 3.6-IV1 there are no markers, and all records must fit in one batch.
    max_batch_bytes, max_batch_records, base_offset, partition_leader_epoch, timestamp_ms
        As in ``Encoder``.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        max_batch_bytes: int = DEFAULT_BATCH_BYTES,
        max_batch_records: int | None = None,
        base_offset: int = 0,
        partition_leader_epoch: int = 0,
        timestamp_ms: int = NO_TIMESTAMP,
        metadata_version: int | str | None = None,
    ) -> None:
        begin = begin_transaction(name)
        self.encoder, self.has_markers = _new_encoder(
            max_batch_bytes=max_batch_bytes,
            max_batch_records=max_batch_records,
            base_offset=base_offset,
            partition_leader_epoch=partition_leader_epoch,
            timestamp_ms=timestamp_ms,
            metadata_version=metadata_version,
        )
        if self.has_markers:
            self.encoder.write_marker(begin)

    def write(self, rows: pa.RecordBatch) -> pa.Buffer:
        """Add rows like ``Encoder.write``; return the complete batches."""
        self.encoder.write(rows)
        return self.encoder.take()

    def end(self) -> pa.Buffer:
        """End the transaction; return the last batches."""
        if self.has_markers:
            self.encoder.write_marker(end_transaction())
        return self.encoder.finish()

    def abort(self, reason: str | None = None) -> pa.Buffer:
        """Abort the transaction; return the last batches, none without markers."""
        if not self.has_markers:
            return pa.py_buffer(b"")
        self.encoder.write_marker(abort_transaction(reason))
        return self.encoder.finish()


def pack_transaction(
    records: Values,
    name: str | None = None,
    max_batch_bytes: int = DEFAULT_BATCH_BYTES,
    *,
    max_batch_records: int | None = None,
    base_offset: int = 0,
    partition_leader_epoch: int = 0,
    timestamp_ms: int = NO_TIMESTAMP,
    metadata_version: int | str | None = None,
) -> pa.Buffer:
    """Pack metadata records into a transaction (KIP-868), in as few batches as possible in their order.

    Parameters
    ----------
    records : pyarrow.Array or pyarrow.ChunkedArray of binary, list of bytes, or iterable of these
        Serialized metadata records: frame version, api key, version, message. They are copied once, into their batch.
    name : str, optional
        Name of the transaction, at most 255 bytes of UTF-8; None differs from the empty name.
    max_batch_bytes : int
        Maximum size of a batch in bytes, including the header; at most 8 MiB.
    max_batch_records : int, optional
        Maximum number of records of a batch.
    base_offset : int
        Offset of the Begin record; the others follow without gaps.
    partition_leader_epoch : int
        As in the batch header.
    timestamp_ms : int
        Timestamp of all records; a controller uses the time of the append. -1 means none.
    metadata_version : int or str, optional
        A level or a name; default: the newest. Below 3.6-IV1 (level 13) there are no transactions: the records must fit
        in one batch, and ``name`` is not written.

    Returns
    -------
    pyarrow.Buffer
        Consecutive batches; owns its memory.

    Raises
    ------
    RecordTooLargeError
        When a single record exceeds ``max_batch_bytes``, or the version has no transactions and the records do not fit
        in one batch; the message has the record's index, the size and the limit.
    InvalidRecordError
        When one of the records begins, ends or aborts a transaction.
    ValueError
        When an option, or the type of the records, is invalid.

    Examples
    --------
    >>> import kraftlog
    >>> no_op = bytes.fromhex("01140000")
    >>> data = pack_transaction([no_op, no_op], "two at once")
    >>> [value.hex() for value in kraftlog.decode(data).to_table()["value"].to_pylist()]
    ['01170001000c0c74776f206174206f6e6365', '01140000', '01140000', '01180000']
    """
    packed = TransactionEncoder(
        name,
        max_batch_bytes=max_batch_bytes,
        max_batch_records=max_batch_records,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        timestamp_ms=timestamp_ms,
        metadata_version=metadata_version,
    )
    for rows in value_batches(records):
        packed.encoder.write(rows)
    return packed.end()


def pack_lists(column: Column, names: pa.Array | None = None, **options: Any) -> Column:
    """Pack each list of metadata records into a transaction, as ``pack_transaction`` does, in one pass.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray of list of binary
    names : pyarrow.Array of string, optional
        The name of each transaction.
    **options
        As for ``pack_transaction``, except ``name``.

    Returns
    -------
    pyarrow.BinaryArray
        Null for null.

    Raises
    ------
    ValueError
        For the first list that cannot be packed; the message has the index of the record in that list.
    """
    names = pa.nulls(len(column), pa.string()) if names is None else names
    if isinstance(column, pa.ChunkedArray):
        ends = np.cumsum([len(chunk) for chunk in column.chunks], dtype=np.int64)
        each = zip(column.chunks, ends.tolist(), strict=True)
        packed = [pack_lists(one, names.slice(end - len(one), len(one)), **options) for one, end in each]
        return pa.chunked_array(packed, pa.binary())

    def pack_all(records: pa.Array, ends: npt.NDArray[np.int64]) -> EncodedLists | None:
        encoder, has_markers = _new_encoder(**options)
        markers = None
        if has_markers:
            begins = begin_transactions(names.filter(column.is_valid()))
            markers = begins, pa.repeat(pa.scalar(end_transaction(), pa.binary()), len(begins))
        return encoder.encode_lists(pa.RecordBatch.from_arrays([records], ["value"]), ends, markers)

    def pack_one(number: int, records: pa.Array) -> pa.Buffer:
        return pack_transaction(records, names[number].as_py(), **options)

    return encoded_lists(column, pack_all, pack_one)
