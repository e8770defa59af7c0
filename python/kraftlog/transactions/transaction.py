"""``Transaction``: what a producer wrote in one transaction, over all its partitions.

A partition knows its own part: batches of a producer up to a marker. Parts of one transaction are found by the epoch
of their markers where that epoch is new for each transaction: transaction version 2 (KIP-890) raises it at each end,
and so does the coordinator of any version when it fences a producer. Where epochs stay, or one ends several stretches
of data in one partition, the records of ``__transaction_state`` say which partitions a transaction has and when it was
decided. Without them each part stands alone. Where transaction.version was lowered, the last epoch that was raised is
also that of the transactions after it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kraftlog.topics import TopicPartition

OPEN, COMMITTED, ABORTED, TORN, MISSING = "open", "committed", "aborted", "torn", "missing"
MARKER_EPOCH, TRANSACTION_STATE, PARTITION = "marker_epoch", "transaction_state", "partition"
CLIENT, TIMEOUT, NEWER_PRODUCER, ADMIN = "client", "timeout", "newer producer", "admin"
NONE = -1
LAST_EPOCH = 2**15 - 1
RAISES_EPOCHS = 2  # the transaction version since which each end of a transaction raises the epoch
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
_DECISIONS = {
    PREPARE_COMMIT: COMMITTED,
    PREPARE_ABORT: ABORTED,
    COMPLETE_COMMIT: COMMITTED,
    COMPLETE_ABORT: ABORTED,
}
_MARKERS = {COMMITTED: "COMMIT", ABORTED: "ABORT"}
_MAX = 2**63 - 1
CLOCKS_DIFFER_MS = 10_000
"""By how much the clocks of brokers may differ: the times of markers are those of the partitions' leaders."""
MOST_CLOCKS = 8  # transactions, and markers, whose times are compared where clocks differ


class ProducerIdAndEpoch(NamedTuple):
    """A transaction, as the table ``transactions`` names it.

    Attributes
    ----------
    producer_id : int
    producer_epoch : int
        Of its markers, or of those that it will have.

    Examples
    --------
    >>> from kraftlog.transactions.transaction import ProducerIdAndEpoch
    >>> print(ProducerIdAndEpoch.parse("7:1"))
    7:1
    """

    producer_id: int
    producer_epoch: int

    @classmethod
    def parse(cls, text: str) -> ProducerIdAndEpoch:
        """Read ``PID:EPOCH``.

        Raises
        ------
        ValueError
        """
        parts = text.split(":")
        if len(parts) != 2 or not all(part.isascii() and part.isdecimal() for part in parts):
            raise ValueError(f"transaction {text!r} is not PID:EPOCH, such as 7:1")
        return cls(int(parts[0]), int(parts[1]))

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.producer_epoch}"


class Part(NamedTuple):
    """What one partition has of a transaction.

    Attributes
    ----------
    of : TopicPartition
    producer_id : int
    data_epoch, marker_epoch : int
        -1 without data, or without a marker.
    state : str or None
        committed, aborted or open; ``missing`` where a marker has to be and is not; None where nothing is known.
    first_offset, last_offset, marker_offset : int
        -1 where there is none.
    records_count : int
    start_timestamp, marker_timestamp : int
        Of the first record, and of the marker, in milliseconds.
    """

    of: TopicPartition
    producer_id: int
    data_epoch: int
    marker_epoch: int
    state: str | None
    first_offset: int = NONE
    last_offset: int = NONE
    marker_offset: int = NONE
    records_count: int = 0
    start_timestamp: int = NONE
    marker_timestamp: int = NONE

    @property
    def has_ended(self) -> bool:
        """Whether it has a marker."""
        return self.marker_epoch != NONE


class StateRecord(NamedTuple):
    """A record of ``__transaction_state``; ``status`` is None in a tombstone, ``timestamp`` that of the record."""

    transactional_id: str
    status: int | None
    producer_id: int = NONE
    previous_producer_id: int = NONE
    producer_epoch: int = NONE
    version: int = 0
    partitions: frozenset[TopicPartition] = frozenset()
    last_update: int = NONE
    start: int = NONE
    timeout_ms: int = 0
    timestamp: int = NONE


