"""A batch of one record, built directly as bytes: markers are written one at a time, and in large numbers."""

from __future__ import annotations

import struct

from kraftlog._native import encoder as native
from kraftlog._native.scanner import RECORD_BATCH_OVERHEAD
from kraftlog._native.text_column import LAYOUTS, TextColumn
from kraftlog.types import Buffer

_ENDS = struct.Struct("=ii")  # of a column of one value, as Arrow has them
_LARGEST_FRAME = 32  # bytes of a record without headers beside its key and value


def encode_record(
    key: bytes,
    value: bytes,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    timestamp_ms: int,
    attributes: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> Buffer:
    """Return the batch; fields of its header are as in ``Encoder``, ``attributes`` as in the format."""
    size = RECORD_BATCH_OVERHEAD + _LARGEST_FRAME + len(key) + len(value)
    encoder = native.Encoder(
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=-1,
        attributes=attributes,
        max_batch_bytes=size,
        max_batch_records=1,
        batch_records=None,
        refuse_markers=False,
        timestamp_ms=timestamp_ms,
    )
    source = native.Source(1)
    source.set_key(_column(key), 0)
    source.set_value(_column(value), 0)
    encoder.write((source,), 0, 1)
    encoder.close_batch()
    return encoder.take()


def _column(value: bytes) -> TextColumn:
    return TextColumn(LAYOUTS["ends32"], 1, 0, None, _ENDS.pack(0, len(value)), (value,))
