"""Uuids: as Kafka prints and orders them, and those with a meaning."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode

MIGRATING = bytes(16)  # Kafka's DirectoryId.MIGRATING: the directory of a replica whose record has no directories
LOST = bytes(15) + b"\2"  # DirectoryId.LOST: a directory of the replica's broker that is offline, whichever it is
_FIRST_DIRECTORY = 100  # smaller numbers are reserved in DirectoryId
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


def names_directory(uuid: bytes) -> bool:
    """Whether the directory id of a replica is that of a log directory, and not one of ``DirectoryId``.

    Examples
    --------
    >>> names_directory(MIGRATING), names_directory(LOST), names_directory(bytes(7) + bytes([1]) + bytes(8))
    (False, False, True)
    """
    high, low = uuid_order(uuid)
    return high != 0 or not 0 <= low < _FIRST_DIRECTORY
