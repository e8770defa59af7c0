"""Uuids as Kafka prints them."""

from __future__ import annotations

from base64 import urlsafe_b64encode


def uuid_text(uuid: bytes) -> str:
    """Return the 22 characters that Kafka prints for 16 bytes.

    Examples
    --------
    >>> uuid_text(bytes(16))
    'AAAAAAAAAAAAAAAAAAAAAA'
    """
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()
