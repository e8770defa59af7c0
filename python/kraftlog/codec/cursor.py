"""Fields of a flexible message: big-endian numbers, unsigned varints, strings, tagged fields."""

from __future__ import annotations

import struct

from kraftlog.errors import InvalidRecordError
from kraftlog.types import Buffer

MOST_TAGGED_FIELDS = 1000
"""Of one struct; each takes many times its size in memory."""

_UVARINT_BITS = 35  # of five bytes; surplus bits are dropped, as Kafka does


class Cursor:
    """Reads fields from bytes; a field beyond the end raises.

    Parameters
    ----------
    data : buffer
    what : str
        Description of the bytes, for messages.

    Raises
    ------
    InvalidRecordError
        From each method, when a field is invalid.
    """

    def __init__(self, data: Buffer, what: str) -> None:
        self.data = memoryview(data)
        self.what = what
        self.at = 0
        self.version = 0

    @property
    def left(self) -> int:
        """The remaining bytes."""
        return len(self.data) - self.at

    def fault(self, sentence: str) -> InvalidRecordError:
        """Return the exception for a fault at this position."""
        return InvalidRecordError(f"{self.what}: byte {self.at}: {sentence}")

    def take(self, size: int) -> memoryview:
        """Read a number of bytes."""
        if not 0 <= size <= self.left:
            raise self.fault(f"a field of {size} bytes, but {self.left} bytes left")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, layout: str) -> int:
        """Read a number in a format of ``struct``."""
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def uvarint(self) -> int:
        """Read an unsigned varint of at most 5 bytes."""
        value = 0
        for shift in range(0, _UVARINT_BITS, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFF
        raise self.fault("a varint of more than 5 bytes")

    def nullable_string(self) -> str | None:
        """Read a compact string: its length plus one, or 0 for null."""
        size = self.uvarint()
        return bytes(self.take(size - 1)).decode("utf-8", "replace") if size else None

    def tagged_fields(self) -> dict[int, memoryview]:
        """Read the tagged fields at the end of a struct; return the bytes of each."""
        fields = {}
        count = self.uvarint()
        if count > MOST_TAGGED_FIELDS:
            raise self.fault(f"{count} tagged fields, of at most {MOST_TAGGED_FIELDS}")
        for _ in range(count):
            tag = self.uvarint()
            fields[tag] = self.take(self.uvarint())
        return fields


def uvarint(value: int) -> bytes:
    """Return an unsigned varint."""
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