@dataclass(slots=True, eq=False)
class CoordinatorTransaction:
    """A transaction as its coordinator recorded it.

    Attributes
    ----------
    epoch : int
        That its markers have, or will have.
    data_epoch : int or None
        That its batches have; None where the record that says so was compacted away.
    partitions : frozenset of TopicPartition or None
        None where only the last record is left, which does not list them.
    decision : str or None
        committed or aborted; None as long as it is under way.
    decided_at, completed_at : int
        In milliseconds: when it was first decided, and when all markers had been written.
    goes_on : bool
        Whether the same producer began its next transaction without being initialized again.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    data_epoch: int | None
    version: int
    partitions: frozenset[TopicPartition] | None
    start: int
    timeout_ms: int
    decision: str | None = None
    decided_at: int = NONE
    completed_at: int = NONE
    goes_on: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all markers had been written."""
        return self.completed_at != NONE

    @property
    def raises_epoch(self) -> bool:
        """Whether its markers have an epoch that no other transaction has."""
        return self.version >= RAISES_EPOCHS or (self.data_epoch is not None and self.epoch > self.data_epoch)

    def may_have(self, of: TopicPartition) -> bool:
        """Whether a partition can be one of the transaction."""
        return self.partitions is None or of in self.partitions

    def may_end(self, part: Part) -> bool:
        """Whether a marker can be its own: its epoch is that of the data, or the coordinator raised it."""
        if self.data_epoch is None or part.data_epoch == NONE:
            return True
        return (self.data_epoch < self.epoch) == (part.data_epoch != part.marker_epoch)


class CoordinatorLog:
    """Folds the records of ``__transaction_state`` into transactions.

    Attributes
    ----------
    transactions : list of CoordinatorTransaction
        In the order in which they begin in the log.
    """

    def __init__(self) -> None:
        self.transactions: list[CoordinatorTransaction] = []
        self._last: dict[str, CoordinatorTransaction] = {}

    def add(self, record: StateRecord) -> None:
        """Take the next record of a partition."""
        last = self._last.get(record.transactional_id)
        if record.status == ONGOING:
            if last is None or last.decision is not None or not _is_of(record, last):
                if last is not None and last.decision is not None:
                    last.goes_on = (last.producer_id, last.epoch) == (record.producer_id, record.producer_epoch)
                last = self._begin(record)
                last.data_epoch = record.producer_epoch
                last.epoch = record.producer_epoch + (record.version >= RAISES_EPOCHS)
            last.partitions = record.partitions
        elif record.status in (PREPARE_COMMIT, PREPARE_ABORT):
            if last is None or last.is_complete or not _is_of(record, last):
                last = self._begin(record)
            # a decision that was not acknowledged in time is written again, as an abort after the timeout
            last.decided_at = record.last_update if last.decision is None else last.decided_at
            last.partitions, last.epoch, last.version = record.partitions, record.producer_epoch, record.version
            last.decision = _DECISIONS[record.status]
        elif record.status in (COMPLETE_COMMIT, COMPLETE_ABORT):
            decision = _DECISIONS[record.status]
            if last is None or last.is_complete or last.decision != decision or last.start != record.start:
                last = self._begin(record)
                last.partitions, last.decision, last.decided_at = None, decision, record.last_update
                if record.producer_epoch == 0 and record.previous_producer_id not in (NONE, record.producer_id):
                    last.producer_id, last.epoch = record.previous_producer_id, LAST_EPOCH  # its epochs were exhausted
            last.completed_at = record.timestamp
        else:
            self._last.pop(record.transactional_id, None)

    def _begin(self, record: StateRecord) -> CoordinatorTransaction:
        begun = CoordinatorTransaction(
            record.transactional_id,
            record.producer_id,
            record.producer_epoch,
            None,
            record.version,
            record.partitions,
            record.start,
            record.timeout_ms,
        )
        self.transactions.append(begun)
        self._last[record.transactional_id] = begun
        return begun


def _is_of(record: StateRecord, last: CoordinatorTransaction) -> bool:
    return (record.producer_id, record.start) == (last.producer_id, last.start)


