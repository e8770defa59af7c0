"""Control records, which brokers write in batches of their own between the data.

The key is version int16, type int16. The value of an ABORT or COMMIT marker is version int16, coordinator_epoch int32;
those of the other types start with their version and are flexible messages: compact arrays and strings (length plus one
as an unsigned varint), and tagged fields at the end of each struct.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kraftlog._native.message import ZERO_UUID
from kraftlog.codec.cursor import Cursor
from kraftlog.codec.headers import CONTROL_TYPES
from kraftlog.errors import InvalidRecordError

KEY_SIZE = 4


@dataclass(frozen=True)
class ControlRecord:
    """A control record.

    Attributes
    ----------
    control_type : str
        ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS, or UNKNOWN(n).
    version : int
        Version of the value.
    fields : dict
        Fields with Kafka's JSON names; empty for an unknown type.
    """

    control_type: str
    version: int
    fields: dict[str, Any]


Field = Callable[[Cursor], Any]


def _number(layout: str) -> Field:
    return lambda cursor: cursor.number(layout)


def _string(cursor: Cursor) -> str:
    return bytes(cursor.take(cursor.uvarint() - 1)).decode("utf-8", "replace")  # never null


def _uuid(cursor: Cursor) -> str:
    return base64.urlsafe_b64encode(cursor.take(16)).decode().rstrip("=")


def _from_version(first: int, field: Field, default: Any) -> Field:
    return lambda cursor: field(cursor) if cursor.version >= first else default


def _struct(fields: dict[str, Field]) -> Field:
    def read(cursor: Cursor) -> dict[str, Any]:
        values = {name: field(cursor) for name, field in fields.items()}
        cursor.tagged_fields()
        return values

    return read


def _array(element: Field) -> Field:
    def read(cursor: Cursor) -> list[Any]:
        count = cursor.uvarint() - 1
        if not 0 <= count <= cursor.left:
            raise cursor.fault(f"{count} elements, but {cursor.left} bytes left")
        return [element(cursor) for _ in range(count)]

    return read


_INT16, _UINT16, _INT32, _INT64 = _number(">h"), _number(">H"), _number(">i"), _number(">q")
_LEADER_CHANGE_VOTER = _struct({"voterId": _INT32, "voterDirectoryId": _from_version(1, _uuid, ZERO_UUID)})
_ENDPOINT = _struct({"name": _string, "host": _string, "port": _UINT16})
_VERSION_RANGE = _struct({"minSupportedVersion": _INT16, "maxSupportedVersion": _INT16})
_VOTER = _struct(
    {
        "voterId": _INT32,
        "voterDirectoryId": _uuid,
        "endpoints": _array(_ENDPOINT),
        "kRaftVersionFeature": _VERSION_RANGE,
    }
)
_VALUES = {
    "LEADER_CHANGE": _struct(
        {
            "version": _INT16,
            "leaderId": _INT32,
            "voters": _array(_LEADER_CHANGE_VOTER),
            "grantingVoters": _array(_LEADER_CHANGE_VOTER),
        }
    ),
    "SNAPSHOT_HEADER": _struct({"version": _INT16, "lastContainedLogTimestamp": _INT64}),
    "SNAPSHOT_FOOTER": _struct({"version": _INT16}),
    "KRAFT_VERSION": _struct({"version": _INT16, "kRaftVersion": _INT16}),
    "KRAFT_VOTERS": _struct({"version": _INT16, "voters": _array(_VOTER)}),
}


def decode_control(key: bytes, value: bytes | None) -> ControlRecord:
    """Decode the key and value of a control record.

    Parameters
    ----------
    key, value : bytes
        Key and value of a record whose batch has the control bit.

    Returns
    -------
    ControlRecord

    Raises
    ------
    InvalidRecordError
        When the key or value is truncated.

    Examples
    --------
    >>> from kraftlog import decode_control
    >>> decode_control(bytes.fromhex("00000001"), bytes.fromhex("000000000007"))
    ControlRecord(control_type='COMMIT', version=0, fields={'version': 0, 'coordinatorEpoch': 7})
    """
    if len(key) < KEY_SIZE:
        raise InvalidRecordError(f"control record: a key of {KEY_SIZE} bytes, but {len(key)} bytes left")
    number = int.from_bytes(key[2:4], "big", signed=True)
    control_type = CONTROL_TYPES[number] if 0 <= number < len(CONTROL_TYPES) else f"UNKNOWN({number})"
    cursor = Cursor(value or b"", "control record")
    if control_type in ("ABORT", "COMMIT"):
        version = cursor.number(">h")
        return ControlRecord(control_type, version, {"version": version, "coordinatorEpoch": cursor.number(">i")})
    if control_type not in _VALUES:
        return ControlRecord(control_type, int.from_bytes(key[:2], "big", signed=True), {})
    cursor.version = int.from_bytes(cursor.data[:2], "big", signed=True)
    return ControlRecord(control_type, cursor.version, _VALUES[control_type](cursor))
