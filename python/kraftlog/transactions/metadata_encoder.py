"""Encoders of metadata records."""

from __future__ import annotations

from typing import TypeGuard, TypeVar

from kraftlog.codec.batch_encoder import MOST_RECORDS, BatchEncoder

DEFAULT_BATCH_BYTES = 8192  # default of KIP-868: the size of a fetch of the metadata log
LARGEST_BATCH_BYTES = 8 << 20  # the limit of Kafka's Raft quorum

_Encoder = TypeVar("_Encoder", bound=BatchEncoder)


def metadata_encoder(
    kind: type[_Encoder],
    max_batch_bytes: int,
    base_offset: int,
    partition_leader_epoch: int,
    timestamp_ms: int,
    *,
    max_batch_records: int | None = None,
    one_batch: bool = False,
) -> _Encoder:
    """Return an encoder of metadata records that refuses transaction markers.

    Parameters
    ----------
    kind : type
        ``Encoder``, or ``BatchEncoder`` for records that are no Arrow columns.
    max_batch_bytes, max_batch_records, base_offset, partition_leader_epoch, timestamp_ms
        As in ``Encoder``.
    one_batch : bool
        Refuse records that do not fit in one batch.
    """
    if max_batch_bytes > LARGEST_BATCH_BYTES:
        raise ValueError(f"max_batch_bytes {max_batch_bytes} is more than Kafka's {LARGEST_BATCH_BYTES}")
    return kind(
        max_batch_bytes=max_batch_bytes,
        max_batch_records=None if one_batch else max_batch_records,
        batch_records=[max_batch_records or MOST_RECORDS] if one_batch else None,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        timestamp_ms=timestamp_ms,
        refuse_markers=True,
    )


def is_list_of_bytes(records: object) -> TypeGuard[list[bytes]]:
    """Whether metadata records are a list of bytes, which needs no Arrow."""
    return isinstance(records, list) and bool(records) and isinstance(records[0], bytes)
