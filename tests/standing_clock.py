"""A clock that stands still until it is set."""

from __future__ import annotations


class StandingClock:
    """Returns ``now``, in milliseconds."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now
