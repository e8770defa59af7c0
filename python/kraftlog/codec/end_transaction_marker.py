"""COMMIT and ABORT markers: control batches with which a broker ends a producer's transaction."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kraftlog._native.scanner import CONTROL_BIT, TRANSACTIONAL_BIT
from kraftlog.codec.headers import CONTROL_TYPES, NO_TIMESTAMP
from kraftlog.codec.single_record import encode_record
from kraftlog.types import Buffer

if TYPE_CHECKING:
    import pyarrow as pa

MARKER_TYPES = ("ABORT", "COMMIT")
_VERSION = 0


def encode_marker(
    control_type: str,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int = 0,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    timestamp_ms: int = NO_TIMESTAMP,
) -> pa.Buffer:
    """Encode the marker that ends a producer's transaction in a partition, as a batch.

    Format: "Control Batches" in Kafka's protocol documentation; key version int16, type int16; value version int16,
    coordinator_epoch int32.

    Parameters
    ----------
    control_type : {"COMMIT", "ABORT"}
    producer_id, producer_epoch : int
        Producer id and epoch; under transaction version 2 the epoch is that of the data plus one.
    coordinator_epoch : int
        Epoch of the coordinator that ended the transaction.
    base_offset, partition_leader_epoch, timestamp_ms : int
        Fields of the batch.

    Returns
    -------
    pyarrow.Buffer
        One batch; owns its memory.

    Raises
    ------
    ValueError
        For another control type, or a negative producer id.

    Examples
    --------
    >>> import kraftlog
    >>> marker = kraftlog.encode_marker("COMMIT", producer_id=7, producer_epoch=1, base_offset=5)
    >>> marker.size
    78
    """
    import pyarrow as pa

    return pa.py_buffer(
        marker_batch(
            control_type,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            base_offset=base_offset,
            partition_leader_epoch=partition_leader_epoch,
            timestamp_ms=timestamp_ms,
        )
    )


def marker_batch(
    control_type: str,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int = 0,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    timestamp_ms: int = NO_TIMESTAMP,
) -> Buffer:
    """Return the batch of ``encode_marker``, not as an Arrow buffer."""
    if control_type not in MARKER_TYPES:
        raise ValueError(f"control_type {control_type!r} is not one of {', '.join(MARKER_TYPES)}")
    key = struct.pack(">hh", _VERSION, CONTROL_TYPES.index(control_type))
    value = struct.pack(">hi", _VERSION, coordinator_epoch)
    if producer_id < 0:
        raise ValueError("a marker needs a producer_id")
    return encode_record(
        key,
        value,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        timestamp_ms=timestamp_ms,
        attributes=CONTROL_BIT | TRANSACTIONAL_BIT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
