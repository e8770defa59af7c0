"""Values as Java prints them."""

from __future__ import annotations

import codecs
from decimal import Decimal

JAVA_REPLACEMENT = "java-replacement"


def java(value: bool) -> str:
    """Return a boolean."""
    return "true" if value else "false"


def optional_long(value: int | None) -> str:
    """Return an ``OptionalLong``."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def double(value: float) -> str:
    """Return what ``Double.toString`` returns: from ten million on, and below a thousandth, with an exponent."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    shown = "".join(map(str, digits))
    return f"{'-' if value < 0 else ''}{shown[0]}.{shown[1:] or '0'}E{int(exponent) + len(shown) - 1}"


def string(data: bytes) -> str:
    """Return what ``new String(data, UTF_8)`` is."""
    return data.decode("utf-8", JAVA_REPLACEMENT)


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    """Replace malformed UTF-8 as ``new String(bytes, UTF_8)`` does, which takes an encoded surrogate for one."""
    assert isinstance(error, UnicodeDecodeError)
    data, at = error.object, error.start
    if data[at] == 0xED and data[at + 1 : at + 2] >= b"\xa0" and data[at + 1] < 0xC0:
        return "\ufffd", at + 2 + (0x80 <= data[at + 2] < 0xC0 if at + 2 < len(data) else 0)
    return "\ufffd", error.end


codecs.register_error(JAVA_REPLACEMENT, _replace_as_java)
