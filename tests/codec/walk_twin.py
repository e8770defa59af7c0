"""The walk from batch to batch in plain Python: the rules of native/c/batch/step.h, for tests."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

from reference import crc32c

LEAST_LENGTH = {0: 14, 1: 22}


@dataclass
class Walk:
    """What a walk comes to: batches that are read, those left out, where it gives up, and where a torn tail starts."""

    sound: list[int] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)
    gives_up_at: int | None = None
    torn_at: int | None = None


def least(magic: int) -> int:
    return LEAST_LENGTH.get(magic, 49)


def is_zero(data: bytes, position: int) -> bool:
    return not any(data[position:])


def is_begun(data: bytes, position: int) -> bool:
    """Nothing but the first bytes of a header was written."""
    return len(data) - position > 12 and is_zero(data, position + 12)


def is_plausible(data: bytes, position: int) -> bool:
    base_offset, length = struct.unpack_from(">qi", data, position)
    magic = data[position + 16]
    if magic > 2 or base_offset < 0 or length < least(magic):
        return False
    if magic < 2:
        attributes = data[position + 17] if position + 17 < len(data) else 0
        return attributes <= 0x0F and attributes & 7 < 4
    if len(data) - position < 61:
        return True
    attributes, last_offset_delta = struct.unpack_from(">Hi", data, position + 21)
    (records_count,) = struct.unpack_from(">i", data, position + 57)
    return attributes <= 0x7F and attributes & 7 <= 4 and last_offset_delta >= 0 and records_count >= 0


def is_followed(data: bytes, base_offset: int, position: int) -> bool:
    if len(data) - position < 17:
        return True
    if not is_plausible(data, position):
        return False
    (following,) = struct.unpack_from(">q", data, position)
    return 0 <= following - base_offset < 2**31


def crc_matches(data: bytes, position: int, end: int) -> bool:
    if data[position + 16] >= 2:
        return struct.unpack_from(">I", data, position + 17)[0] == crc32c(data[position + 21 : end])
    return struct.unpack_from(">I", data, position + 12)[0] == zlib.crc32(data[position + 16 : end])


def is_sound(data: bytes, position: int) -> bool:
    if not is_plausible(data, position):
        return False
    length = int.from_bytes(data[position + 8 : position + 12])
    return length <= len(data) - position - 12 and crc_matches(data, position, position + 12 + length)


def goes_on(data: bytes, base_offset: int, position: int) -> bool:
    return is_followed(data, base_offset, position) or is_begun(data, position) or is_sound(data, position)


def walk(data: bytes) -> Walk:
    """Walk over all of the input."""
    found = Walk()
    position = 0
    while position < len(data):
        left = len(data) - position
        if left < 17:
            found.torn_at = position
            return found
        base_offset, length = struct.unpack_from(">qi", data, position)
        magic = data[position + 16]
        is_header = magic < 128 and length >= least(magic)
        if is_header and length > left - 12 and is_plausible(data, position):
            found.torn_at = position
            return found
        if not is_header or length > left - 12:
            if is_begun(data, position):
                found.torn_at = position
                return found
            if magic >= 128 and 14 <= length <= left - 12 and goes_on(data, base_offset, position + 12 + length):
                position += 12 + length  # a bad magic, and a length that leads on
                continue
            found.gives_up_at = position
            return found
        end = position + 12 + length
        last_offset_delta = struct.unpack_from(">i", data, position + 23)[0] if magic >= 2 else 0
        has_next = -(2**63) - min(last_offset_delta, 0) <= base_offset <= 2**63 - 2 - max(last_offset_delta, 0)
        if has_next and crc_matches(data, position, end):
            found.sound.append(position)
        elif is_begun(data, position):
            found.torn_at = position
            return found
        else:
            found.bad.append(position)
            if not (goes_on(data, base_offset, end)):
                found.gives_up_at = position
                return found
        position = end
    return found
