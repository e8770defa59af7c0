"""Control records written by the leader of a Raft quorum, as key and value.

A key is version int16, type int16; the values are flexible messages of version 0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kraftlog._native.scanner import CONTROL_BIT
from kraftlog.codec.cursor import uvarint
from kraftlog.codec.headers import CONTROL_TYPES
from kraftlog.codec.single_record import encode_record
from kraftlog.types import Buffer

_VERSION = 0
_NO_TAGGED_FIELDS = b"\0"


def leader_change(leader_id: int, voters: Sequence[int], granting_voters: Sequence[int]) -> bytes:
    """Return the value of a LEADER_CHANGE record.

    Parameters
    ----------
    leader_id : int
    voters, granting_voters : sequence of int
        Node ids of the voters, and of those that voted for the leader.

    Examples
    --------
    >>> leader_change(1, [1], [1]).hex()
    '00000000000102000000010002000000010000'
    """
    head = struct.pack(">hi", _VERSION, leader_id)
    return head + _voters(voters) + _voters(granting_voters) + _NO_TAGGED_FIELDS


def _voters(ids: Sequence[int]) -> bytes:
    return uvarint(len(ids) + 1) + b"".join(struct.pack(">i", voter) + _NO_TAGGED_FIELDS for voter in ids)


def snapshot_header(last_contained_log_timestamp: int) -> bytes:
    """Return the value of a SNAPSHOT_HEADER record: when, in milliseconds, the last of its records was appended."""
    return struct.pack(">hq", _VERSION, last_contained_log_timestamp) + _NO_TAGGED_FIELDS


def snapshot_footer() -> bytes:
    """Return the value of a SNAPSHOT_FOOTER record."""
    return struct.pack(">h", _VERSION) + _NO_TAGGED_FIELDS


def control_batch(
    control_type: str, value: bytes, *, base_offset: int, partition_leader_epoch: int, timestamp_ms: int
) -> Buffer:
    """Return a batch that holds one control record.

    Parameters
    ----------
    control_type : str
        As in ``ControlRecord``.
    value : bytes
    base_offset, partition_leader_epoch : int
        Fields of the batch.
    timestamp_ms : int
    """
    key = struct.pack(">hh", _VERSION, CONTROL_TYPES.index(control_type))
    return encode_record(
        key,
        value,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        timestamp_ms=timestamp_ms,
        attributes=CONTROL_BIT,
    )
