"""What a broker does without being asked: it aborts late transactions, and removes and compacts segments."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kraftlog.log_store.store import LogStore

_TRANSACTIONS_S = 1.0
_RETENTION_EVERY = 300  # log.retention.check.interval.ms, in the unit above

_log = logging.getLogger("kraftlog.server")


async def upkeep(store: LogStore) -> None:
    """Keep a store until it is cancelled."""
    rounds = 0
    while True:
        await asyncio.sleep(_TRANSACTIONS_S)
        rounds += 1
        await _run(store.parts.transactions.abort_timed_out)
        if rounds % _RETENTION_EVERY == 0:
            await _run(store.apply_retention)
            await _run(store.clean)


async def _run(step: Callable[[], object]) -> None:
    try:
        await asyncio.to_thread(step)
    except Exception:  # the next rounds must not be lost
        _log.exception("the upkeep of the store has failed; the next round tries again")