@dataclass(slots=True)
class Transaction:
    """A transaction over all partitions that are known of it.

    Attributes
    ----------
    producer_epoch : int
        Of its markers; of one that is open, the epoch that they will have.
    parts : list of Part
        What each partition has of it.
    known : CoordinatorTransaction or None
        What its coordinator recorded.
    identified_by : str
        How its parts were joined: by ``marker_epoch``, by ``transaction_state``, or not at all: ``partition``.
    """

    producer_id: int
    producer_epoch: int
    identified_by: str
    parts: list[Part] = field(default_factory=list)
    known: CoordinatorTransaction | None = None

    @property
    def transactional_id(self) -> str | None:
        """As the coordinator has it."""
        return None if self.known is None else self.known.transactional_id

    @property
    def state(self) -> str:
        """Return committed, aborted, open, or torn: partitions contradict each other, or their coordinator."""
        if self.contradiction() is not None:
            return TORN
        if any(part.state == OPEN for part in self.parts):
            return OPEN
        return self.decision or OPEN

    @property
    def decision(self) -> str | None:
        """Return committed or aborted, as the coordinator says, or else the markers; None while it is not decided."""
        if self.known is not None and self.known.decision is not None:
            return self.known.decision
        return next((part.state for part in self.parts if part.has_ended), None)

    @property
    def decided_at(self) -> int:
        """When it was decided, in milliseconds; of what has no other record, when the first marker was written."""
        if self.known is not None and self.known.decision is not None:
            return self.known.decided_at
        return min((part.marker_timestamp for part in self.parts if part.has_ended), default=NONE)

    @property
    def ended_by(self) -> str | None:
        """Return client, timeout, newer producer or admin; None where records do not tell."""
        if self.decision != ABORTED:
            return CLIENT if self.decision == COMMITTED else None
        data = [part.data_epoch for part in self.parts if part.data_epoch != NONE]
        markers = {part.marker_epoch for part in self.parts if part.has_ended}
        if self.known is None or self.known.decision is None:
            # only WriteTxnMarkers of an administrator keeps the epoch under transaction version 2
            keeps_epoch = self.identified_by == MARKER_EPOCH and data and markers == {max(data)}
            return ADMIN if keeps_epoch else None
        if self.known.goes_on and self.known.raises_epoch:
            return CLIENT
        epoch = self.known.data_epoch if self.known.data_epoch is not None else max(data, default=None)
        raised = None if epoch is None else self.known.epoch - epoch
        if self.known.version < RAISES_EPOCHS and raised == 0:
            return CLIENT
        if self.known.version < RAISES_EPOCHS and raised is None:
            return None
        if 0 <= self.known.start < self.decided_at - self.known.timeout_ms:
            return TIMEOUT
        # with version 2 a client raises the epoch by one, as fencing does; Kafka 4.0.0 fences by two (KAFKA-19367)
        is_fenced = raised is not None and raised > (self.known.version >= RAISES_EPOCHS)
        return NEWER_PRODUCER if is_fenced else None

    def contradiction(self) -> tuple[Part, str] | None:
        """Return the first part that is not as the others or the coordinator say, and what is wrong."""
        expected, says = self.known.decision if self.known is not None else None, "its coordinator decided"
        first = next((part for part in self.parts if part.has_ended), None)
        if expected is None and first is not None:
            expected, says = first.state, f"{first.of} has at offset {first.marker_offset}"
        for part in self.parts:
            if part.has_ended and part.state != expected:
                actual = f"found {_MARKERS[part.state or '']} at offset {part.marker_offset}"
            elif part.state == MISSING:
                actual, says = "found no marker", "its coordinator completed"
            else:
                continue
            return part, f"expected {_MARKERS[expected or '']}, as {says}; {actual}"
        return None


Holds = Callable[[TopicPartition, CoordinatorTransaction], bool]
"""Whether the log of a partition is given from before a transaction to behind its markers, without gaps."""


