"""In-place changes of batches, as brokers make them when they append."""

from __future__ import annotations

from kraftlog._native import encoder as native
from kraftlog._native.status import CODES
from kraftlog.codec.batch_encoder import checked_header
from kraftlog.errors import error_from_fault, fault_from_native
from kraftlog.types import Buffer

CREATE_TIME, LOG_APPEND_TIME = TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


def rewrite_batches(
    buffer: Buffer,
    *,
    base_offset: int | None = None,
    partition_leader_epoch: int | None = None,
    timestamp_type: str | None = None,
    max_timestamp_ms: int | None = None,
) -> int:
    """Change the headers of all batches in a writable buffer; fields that are None are unchanged.

    The checksum of a batch covers neither its base offset nor its leader epoch. If timestamps change, each checksum is
    verified and then updated.

    Parameters
    ----------
    buffer : writable buffer
        Consecutive batches of magic 2, and nothing else.
    base_offset : int, optional
        Base offset of the first batch; the others follow without gaps.
    partition_leader_epoch : int, optional
    timestamp_type : {"CreateTime", "LogAppendTime"}, optional
        With LogAppendTime all records of a batch have its ``max_timestamp``.
    max_timestamp_ms : int, optional
        The time of the append, or the largest timestamp of the records; -1 means none.

    Returns
    -------
    int
        The offset after the last batch; for an empty buffer ``base_offset``, or -1.

    Raises
    ------
    CorruptRecordError
        When a batch is truncated or damaged. After this and all other errors the buffer is unchanged.
    ValueError
        When a batch has another magic, or an option is invalid.
    BufferError
        When the buffer is read-only.

    Examples
    --------
    >>> import pyarrow as pa, kraftlog
    >>> data = bytearray(kraftlog.encode(pa.table({"value": [b"a", b"b", b"c"]}), max_batch_records=2))
    >>> kraftlog.rewrite_batches(data, base_offset=40, partition_leader_epoch=6)
    43
    >>> kraftlog.rewrite_batches(data, timestamp_type="LogAppendTime", max_timestamp_ms=1700000000000)
    43
    >>> kraftlog.decode(data, columns=["offset", "timestamp_ms"], strict=True).to_table().to_pylist()[2]
    {'offset': 42, 'timestamp_ms': 1700000000000}
    """
    changes = {
        "base_offset": base_offset,
        "partition_leader_epoch": partition_leader_epoch,
        "max_timestamp_ms": max_timestamp_ms,
    }
    header = checked_header(**{name: number for name, number in changes.items() if number is not None})
    if timestamp_type is not None and timestamp_type not in TIMESTAMP_TYPES:
        raise ValueError(f"timestamp_type {timestamp_type!r} is not one of {', '.join(TIMESTAMP_TYPES)}")
    if timestamp_type == LOG_APPEND_TIME and max_timestamp_ms is None:
        raise ValueError(f"timestamp_type {LOG_APPEND_TIME} needs max_timestamp_ms, the time of the append")
    is_log_append_time = None if timestamp_type is None else timestamp_type == LOG_APPEND_TIME
    next_offset, found = native.rewrite_batches(
        buffer,
        header.get("base_offset"),
        header.get("partition_leader_epoch"),
        is_log_append_time,
        header.get("max_timestamp_ms"),
    )
    if found is None:
        return next_offset
    fault = fault_from_native(found)
    last_offset_delta = found[3]
    if CODES[found[0]] == "offset_overflow" and base_offset is not None and last_offset_delta >= 0:
        raise ValueError(f"base_offset {base_offset} leaves no offsets for the batch at byte {fault.position}")
    if CODES[found[0]] == "bad_magic":
        raise ValueError(f"batch at byte {fault.position}: magic {found[4]}; only magic 2 is changed in place")
    raise error_from_fault(fault)
