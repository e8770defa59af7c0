"""Interrupts, such as by Ctrl-C, that Python would forget."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_SOON_SECONDS = 0.01


@contextmanager
def lost_interrupts_repeated() -> Iterator[None]:
    """Raise KeyboardInterrupt once more during a ``with`` block when it came where Python ignores exceptions.

    In a destructor it would be a line on standard error, and a command that follows a log would go on.
    """
    before = sys.unraisablehook

    def hook(ignored: UnraisableHookArgs) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _SOON_SECONDS)  # not here, where it would be ignored, too
        else:
            before(ignored)

    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = hook
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = before
        signal.signal(signal.SIGALRM, handler)
