"""Records of a metadata log that are valid messages."""

from __future__ import annotations


def topic_record(name: str) -> bytes:
    """Return a TopicRecord: frame version, type and version, the name behind its length, an id of zeros, no tags."""
    length = len(name) + 1
    varint = bytes([length]) if length < 0x80 else bytes([length & 0x7F | 0x80, length >> 7])
    return b"\x01\x02\x00" + varint + name.encode() + bytes(17)
