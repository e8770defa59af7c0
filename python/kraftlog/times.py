"""Times as users give them, in every interface, as milliseconds since the epoch."""

from __future__ import annotations

import operator
import re
import time
from datetime import UTC, datetime, timedelta
from typing import SupportsIndex

TimestampLike = datetime | str | SupportsIndex
FORMS = "2026-11-21T08:00:00Z, 2026-11-21, yesterday 14:00, -1h30m, @1795248000 (seconds), or milliseconds"

_SPAN = re.compile(r"-((?:\d+[wdhms])+)", re.ASCII)
_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}
_DAY = re.compile(r"(today|yesterday)(?:\s+(\d{1,2}:\d{2}(?::\d{2})?))?", re.ASCII)
_SECONDS = re.compile(r"@(\d+(?:\.\d+)?)", re.ASCII)
_MILLISECONDS = re.compile(r"(\d+)(ms)?", re.ASCII)
_LIKE_SECONDS = range(10**9, 10**11)  # as seconds these begin in 2001, and as milliseconds they end in 1973
_LIKE_MILLISECONDS = range(10**12, 8 * 10**12)  # 2001 to 2223; the largest number of 64 bits stands for no bound


def milliseconds(moment: TimestampLike, now: int | None = None) -> int:
    """Return milliseconds since the epoch.

    Parameters
    ----------
    moment : datetime, str or int
        Text is ISO 8601, a date alone too; ``now``, ``today`` or ``yesterday``, with a time of day if wanted; a span
        before now such as ``-90s`` or ``-1d12h``; ``@`` and seconds; or milliseconds. Without a zone it is UTC, as a
        datetime without one is. An integer is milliseconds. A number that looks like seconds, microseconds or
        nanoseconds is refused, unless it ends in ``ms``.
    now : int, optional
        The time that spans and days are counted from, by default that of the clock.

    Raises
    ------
    ValueError
        When a text is no time, or a number looks like another unit.
    TypeError
        When it is of another type.

    Examples
    --------
    >>> milliseconds("2026-11-21T08:00:00Z") == milliseconds("2026-11-21 09:00+01:00") == 1795248000000
    True
    >>> milliseconds("yesterday 14:00", now=1795248000000) == milliseconds("2026-11-20T14:00:00Z")
    True
    >>> milliseconds("-1h30m", now=1795248000000) == milliseconds("2026-11-21T06:30:00Z")
    True
    >>> milliseconds(1795248000)
    Traceback (most recent call last):
    ValueError: timestamp 1795248000 looks like seconds of 2026-11-21T08:00:00Z: give 1795248000000, or '1795248000ms'
    """
    if isinstance(moment, str):
        return _of_text(moment.strip(), _clock() if now is None else now)
    if isinstance(moment, datetime):
        return _of_datetime(moment)
    try:
        number = operator.index(moment)
    except TypeError:
        expected = f"a datetime, text such as {FORMS}"
        raise TypeError(f"timestamp {moment!r} is not {expected}") from None
    return _checked(number)


def text_of(moment: int) -> str:
    """Return milliseconds as ISO 8601 text in UTC.

    Examples
    --------
    >>> text_of(1795248000500)
    '2026-11-21T08:00:00.500Z'
    """
    try:
        at = datetime.fromtimestamp(moment // 1000, UTC) + timedelta(milliseconds=moment % 1000)
    except (ValueError, OverflowError, OSError):
        return str(moment)
    return at.isoformat(timespec="milliseconds" if moment % 1000 else "seconds").replace("+00:00", "Z")


def _clock() -> int:
    return time.time_ns() // 1_000_000


def _of_text(text: str, now: int) -> int:
    if (found := _SPAN.fullmatch(text)) is not None:
        return now - sum(int(one[:-1]) * _UNITS[one[-1]] for one in re.findall(r"\d+[wdhms]", found[1]))
    if (found := _SECONDS.fullmatch(text)) is not None:
        return round(float(found[1]) * 1000)
    if (found := _MILLISECONDS.fullmatch(text)) is not None:
        return int(found[1]) if found[2] else _checked(int(found[1]))
    if text.lower() == "now":
        return now
    day = _DAY.fullmatch(text.lower())
    try:
        if day is None:
            return _of_datetime(datetime.fromisoformat(text))
        date = now // _UNITS["d"] * _UNITS["d"] - (day[1] == "yesterday") * _UNITS["d"]
        of_day = day[2] or "00:00"
        return date + _of_datetime(datetime.fromisoformat(f"1970-01-01 {'0' * (of_day[1] == ':')}{of_day}"))
    except ValueError:
        raise ValueError(f"timestamp {text!r} is not a time such as {FORMS}") from None


def _of_datetime(moment: datetime) -> int:
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _checked(number: int) -> int:
    for unit, finer in (("nanoseconds", 1_000_000), ("microseconds", 1000)):
        if number // finer in _LIKE_MILLISECONDS:
            raise ValueError(
                f"timestamp {number} looks like {unit} of {text_of(number // finer)}: give {number // finer}, or"
                f" '{number}ms'"
            )
    if number in _LIKE_SECONDS:
        raise ValueError(
            f"timestamp {number} looks like seconds of {text_of(number * 1000)}: give {number}000, or '{number}ms'"
        )
    return number
