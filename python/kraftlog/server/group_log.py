"""Records of groups on their way to the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.server.committed_offsets import CommittedOffsets
from kraftlog.server.outcome import Outcome

_log = logging.getLogger("kraftlog.server")


class GroupLog:
    """Writes records of groups, those of a group in the order of its changes; its methods run in one event loop.

    A group changes in memory at once; a client gets an answer that depends on the change when it is written.

    Parameters
    ----------
    storage : CommittedOffsets
    """

    def __init__(self, storage: CommittedOffsets) -> None:
        self._storage = storage
        self._waiting: dict[str, dict[bytes, bytes | None]] = {}
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, group_id: str, records: Iterable[KeyAndValue]) -> None:
        """Take records of a group, to be written soon, all at once; of each key only the last one counts."""
        waiting = self._waiting.setdefault(group_id, {})
        for key, value in records:
            waiting.pop(key, None)
            waiting[key] = value
        task = asyncio.get_running_loop().create_task(self._write(group_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def written(self, group_id: str) -> int:
        """Wait until all records of a group are written; return the error of the protocol.

        Records that could not be written are tried again with the next ones.
        """
        async with self._lock:
            records = self._waiting.pop(group_id, None)
            if not records:
                return 0
            rows = [KeyAndValue(*one) for one in records.items()]
            outcome = await asyncio.to_thread(Outcome.of, partial(self._storage.write_records, group_id, rows))
            if outcome.error is not None:
                self._waiting[group_id] = records | self._waiting.get(group_id, {})
            return outcome.code

    async def close(self) -> None:
        """Write what waits."""
        for group_id in list(self._waiting):
            await self._write(group_id)
        async with self._lock:
            pass  # the write under way is done

    async def _write(self, group_id: str) -> None:
        try:
            code = await self.written(group_id)
        except Exception:
            _log.exception("group %r: a change is not written", group_id)
        else:
            if code:
                _log.warning("group %r: a change is not written: error %d; the next one tries again", group_id, code)
