"""The fault of Kafka's first lz4 frames: before message format 1 the header checksum was taken over too many bytes.

A frame starts with a magic number (4 bytes), flags, block descriptor, an optional content size (8 bytes) and a checksum
byte: the second byte of the xxHash32 of the fields behind the magic number. Kafka 0.8 and 0.9 counted the magic number
in. Readers of message format 0 therefore put the right checksum in before they hand the frame on.
"""

from __future__ import annotations

MAGIC_SIZE = 4
CONTENT_SIZE_FLAG = 0x08
PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
MASK = 0xFFFFFFFF


def _rotate_left(x: int, bits: int) -> int:
    return (x << bits | x >> (32 - bits)) & MASK


def xxhash32_short(data: bytes) -> int:
    """Return the xxHash32 with seed 0 of fewer than 16 bytes."""
    h = (PRIME_5 + len(data)) & MASK
    words = len(data) // 4 * 4
    for at in range(0, words, 4):
        h = (h + int.from_bytes(data[at : at + 4], "little") * PRIME_3) & MASK
        h = _rotate_left(h, 17) * PRIME_4 & MASK
    for byte in data[words:]:
        h = (h + byte * PRIME_5) & MASK
        h = _rotate_left(h, 11) * PRIME_1 & MASK
    h = (h ^ h >> 15) * PRIME_2 & MASK
    h = (h ^ h >> 13) * PRIME_3 & MASK
    return h ^ h >> 16


def mend_lz4_header(frame: memoryview) -> bytes:
    """Return the frame with the header checksum that the lz4 format asks for."""
    if len(frame) < MAGIC_SIZE + 3:
        return bytes(frame)
    flags = frame[MAGIC_SIZE]
    checksum_at = MAGIC_SIZE + 2 + (8 if flags & CONTENT_SIZE_FLAG else 0)
    mended = bytearray(frame)
    if checksum_at < len(mended):
        mended[checksum_at] = xxhash32_short(bytes(frame[MAGIC_SIZE:checksum_at])) >> 8 & 0xFF
    return bytes(mended)