def joined(
    producer_id: int,
    parts: Sequence[Part],
    of_coordinator: Sequence[CoordinatorTransaction],
    partitions: Iterable[TopicPartition],
    holds: Holds,
) -> list[Transaction]:
    """Join the parts of one producer id.

    Parameters
    ----------
    producer_id : int
    parts : sequence of Part
        Of each partition in the order of its log.
    of_coordinator : sequence of CoordinatorTransaction
        In the order of their log.
    partitions : iterable of TopicPartition
        The partitions whose logs are there.
    holds : callable

    Returns
    -------
    list of Transaction
        By epoch; those of one epoch in the order of their markers, open ones last.
    """
    join = _Join(producer_id, parts, of_coordinator)
    there = frozenset(partitions)
    for transaction in join.transactions:
        transaction.parts = [_without_marker(part, transaction.known, holds) for part in transaction.parts]
        transaction.parts += _absent(transaction, there, join, holds)
        transaction.parts.sort(key=lambda part: part.of)
    return sorted(join.transactions, key=_order)


def _order(transaction: Transaction) -> tuple[int, bool, int]:
    decided_at = transaction.decided_at
    return transaction.producer_epoch, decided_at == NONE, decided_at


def _without_marker(part: Part, of_coordinator: CoordinatorTransaction | None, holds: Holds) -> Part:
    """Return a part; it is not open, but lacks its marker, where the log goes on behind the time of its markers."""
    if (
        part.state == OPEN
        and of_coordinator is not None
        and of_coordinator.is_complete
        and holds(part.of, of_coordinator)
    ):
        return part._replace(state=MISSING)
    return part


def _absent(
    transaction: Transaction, partitions: frozenset[TopicPartition], join: _Join, holds: Holds
) -> Iterator[Part]:
    """Return the partitions that the coordinator lists and that have nothing of the transaction.

    An aborted transaction has no effect there, with or without a marker; a restore writes markers only after records.
    """
    of_coordinator = transaction.known
    if of_coordinator is None:
        return
    for of in sorted((of_coordinator.partitions or frozenset()) - {part.of for part in transaction.parts}):
        if of not in partitions:
            state = None
        elif not of_coordinator.is_complete:
            state = OPEN
        else:
            is_lost = of_coordinator.decision == COMMITTED and holds(of, of_coordinator)
            state = MISSING if is_lost and not join.may_be_left(of, of_coordinator) else None
        yield Part(of, transaction.producer_id, NONE, NONE, state)


