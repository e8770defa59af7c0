"""The CRC32C of data after a change of four bytes, from the earlier CRC, without reading the data.

A CRC is linear: the effect of a change depends on the changed bits and on the number of bytes after them. As
polynomials over GF(2): (change) * x^32 * x^(8 * bytes after), modulo the polynomial of CRC32C. Bits are in reversed
order, as in the CRC: the highest bit is x^0.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = np.uint32(0x82F63B78)
_ONE = np.uint32(1 << 31)
_EIGHT_BITS = np.uint32(1 << 23)  # x^8
_WORD_BYTES = 4

Words = npt.NDArray[np.uint32]


def changed_crcs(crcs: Words, changes: Words, bytes_behind: npt.NDArray[np.int64]) -> Words:
    """Return each CRC after a change of four bytes in its data.

    Parameters
    ----------
    crcs : uint32[n]
    changes : uint32[n]
        The four bytes before, xor the four bytes after; read in little endian.
    bytes_behind : int64[n]
        Number of bytes after these four.

    Returns
    -------
    uint32[n]

    Examples
    --------
    >>> from kraftlog._native.checksum import crc32c
    >>> before, after = b"one four bytes more", b"one FOUR bytes more"
    >>> change = int.from_bytes(b"four", "little") ^ int.from_bytes(b"FOUR", "little")
    >>> crcs = np.array([crc32c(before)], np.uint32)
    >>> int(changed_crcs(crcs, np.array([change], np.uint32), np.array([11]))[0]) == crc32c(after)
    True
    """
    return crcs ^ _product(changes, _power_of_bytes(bytes_behind + _WORD_BYTES))


def _product(left: Words, right: Words) -> Words:
    """Multiply polynomials, modulo the polynomial of CRC32C."""
    total = np.zeros_like(right)
    for bit in range(31, -1, -1):
        total ^= np.where(left >> np.uint32(bit) & np.uint32(1), right, np.uint32(0))
        right = right >> np.uint32(1) ^ np.where(right & np.uint32(1), _POLYNOMIAL, np.uint32(0))
    return total


def _power_of_bytes(counts: npt.NDArray[np.int64]) -> Words:
    """Return x^(8 * count): the product of one power for each bit of the count."""
    powers = np.full(len(counts), _ONE, np.uint32)
    for bit in range(int(counts.max(initial=0)).bit_length()):
        factor = np.broadcast_to(_factor(bit), powers.shape)
        powers = np.where(counts >> bit & 1, _product(powers, factor), powers)
    return powers


@cache
def _factor(bit: int) -> Words:
    """Return x^(8 * 2^bit)."""
    if not bit:
        return np.array([_EIGHT_BITS])
    half = _factor(bit - 1)
    return _product(half, half)
