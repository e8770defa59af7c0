"""A rate limit in records or bytes per second."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

STEPS_A_SECOND = 10  # fractions of a second: that much may be sent at once
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kKMG]?)(i?)(B))?(?:/s)?")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3}
NO_LIMIT = float("inf")


class Pace:
    """Limits how many records may be sent at once, and when the next ones may.

    Parameters
    ----------
    rate : int, str or None
        Records per second, or bytes of keys and values with a unit: ``"10MB"``, ``"512KiB"``. None is unlimited.

    Examples
    --------
    >>> Pace("10MB").bytes_at_once, Pace(5000).records_at_once
    (1000000, 500)
    """

    def __init__(self, rate: int | str | None) -> None:
        self._records = self._bytes = NO_LIMIT
        self._free = 0.0
        if rate is None:
            return
        found = _RATE.fullmatch(str(rate).strip())
        amount = float(found[1]) if found else 0.0
        if found is None or amount <= 0:
            raise ValueError(f"rate {rate!r} is neither records per second, such as 5000, nor bytes, such as 10MB")
        if found[4]:
            self._bytes = amount * (1024 if found[3] else 1000) ** _POWERS[found[2]]
        else:
            self._records = amount

    @property
    def records_at_once(self) -> int:
        """Maximum records to send without a pause; at least one."""
        return 1 << 30 if self._records == NO_LIMIT else max(1, int(self._records / STEPS_A_SECOND))

    @property
    def bytes_at_once(self) -> int:
        """Maximum bytes to send without a pause; one record may be larger."""
        return 1 << 62 if self._bytes == NO_LIMIT else max(1, int(self._bytes / STEPS_A_SECOND))

    def wait(self, records: int, size_in_bytes: int, pause: Callable[[float], object]) -> None:
        """Wait until this much may be sent; call ``pause`` with the seconds to wait."""
        while (left := self._free - time.monotonic()) > 0:
            pause(min(left, 1 / STEPS_A_SECOND))
        seconds = max(records / self._records, size_in_bytes / self._bytes)
        self._free = max(self._free, time.monotonic()) + seconds
