"""Numbers, sizes, times and durations for people, and text of a log in a harmless form."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_STEP = 1000
_SPANS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
_ODD = re.compile(r"[^\x20-\x7e]")


def number(value: int) -> str:
    """Return a number with commas between thousands.

    Examples
    --------
    >>> from kraftlog.log_report.texts import number
    >>> number(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def size(value: float | None) -> str:
    """Return a number of bytes in the largest unit with at least one; ``-`` for None.

    Examples
    --------
    >>> from kraftlog.log_report.texts import size
    >>> size(999), size(1234), size(999_960), size(12_345_678)
    ('999 B', '1.2 kB', '1.0 MB', '12.3 MB')
    """
    if value is None:
        return "-"
    if value < _STEP:
        return f"{value:.0f} B"
    at = 0
    while value >= _STEP - 0.05 and at < len(_UNITS) - 1:
        value /= _STEP
        at += 1
    return f"{value:.1f} {_UNITS[at]}"


def time(milliseconds: int) -> str:
    """Return milliseconds since the epoch as a time in UTC; ``-`` for none.

    Examples
    --------
    >>> from kraftlog.log_report.texts import time
    >>> time(1_700_000_000_000), time(-1)
    ('2023-11-14 22:13:20', '-')
    """
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return "-"
    return "-" if milliseconds < 0 else f"{moment:%Y-%m-%d %H:%M:%S}"


def minute(milliseconds: int) -> str:
    """Return a time as ``time`` does, without seconds.

    Examples
    --------
    >>> from kraftlog.log_report.texts import minute
    >>> minute(1_700_000_000_000), minute(-1)
    ('2023-11-14 22:13', '-')
    """
    return time(milliseconds)[:16]


def duration(milliseconds: int) -> str:
    """Return a span of time, in its two largest units.

    Examples
    --------
    >>> from kraftlog.log_report.texts import duration
    >>> duration(7), duration(1500), duration(90_000), duration(90_061_000)
    ('7 ms', '1.5 s', '1 min 30 s', '1 d 1 h')
    """
    if milliseconds < _STEP:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f}".removesuffix(".0") + " s"
    parts: list[str] = []
    for unit, span in _SPANS:
        count, milliseconds = divmod(milliseconds, span)
        if count or parts:
            parts.append(f"{count} {unit}")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0 "))


def shown(value: object) -> object:
    """Return a value for a page; in text, invisible characters and those that reverse others are U+FFFD.

    Examples
    --------
    >>> from kraftlog.log_report.texts import shown
    >>> shown("gr" + chr(0xFC) + "n"), shown("a" + chr(0x202E) + "b" + chr(0)) == "a" + chr(0xFFFD) + "b" + chr(0xFFFD)
    ('grün', True)
    """
    if type(value) is not str:
        return value
    return _ODD.sub(lambda found: _visible(found[0]), value)


def _visible(character: str) -> str:
    is_odd = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") and character != "\n"
    return "\N{REPLACEMENT CHARACTER}" if is_odd else character
