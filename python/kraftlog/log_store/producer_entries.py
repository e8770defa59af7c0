"""The state of a partition's producers for appends: epochs, the last five batches, open transactions.

The rules are those of Kafka's ``ProducerStateManager`` for batches that clients send. The files beside the log are
written by ``kraftlog.write.producers``, which takes what is in the log as it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType

from kraftlog.log_store.errors import (
    InvalidProducerEpochError,
    InvalidTransactionError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kraftlog.transactions.last_batches import KEPT_BATCHES, AppendedBatch
from kraftlog.transactions.producer_state import NONE, SEQUENCES, ProducerState

_EXPIRED_AT_ONCE = 2  # producers checked per batch: more than one, so that idle ones go faster than new ones come


@dataclass(frozen=True, slots=True)
class Stamp:
    """The writer of a batch.

    Attributes
    ----------
    sequence : int
        Sequence of its first record; -1, which is not checked, for a producer that is not idempotent, and for a
        coordinator that writes for a producer.
    """

    producer_id: int = NONE
    producer_epoch: int = NONE
    sequence: int = NONE
    is_transactional: bool = False

    @property
    def base_sequence(self) -> int:
        """The sequence in the batch header: Kafka's group coordinator writes 0 for the offsets of a transaction."""
        return 0 if self.sequence == NONE != self.producer_id else self.sequence


@dataclass(slots=True)
class ProducerEntry:
    """A producer of a partition.

    Attributes
    ----------
    batches : deque of AppendedBatch
        The last batches of its epoch.
    transaction_start : int
        Offset of the first record of its open transaction; -1 without one.
    last_timestamp : int
        Time of its last write, in milliseconds.
    coordinator_epoch : int
        Epoch of the coordinator that wrote its last marker here; -1 without one.
    """

    producer_epoch: int
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=KEPT_BATCHES))
    transaction_start: int = NONE
    last_timestamp: int = NONE
    coordinator_epoch: int = NONE

    @property
    def is_in_transaction(self) -> bool:
        """Whether its transaction is open here."""
        return self.transaction_start != NONE

    def next_sequence(self, producer_epoch: int) -> int:
        """Return the expected sequence of the next batch of an epoch."""
        if producer_epoch != self.producer_epoch or not self.batches:
            return 0
        return (self.batches[-1].last_sequence + 1) % SEQUENCES

    def has_marker(self, producer_epoch: int, *, raises_epoch: bool) -> bool:
        """Whether a marker of an epoch was written; ``raises_epoch`` as ``Partition.append_marker`` has it."""
        if self.producer_epoch != producer_epoch:
            return self.producer_epoch > producer_epoch
        return raises_epoch or not self.is_in_transaction


