"""Uuids: as Kafka prints and orders them, and those with a meaning."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode

MIGRATING = bytes(16)  # Kafka's DirectoryId.MIGRATING: the directory of a replica whose record has no directories
_SIGNED = struct.Struct(">qq")


def uuid_text(uuid: bytes) -> str:
    """Return the 22 characters that Kafka prints for 16 bytes.

    Examples
    --------
    >>> uuid_text(bytes(16))
    'AAAAAAAAAAAAAAAAAAAAAA'
    """
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes that Kafka prints as 22 characters.

    Raises
    ------
    ValueError
        When they are not such characters.

    Examples
    --------
    >>> uuid_bytes("AAAAAAAAAAAAAAAAAAAAAA") == bytes(16)
    True
    """
    uuid = urlsafe_b64decode(text + "==")
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is not the text of a uuid")
    return uuid


def uuid_order(uuid: bytes) -> tuple[int, int]:
    """Return a key that sorts uuids as Kafka does: as two signed numbers.

    Examples
    --------
    >>> uuid_order(bytes(7) + bytes([1]) + bytes([255] * 8))
    (1, -1)
    """
    high, low = _SIGNED.unpack(uuid)
    return high, low
