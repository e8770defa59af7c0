"""HMACs of many values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_BLOCK = 64  # bytes that SHA-256 takes at once
_INNER, _OUTER = 0x36, 0x5C  # of RFC 2104


class Digests:
    """HMACs (SHA-256) of many values under one key; the state of the key is computed once.

    Parameters
    ----------
    key : bytes

    Examples
    --------
    >>> import hmac
    >>> Digests(b"key").of([b"a"]) == [hmac.new(b"key", b"a", "sha256").hexdigest().encode()]
    True
    """

    def __init__(self, key: bytes) -> None:
        padded = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
        self._inner, self._outer = (hashlib.sha256(bytes(byte ^ pad for byte in padded)) for pad in (_INNER, _OUTER))

    def of(self, values: Sequence[bytes]) -> list[bytes]:
        """Return the hexadecimal digits of each value."""
        return [self.one(data).encode() for data in values]

    def one(self, data: bytes) -> str:
        """Return the hexadecimal digits of one value."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(data)
        outer.update(inner.digest())
        return outer.hexdigest()