class _Join:
    """The parts of one producer id as they are joined."""

    def __init__(
        self, producer_id: int, parts: Sequence[Part], of_coordinator: Sequence[CoordinatorTransaction]
    ) -> None:
        self._producer_id = producer_id
        self._by_epoch: dict[int, Transaction] = {}
        self._by_state: list[Transaction] = []
        self._alone: list[Transaction] = []
        self._marker_epochs: dict[int, int] = {}  # by the epoch of the data
        self._waiting: dict[int, dict[TopicPartition, list[Part]]] = defaultdict(lambda: defaultdict(list))
        self._unpaired: set[tuple[int, TopicPartition]] = set()
        self._raised_epochs = {part.data_epoch for part in parts if _is_raised(part) and part.state == COMMITTED}
        self._raises_from = min((*self._raised_epochs, *_epochs_of_version_2(of_coordinator)), default=None)
        self._repeated = _epochs_that_repeat(parts, _is_raised)
        self._unraised_epochs = _epochs_that_repeat(parts, _keeps_epoch)
        self._unraised_epochs |= {part.marker_epoch for part in parts if _keeps_epoch(part) and part.state == COMMITTED}
        rest = [part for part in parts if not self._take_raised(part)]
        sequenced = [one for one in of_coordinator if not self._take_known(one)]
        self._unraised_epochs |= {one.epoch for one in sequenced if not one.raises_epoch}
        self._shared_epochs = self._repeated | self._unraised_epochs
        self._shared_epochs |= {part.marker_epoch for part in parts if _keeps_epoch(part)}
        rest = self._take_sequenced(of_coordinator, rest)
        for part in rest:
            self._take_other(part)

    @property
    def transactions(self) -> list[Transaction]:
        """Those that have a part, or that a coordinator lists partitions of."""
        every = (*self._by_epoch.values(), *self._by_state, *self._alone)
        return [one for one in every if one.parts or (one.known is not None and one.known.partitions)]

    def may_be_left(self, of: TopicPartition, of_coordinator: CoordinatorTransaction) -> bool:
        """Whether a partition has a marker, in no transaction, that may be that of one by clocks that differ.

        Where they do, each marker of a producer that is busy may seem to be of a neighbour of its transaction, so that
        the first or the last one seems to have none.
        """
        return (of_coordinator.epoch, of) in self._unpaired

    def _of_epoch(self, epoch: int) -> Transaction:
        return self._by_epoch.setdefault(epoch, Transaction(self._producer_id, epoch, MARKER_EPOCH))

    def _take_raised(self, part: Part) -> bool:
        """Take a part whose marker has a higher epoch than its data: no other transaction has such markers."""
        if not _is_raised(part) or part.marker_epoch in self._repeated:
            return False
        self._of_epoch(part.marker_epoch).parts.append(part)
        self._marker_epochs.setdefault(part.data_epoch, part.marker_epoch)
        return True

    def _take_known(self, one: CoordinatorTransaction) -> bool:
        """Take a transaction of the coordinator whose epoch says which markers are its own."""
        is_fence = one.data_epoch is None and one.decision == ABORTED and self._has_raised(one)
        if not (one.raises_epoch or is_fence) or one.epoch in self._repeated:
            return False
        transaction = self._of_epoch(one.epoch)
        if transaction.known is not None:
            return False
        transaction.known = one
        if one.data_epoch is not None:
            self._marker_epochs.setdefault(one.data_epoch, one.epoch)
        return True

    def _has_raised(self, one: CoordinatorTransaction) -> bool:
        """Whether it has markers that raised the epoch; those of an earlier transaction are older."""
        raised = self._by_epoch.get(one.epoch)
        return raised is not None and any(part.marker_timestamp >= one.start for part in raised.parts)

    def _take_sequenced(self, of_coordinator: Sequence[CoordinatorTransaction], parts: list[Part]) -> list[Part]:
        """Join parts by the records of the coordinator, from the last one back; return those that are left.

        Epochs do not tell, as several transactions have the same: those of version 1, and before them the one of
        version 2 that raised the epoch. A marker is written between the decision of its transaction and the record that
        all markers are written. Logs are aligned from their ends since the beginning of each may have been deleted. The
        marker has the time of another broker than the records.
        """
        rest = []
        for part in parts:
            epoch = part.marker_epoch
            is_own = epoch in self._by_epoch and epoch not in self._shared_epochs
            is_marker = part.has_ended and part.data_epoch == NONE
            if epoch in self._repeated or _keeps_epoch(part) or (is_marker and not is_own):
                self._waiting[epoch][part.of].append(part)
            else:
                rest.append(part)
        those: dict[int, list[tuple[Transaction, int]]] = defaultdict(list)
        following: CoordinatorTransaction | None = None
        for one in reversed(of_coordinator):
            transaction = self._by_epoch.get(one.epoch)
            if transaction is None or transaction.known is not one:
                transaction = Transaction(self._producer_id, one.epoch, TRANSACTION_STATE, known=one)
                self._by_state.append(transaction)
            those[one.epoch].append((transaction, _latest_marker(one, following)))
            following = one
        for epoch, stacks in self._waiting.items():
            for of, stack in stacks.items():
                may_have = (one for one in those[epoch] if _known_of(one[0]).may_have(of))
                pairing = _pairing([one for one in may_have if not _states(one[0], of)], stack)
                for transaction, part in pairing.pairs:
                    transaction.parts.append(part)
                rest += pairing.left
                del stack[pairing.earlier :]
                if pairing.left or (stack and stack[-1].marker_timestamp + CLOCKS_DIFFER_MS > _begin_of(those[epoch])):
                    self._unpaired.add((epoch, of))
        return [*(part for stacks in self._waiting.values() for stack in stacks.values() for part in stack), *rest]

    def _take_other(self, part: Part) -> None:
        """Take a part that is open, or whose marker alone does not tell."""
        # first the coordinator's word: it ends a client of version 1 that is gone as version 2 does, and the next
        # transaction of the same producer is of version 1 again
        transaction = self._sequenced_with(part) if part.state == OPEN else None
        if transaction is None:
            transaction = self._of_epochs(part)
        if transaction is None:
            shown = part.marker_epoch if part.has_ended else part.data_epoch
            transaction = Transaction(self._producer_id, shown, PARTITION)
            self._alone.append(transaction)
        if not (part.data_epoch == NONE and _states(transaction, part.of) == {part.state}):
            transaction.parts.append(part)  # else it is a marker that a coordinator wrote again after it had moved

    def _of_epochs(self, part: Part) -> Transaction | None:
        """Return the transaction that a part is of as epochs tell; None where they do not."""
        since, epoch = self._raises_from, part.marker_epoch
        if part.data_epoch == NONE:
            return self._of_marker(part)
        following = self._marker_epochs.get(part.data_epoch)
        of_coordinator = None if following is None else self._of_epoch(following).known
        if part.has_ended:
            # a marker may be of a transaction of version 1, before those of version 2 or after them
            if of_coordinator is None:
                is_administrators = since is not None and epoch > max((since, *self._unraised_epochs))
            else:
                is_administrators = part.marker_timestamp >= of_coordinator.start
            if epoch != part.data_epoch or not is_administrators:
                return None
        if of_coordinator is None and (since is None or part.data_epoch < since):
            return None  # it may be of an earlier transaction of a producer that was fenced
        transaction = self._of_epoch(part.data_epoch + 1 if following is None else following)
        is_free = not _states(transaction, part.of) and (of_coordinator is None or of_coordinator.may_have(part.of))
        return transaction if is_free else None

    def _of_marker(self, part: Part) -> Transaction | None:
        """Return the transaction that a marker without data is of as epochs tell; None where they do not."""
        since, epoch = self._raises_from, part.marker_epoch
        is_raised = since is not None and epoch > since
        if epoch in self._shared_epochs or (epoch not in self._by_epoch and not is_raised):
            return None
        transaction = self._of_epoch(epoch)
        of_coordinator = transaction.known
        if of_coordinator is None:
            # a partition has one marker of a transaction, or the same again: another ended what is gone
            is_own = _states(transaction, part.of) <= {part.state}
            # one that says the opposite may be of version 1, unless the next transaction is of version 2
            is_own &= transaction.decision in (None, part.state) or epoch in self._raised_epochs
        else:
            is_own = of_coordinator.may_have(part.of)
        return transaction if is_own else None

    def _sequenced_with(self, part: Part) -> Transaction | None:
        """Return the last transaction of the coordinator that an open part can be of."""
        for transaction in self._by_state:  # from the last one back
            of_coordinator = transaction.known
            if (
                of_coordinator is None
                or of_coordinator.epoch != part.data_epoch
                or not of_coordinator.may_have(part.of)
            ):
                continue
            is_later = of_coordinator.is_complete and (
                part.start_timestamp > of_coordinator.completed_at or bool(self._waiting[part.data_epoch][part.of])
            )
            is_free = of_coordinator.partitions is not None and not is_later and not _states(transaction, part.of)
            return transaction if is_free else None
        return None


