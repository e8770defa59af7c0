"""Kafka's consumer protocol: the subscriptions and assignments of members of classic groups.

A subscription and an assignment are a version and a message. Versions later than the last known one are read as that
one, as in Kafka's ``ConsumerProtocol``.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence

import pyarrow as pa

from kraftlog.coordinator.group_types import Row
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.reader import MessageReader, Messages
from kraftlog.messages.record_type import RecordFormat, RecordType

SUBSCRIPTION, ASSIGNMENT = "ConsumerProtocolSubscription", "ConsumerProtocolAssignment"
_TYPE = 0
_KEY = struct.pack(">h", _TYPE)
_VERSION = struct.Struct(">h")


def read_blobs(name: str, blobs: Sequence[bytes]) -> list[Row | None]:
    """Return subscriptions or assignments as rows; None for each that cannot be read.

    Parameters
    ----------
    name : str
        ``SUBSCRIPTION`` or ``ASSIGNMENT``.
    blobs : sequence of bytes
    """
    last = BUILT_IN.messages[name].versions.last
    typed = _read(name, [_as_known(blob, last) for blob in blobs]).typed(name)
    rows: list[Row | None] = [None] * len(blobs)
    for at, row in zip(typed.rows.tolist(), typed.fields.to_pylist(), strict=True):
        rows[at] = row
    return rows


def blobs_as_json(name: str, blobs: Sequence[str]) -> list[str]:
    """Return base64 subscriptions or assignments as JSON; one that cannot be read is left unchanged.

    Versions later than the last known one are not read here.

    Parameters
    ----------
    name : str
        ``SUBSCRIPTION`` or ``ASSIGNMENT``.
    blobs : sequence of str

    Examples
    --------
    >>> blobs_as_json(ASSIGNMENT, ["AAAAAAAA/////w==", "AAA="])
    ['{"assignedPartitions":[],"userData":null}', '"AAA="']
    """
    texts = _read(name, [base64.b64decode(blob) for blob in blobs]).json()[1].to_pylist()
    return [f'"{blob}"' if text is None else text for blob, text in zip(blobs, texts, strict=True)]


def _read(name: str, blobs: Sequence[bytes]) -> Messages:
    definition = BUILT_IN.messages[name]
    reader = MessageReader(RecordFormat(name, {_TYPE: RecordType(name, _TYPE, None, definition)}))
    return reader.read(pa.array([_KEY] * len(blobs), pa.binary()), pa.array(blobs, pa.binary()))


def _as_known(blob: bytes, last: int) -> bytes:
    if len(blob) >= _VERSION.size and _VERSION.unpack_from(blob)[0] > last:
        return _VERSION.pack(last) + blob[_VERSION.size :]
    return blob
