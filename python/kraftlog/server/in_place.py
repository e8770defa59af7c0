"""Answers that are made in the event loop if nothing in them waits, otherwise in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from kraftlog.disk.waiting import WouldWait, without_waiting

Value = TypeVar("Value")

MOST_BYTES = 1 << 21  # that are read from the page cache while other connections wait: half a millisecond


async def in_place(run: Callable[[], Value]) -> Value:
    """Run a part of a request here; if it would wait, run it again in a thread.

    Parameters
    ----------
    run : callable
        Changes nothing before it raises WouldWait.
    """
    try:
        with without_waiting(MOST_BYTES):
            return run()
    except WouldWait:
        pass  # its traceback keeps the files of the first try open
    return await asyncio.to_thread(run)
