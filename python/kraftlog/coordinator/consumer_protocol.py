"""Kafka's consumer protocol: the subscriptions and assignments of members of classic groups.

A subscription and an assignment are a version and a message. Those of a version later than the last one known are read
as of that one, as Kafka's ``ConsumerProtocol`` does.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from kraftlog.coordinator.groups import Row
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.record_type import RecordFormat, RecordType

SUBSCRIPTION, ASSIGNMENT = "ConsumerProtocolSubscription", "ConsumerProtocolAssignment"
_TYPE = 0
_KEY = struct.pack(">h", _TYPE)
_VERSION = struct.Struct(">h")


def read_blobs(name: str, blobs: Sequence[bytes]) -> list[Row | None]:
    """Return subscriptions or assignments as rows, None for each that cannot be read.

    Parameters
    ----------
    name : str
        ``SUBSCRIPTION`` or ``ASSIGNMENT``.
    blobs : sequence of bytes
    """
    definition = BUILT_IN.messages[name]
    last = definition.versions.last
    reader = MessageReader(RecordFormat(name, {_TYPE: RecordType(name, _TYPE, None, definition)}))
    values = pa.array([_as_known(blob, last) for blob in blobs], pa.binary())
    typed = reader.read(pa.array([_KEY] * len(blobs), pa.binary()), values).typed(name)
    found: list[Row | None] = [None] * len(blobs)
    for at, row in zip(typed.rows.tolist(), typed.fields.to_pylist(), strict=True):
        found[at] = row
    return found


def _as_known(blob: bytes, last: int) -> bytes:
    if len(blob) >= _VERSION.size and _VERSION.unpack_from(blob)[0] > last:
        return _VERSION.pack(last) + blob[_VERSION.size :]
    return blob
