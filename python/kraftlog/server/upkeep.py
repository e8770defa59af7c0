"""What a broker does without being asked: late transactions, old segments, unused groups."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from kraftlog.log_store.store import LogStore
from kraftlog.server.groups import Groups

_TRANSACTIONS_S = 1.0
_RETENTION_EVERY = 300  # log.retention.check.interval.ms, in the unit above
_GROUPS_EVERY = 600  # offsets.retention.check.interval.ms, in the same

_log = logging.getLogger("kraftlog.server")


async def upkeep(store: LogStore, groups: Groups) -> None:
    """Keep a store, and the groups of its server, until it is cancelled."""
    rounds = 0
    while True:
        await asyncio.sleep(_TRANSACTIONS_S)
        rounds += 1
        with _errors_logged():
            await asyncio.to_thread(store.parts.transactions.abort_timed_out)
        if rounds % _RETENTION_EVERY == 0:
            for step in (store.apply_retention, store.clean):
                with _errors_logged():
                    await asyncio.to_thread(step)
        if rounds % _GROUPS_EVERY == 0:
            with _errors_logged():
                groups.remove_unused()


@contextmanager
def _errors_logged() -> Iterator[None]:
    try:
        yield
    except Exception:  # the next rounds must not be lost
        _log.exception("the upkeep of the store has failed; the next round tries again")