def _epochs_of_version_2(of_coordinator: Sequence[CoordinatorTransaction]) -> Iterator[int]:
    """Return the epochs of data that the coordinator raised, or will raise."""
    for one in of_coordinator:
        if one.version >= RAISES_EPOCHS:
            yield one.epoch - 1 if one.data_epoch is None else one.data_epoch


def _is_raised(part: Part) -> bool:
    return NONE < part.data_epoch < part.marker_epoch


def _keeps_epoch(part: Part) -> bool:
    return NONE < part.data_epoch == part.marker_epoch


def _epochs_that_repeat(parts: Iterable[Part], of_kind: Callable[[Part], bool]) -> set[int]:
    """Return the epochs of markers that end several stretches of data in one partition, so of several transactions."""
    counts = Counter((part.of, part.marker_epoch) for part in parts if of_kind(part))
    return {epoch for (_, epoch), count in counts.items() if count > 1}


class _Pairing(NamedTuple):
    """Which markers of a partition are of which transactions.

    Attributes
    ----------
    pairs : list of (Transaction, Part)
    left : list of Part
        Markers that come behind the time of a transaction, and before those of the next one.
    earlier : int
        How many markers come before all transactions.
    """

    pairs: list[tuple[Transaction, Part]]
    left: list[Part]
    earlier: int

    @property
    def contradictions(self) -> int:
        """How many markers say the opposite of what was decided."""
        return sum(_known_of(one).decision not in (None, part.state) for one, part in self.pairs)