class ProducerEntries:
    """The producers of a partition.

    Parameters
    ----------
    states : iterable of ProducerState
        Producers of the log.
    last_batches : mapping of (int, int) to sequence of AppendedBatch
        Their last batches, by producer id and epoch.
    """

    def __init__(
        self,
        states: Iterable[ProducerState] = (),
        last_batches: Mapping[tuple[int, int], Sequence[AppendedBatch]] = MappingProxyType({}),
    ) -> None:
        self._entries: dict[int, ProducerEntry] = {}  # least recent writer first
        self._open: dict[int, int] = {}  # first offsets of open transactions, in order
        for state in sorted(states, key=lambda each: each.last_timestamp):
            start = state.current_transaction_first_offset
            entry = ProducerEntry(
                state.producer_epoch,
                last_timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
            )
            if start is not None:
                entry.transaction_start = self._open[state.producer_id] = start
            entry.batches.extend(last_batches.get((state.producer_id, state.producer_epoch), ()))
            self._entries[state.producer_id] = entry
        self._open = dict(sorted(self._open.items(), key=lambda each: each[1]))

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, producer_id: int) -> ProducerEntry | None:
        """Return the entry of a producer."""
        return self._entries.get(producer_id)

    def keep(self, producer_id: int) -> None:
        """Drop all producers but one."""
        self._entries = {key: entry for key, entry in self._entries.items() if key == producer_id}
        self._open = {key: start for key, start in self._open.items() if key == producer_id}

    def open_transactions(self) -> dict[int, ProducerEntry]:
        """Return the producers whose transactions are open."""
        return {producer_id: self._entries[producer_id] for producer_id in self._open}

    def first_unstable_offset(self) -> int | None:
        """Return where the earliest open transaction begins; None when none is open."""
        return next(iter(self._open.values()), None)

    def expire(self, least_timestamp: int) -> None:
        """Drop producers that wrote nothing since a time, as Kafka does, except those with an open transaction."""
        for producer_id, entry in list(islice(self._entries.items(), _EXPIRED_AT_ONCE)):
            if entry.last_timestamp >= least_timestamp:
                return
            del self._entries[producer_id]
            if entry.is_in_transaction:
                self._entries[producer_id] = entry

    def check(self, stamp: Stamp, records_count: int, where: str) -> AppendedBatch | None:
        """Check a batch before it is written.

        Parameters
        ----------
        stamp : Stamp
        records_count : int
        where : str
            The partition, for messages.

        Returns
        -------
        AppendedBatch or None
            The same batch if it is already in the log and must not be written again.

        Raises
        ------
        InvalidProducerEpochError
            When the producer has a newer epoch in the partition.
        OutOfOrderSequenceError
            When the sequence does not follow the last one.
        InvalidTransactionError
            When a batch that is not transactional occurs in the producer's transaction.
        """
        entry = self._entries.get(stamp.producer_id)
        if entry is None:
            return None
        who = f"{where}: producer {stamp.producer_id}"
        if stamp.producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpochError(
                f"{who}: epoch {stamp.producer_epoch} is stale; current epoch is {entry.producer_epoch}"
            )
        if entry.is_in_transaction and not stamp.is_transactional:
            raise InvalidTransactionError(f"{who}: not a transactional batch, within a transaction")
        if stamp.sequence == NONE:
            return None
        if stamp.producer_epoch == entry.producer_epoch:
            last = (stamp.sequence + records_count - 1) % SEQUENCES
            for batch in entry.batches:
                if (batch.first_sequence, batch.last_sequence) == (stamp.sequence, last):
                    return batch
        expected = entry.next_sequence(stamp.producer_epoch)
        if stamp.sequence != expected:
            raise OutOfOrderSequenceError(f"{who}: expected sequence {expected}, found {stamp.sequence}")
        return None

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, where: str, *, raises_epoch: bool
    ) -> None:
        """Check a marker that someone other than the store's coordinator asks for, as ``ProducerAppendInfo`` does.

        Parameters
        ----------
        producer_id, producer_epoch, coordinator_epoch : int
        where : str
            The partition, for messages.
        raises_epoch : bool
            As in ``Partition.append_marker``.

        Raises
        ------
        InvalidProducerEpochError
            When the producer has a newer epoch in the partition, or the marker's epoch is that of its open transaction,
            which the marker should have raised.
        TransactionCoordinatorFencedError
            When a newer coordinator has written the producer's last marker.
        """
        entry = self._entries.get(producer_id)
        if entry is None:
            return
        who = f"{where}: producer {producer_id}"
        is_open = raises_epoch and entry.is_in_transaction
        if producer_epoch < entry.producer_epoch or (is_open and producer_epoch == entry.producer_epoch):
            raise InvalidProducerEpochError(
                f"{who}: a marker with epoch {producer_epoch} is stale; current epoch is {entry.producer_epoch}"
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise TransactionCoordinatorFencedError(
                f"{who}: coordinator epoch {coordinator_epoch} is stale; current epoch is {entry.coordinator_epoch}"
            )

    def add(self, stamp: Stamp, base_offset: int, last_offset: int, timestamp_ms: int) -> None:
        """Take a batch that was written."""
        if stamp.producer_id == NONE:
            return
        entry = self._entry(stamp.producer_id, stamp.producer_epoch, timestamp_ms)
        last = (stamp.base_sequence + last_offset - base_offset) % SEQUENCES
        entry.batches.append(AppendedBatch(stamp.base_sequence, last, base_offset, last_offset))
        if stamp.is_transactional and not entry.is_in_transaction:
            entry.transaction_start = self._open[stamp.producer_id] = base_offset

    def end(self, producer_id: int, producer_epoch: int, timestamp_ms: int, coordinator_epoch: int = 0) -> None:
        """Take a marker that was written."""
        entry = self._entry(producer_id, producer_epoch, timestamp_ms)
        entry.transaction_start, entry.coordinator_epoch = NONE, coordinator_epoch
        self._open.pop(producer_id, None)

    def _entry(self, producer_id: int, producer_epoch: int, timestamp_ms: int) -> ProducerEntry:
        entry = self._entries.pop(producer_id, None) or ProducerEntry(producer_epoch)
        self._entries[producer_id] = entry
        entry.last_timestamp = timestamp_ms
        if entry.producer_epoch != producer_epoch:
            entry.producer_epoch = producer_epoch
            entry.batches.clear()
        return entry
