"""What the coordinators of a log that is only read know: committed offsets, transactional ids and producers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.log_store.errors import UnknownTopicOrPartitionError
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.transaction_state import NAMES, NONE, TransactionState
from kraftlog.read.log_pass import Pass
from kraftlog.server.served_log import ServedLog, ServedPartition
from kraftlog.tables.log import Log
from kraftlog.tables.producer_tables import producer_states
from kraftlog.times import milliseconds
from kraftlog.topics import TopicPartition
from kraftlog.transactions.producer_state import ProducerState

_COMMITTED = "committed"
_OFFSETS = ["group", "topic", "partition", "offset", "leader_epoch", "metadata", "state"]
_STATES = [
    *("transactional_id", "producer_id", "producer_epoch", "timeout_ms", "status", "partitions"),
    *("start_timestamp_ms", "last_update_timestamp_ms", "previous_producer_id", "next_producer_id"),
]
_NEVER_NONE = ("transactional_id", "status", "partitions")


def committed_offsets(
    log: Log, served: ServedLog, faults: list[Fault]
) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
    """Return the committed offsets of the groups of a log.

    The end of a partition that is served takes the place of an offset after it, which a consumer could not fetch.

    Parameters
    ----------
    log : Log
    served : ServedLog
        The same log.
    faults : list of Fault
        Receives what cannot be read of ``__consumer_offsets``.
    """
    found: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
    for row in log.offsets(_OFFSETS, strict=False, faults=faults).to_pylist():
        if row["state"] != _COMMITTED or row["topic"] is None:
            continue
        of = TopicPartition(row["topic"], row["partition"])
        partition = served.partition(of)
        offset, leader_epoch = row["offset"], NONE if row["leader_epoch"] is None else row["leader_epoch"]
        end_offset = None if partition is None else partition.known_end_offset
        if end_offset is not None and offset > end_offset:
            offset, leader_epoch = end_offset, NONE
        found.setdefault(row["group"], {})[of] = OffsetAndMetadata(offset, row["metadata"] or "", leader_epoch)
    return found


class LoggedTransactions:
    """The transactional ids and the producers of a log that is only read.

    Parameters
    ----------
    log : Log
    served : ServedLog
        The same log.
    now : int, optional
        The time of which the log is, in milliseconds; by default that of the clock.

    Attributes
    ----------
    faults : list of Fault
        What could not be read so far.
    """

    def __init__(self, log: Log, served: ServedLog, now: int | None = None) -> None:
        self._log = log
        self._served = served
        self._now = now
        self.faults: list[Fault] = []

    @property
    def now(self) -> int:
        """The time to which ages of transactions are counted, in milliseconds."""
        return milliseconds("now") if self._now is None else self._now

    @cached_property
    def transactional_ids(self) -> Sequence[TransactionState]:
        """The state of each transactional id."""
        rows = self._log.transactional_ids(_STATES, strict=False, faults=self.faults).to_pylist()
        return [_state(row) for row in rows if row["status"] in NAMES]  # coordinators write no others

    def producers(self, of: TopicPartition) -> Sequence[ProducerState]:
        """Return the producers of a partition.

        Raises
        ------
        UnknownTopicOrPartitionError
        """
        partition: ServedPartition | None = self._served.partition(of)
        if partition is None:
            raise UnknownTopicOrPartitionError(f"{of}: the log has no such partition")
        return producer_states(partition.segments, Pass(ReadOptions(strict=False), self.faults))


def _state(row: dict[str, Any]) -> TransactionState:
    known: dict[str, Any] = {
        name: NONE if value is None and name not in _NEVER_NONE else value for name, value in row.items()
    }
    partitions: list[dict[str, Any]] = known.pop("partitions") or []
    return TransactionState(
        status=NAMES.index(known.pop("status")),
        partitions=frozenset((one["topic"], number) for one in partitions for number in one["partitions"]),
        start_timestamp=known.pop("start_timestamp_ms"),
        last_update_timestamp=known.pop("last_update_timestamp_ms"),
        **known,
    )
