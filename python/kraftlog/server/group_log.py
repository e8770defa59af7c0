"""Records of groups on their way to the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.committed_offsets import CommittedOffsets
from kraftlog.server.outcome import Outcome

Records: TypeAlias = dict[bytes, bytes | None]
"""Values by key."""

_log = logging.getLogger("kraftlog.server")


class GroupLog:
    """Writes records of groups, those of a group in the order of its changes; its methods run in one event loop.

    A group changes in memory at once; a client gets an answer that depends on the change when it is written. A thread
    writes all that waits in one round, so that no answer waits for more than the round under way and the next one,
    however many groups change.

    Parameters
    ----------
    storage : CommittedOffsets
    """

    def __init__(self, storage: CommittedOffsets) -> None:
        self._storage = storage
        self._waiting: dict[str, Records] = {}
        self._under_way: dict[str, Records] = {}
        self._lock = asyncio.Lock()  # of the round under way
        self._round: asyncio.Task[Mapping[str, int]] | None = None
        self._next: asyncio.Task[Mapping[str, int]] | None = None

    def put(self, group_id: str, records: Iterable[KeyAndValue]) -> None:
        """Take records of a group, to be written soon, all at once; of each key only the last one counts."""
        waiting = self._waiting.setdefault(group_id, {})
        for key, value in records:
            waiting.pop(key, None)
            waiting[key] = value
        self._next_round()

    async def written(self, group_id: str) -> int:
        """Wait until all records of a group are written; return the error of the protocol.

        Records that could not be written are tried again with the next ones.
        """
        if group_id in self._waiting:
            codes = await asyncio.shield(self._next_round())  # other clients wait for it, too
        elif group_id in self._under_way and self._round is not None:
            codes = await asyncio.shield(self._round)
        else:
            return ErrorCode.NONE
        return codes[group_id]

    async def close(self) -> None:
        """Write what waits."""
        async with self._lock:
            pass  # what fails in the round under way waits again
        if self._waiting:
            await self._next_round()

    def _next_round(self) -> asyncio.Task[Mapping[str, int]]:
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._write())
        return self._next

    async def _write(self) -> Mapping[str, int]:
        """Write what waits when the round before has ended; return the error of each group."""
        async with self._lock:
            self._round, self._next = self._next, None
            self._under_way, self._waiting = self._waiting, {}
            codes: Mapping[str, int] = {}
            try:
                codes = await asyncio.to_thread(self._codes, self._under_way)
            finally:
                for group_id, records in self._under_way.items():
                    if codes.get(group_id) != ErrorCode.NONE:
                        later = self._waiting.get(group_id, {})
                        earlier = {key: value for key, value in records.items() if key not in later}
                        self._waiting[group_id] = earlier | later  # a record may follow only what it was put behind
                self._under_way = {}
            return codes

    def _codes(self, changes: Mapping[str, Records]) -> Mapping[str, int]:
        return {group_id: self._code(group_id, records) for group_id, records in changes.items()}

    def _code(self, group_id: str, records: Records) -> int:
        rows = [KeyAndValue(*one) for one in records.items()]
        try:
            code = Outcome.of(lambda: self._storage.write_records(group_id, rows)).coordinator_code
        except Exception:  # the other groups must not be lost
            _log.exception("group %r: a change is not written; the next one tries again", group_id)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if code != ErrorCode.NONE:
            _log.warning("group %r: a change is not written: error %d; the next one tries again", group_id, code)
        return code