def _pairing(those: list[tuple[Transaction, int]], stack: Sequence[Part]) -> _Pairing:
    """Return which markers of a partition are of which transactions, from the last ones back.

    Where the clock of the coordinator's broker does not explain them, that of the partition's leader is taken to differ
    from it, by as much as makes several markers agree with what was decided, and none disagree.
    """
    pairing = _paired(those, stack, 0)
    listed = [one for one in those if _known_of(one[0]).partitions is not None]
    if not stack or not (pairing.contradictions or 2 * len(pairing.pairs) < min(len(listed), len(stack))):
        return pairing
    decided = [_known_of(one).decided_at for one, _ in listed[:MOST_CLOCKS] if _known_of(one).decision is not None]
    differ = {part.marker_timestamp - at for part in stack[-MOST_CLOCKS:] for at in decided}
    # a marker is written within some milliseconds of the decision
    each = [_paired(those, stack, ms) for ms in sorted(differ, key=abs) if abs(ms) <= CLOCKS_DIFFER_MS]
    agree = [one for one in each if not one.contradictions and len(one.pairs) >= max(2, len(pairing.pairs))]
    return max(agree, key=lambda one: len(one.pairs), default=pairing)


def _paired(those: list[tuple[Transaction, int]], stack: Sequence[Part], ahead_ms: int) -> _Pairing:
    """Return the pairs where the clock of the partition's leader is ahead of the coordinator's."""
    pairs, unpaired, at = list[tuple[Transaction, Part]](), list[Part](), len(stack)
    for transaction, latest in those:
        one = _known_of(transaction)
        earliest = (one.start if one.decision is None else one.decided_at) + ahead_ms
        while at and stack[at - 1].marker_timestamp > latest + ahead_ms:
            at -= 1
            unpaired.append(stack[at])
        # the partition may go on where the coordinator's log ends: the first marker is that of the transaction
        while not one.is_complete and at > 1 and stack[at - 2].marker_timestamp >= earliest:
            at -= 1
            unpaired.append(stack[at])
        while at > 1 and stack[at - 2].marker_timestamp >= earliest and _is_again(stack[at - 1], stack[at - 2]):
            at -= 1
        if at and stack[at - 1].marker_timestamp >= earliest and one.may_end(stack[at - 1]):
            at -= 1
            pairs.append((transaction, stack[at]))
    return _Pairing(pairs, unpaired, at)


def _is_again(marker: Part, before: Part) -> bool:
    """Whether a marker of the same transaction is that of the part before it, which a coordinator wrote again."""
    return marker.data_epoch == NONE and marker.state == before.state


def _begin_of(those: Sequence[tuple[Transaction, int]]) -> int:
    """Return when the first of some transactions was decided, or began; they are given from the last one back."""
    first = _known_of(those[-1][0]) if those else None
    return _MAX if first is None else first.start if first.decision is None else first.decided_at


def _known_of(transaction: Transaction) -> CoordinatorTransaction:
    assert transaction.known is not None
    return transaction.known


def _latest_marker(of_coordinator: CoordinatorTransaction, following: CoordinatorTransaction | None) -> int:
    """Return the time behind which a marker is not of a transaction."""
    if of_coordinator.is_complete:
        return of_coordinator.completed_at
    return _MAX if following is None else following.start


def _states(transaction: Transaction, of: TopicPartition) -> set[str | None]:
    return {part.state for part in transaction.parts if part.of == of}
