"""A plain-Python twin of producers, partitions and their coordinator, which knows what belongs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from kraftlog.topics import TopicPartition
from kraftlog.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Part,
    StateRecord,
)

PARTITIONS = [TopicPartition("t", number) for number in range(3)]
TIMEOUT_MS = 1000
Step = tuple[int, frozenset[int], str]
"""Producer, the partitions that it writes to, and how its transaction ends; "restart" is an abort, and a new client."""
VERSION_CHANGES = st.dictionaries(st.integers(0, 7), st.sampled_from([0, 2]), max_size=2)
"""The transaction version of both producers from a step on."""

STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.frozensets(st.integers(0, len(PARTITIONS) - 1), min_size=1),
        st.sampled_from(["commit", "commit", "abort", "restart", "timeout", "fence"]),
    ),
    min_size=1,
    max_size=8,
)


@dataclass
class TrueTransaction:
    """One that was really there: what each of its partitions has, and how it ended."""

    transactional_id: str
    producer_id: int
    marker_epoch: int
    ended_by: str
    state: str
    version: int
    parts: dict[TopicPartition, Part] = field(default_factory=dict)


@dataclass
class _Producer:
    number: int
    version: int
    epoch: int = 0

    @property
    def name(self) -> str:
        return f"tx-{self.number}"


class History:
    """What partitions and the coordinator have after some transactions.

    Parameters
    ----------
    steps : list of Step
    versions : (int, int)
        The transaction version of each producer.
    version_changes : mapping of int to int, optional
        By step.
    """

    def __init__(
        self, steps: list[Step], versions: tuple[int, int], version_changes: Mapping[int, int] | None = None
    ) -> None:
        self.now = 1_000_000
        self.logs: dict[TopicPartition, list[Part]] = {of: [] for of in PARTITIONS}
        self.ends = dict.fromkeys(PARTITIONS, 0)
        self.records: list[StateRecord] = []
        self.truth: list[TrueTransaction] = []
        self.producers = [_Producer(number, version) for number, version in enumerate(versions)]
        for producer in self.producers:
            self._record(producer, EMPTY)
        for at, (number, partitions, end) in enumerate(steps):
            for producer in self.producers:
                producer.version = (version_changes or {}).get(at, producer.version)
            self._run(self.producers[number], sorted(PARTITIONS[one] for one in partitions), end)

    def _tick(self, milliseconds: int = 1) -> int:
        self.now += milliseconds
        return self.now

    def _record(
        self,
        producer: _Producer,
        status: int,
        *,
        start: int = -1,
        of: Sequence[TopicPartition] = (),
        last_update: int | None = None,
    ) -> None:
        record = StateRecord(
            producer.name,
            status,
            producer.number,
            producer.number,
            producer.epoch,
            producer.version,
            frozenset(of),
            self.now if last_update is None else last_update,
            start,
            TIMEOUT_MS,
            self._tick(),
        )
        self.records.append(record)

    def _offset(self, of: TopicPartition, count: int = 1) -> int:
        first = self.ends[of]
        self.ends[of] += count
        return first

    def _run(self, producer: _Producer, partitions: list[TopicPartition], end: str) -> None:
        start, data_epoch = self._tick(), producer.epoch
        firsts = {}
        for number, of in enumerate(partitions):
            self._record(producer, ONGOING, start=start, of=partitions[: number + 1])
            firsts[of] = self._offset(of, 2), self._tick()
        self._tick(TIMEOUT_MS + 1 if end == "timeout" else 1)
        is_commit, is_fence = end == "commit", end in ("timeout", "fence")
        if producer.version >= 2 or is_fence:
            producer.epoch += 1
        self._record(producer, PREPARE_COMMIT if is_commit else PREPARE_ABORT, start=start, of=partitions)
        completes_at = self._tick()  # Kafka takes this time before it sends the markers
        state = "committed" if is_commit else "aborted"
        ended_by = {"timeout": "timeout", "fence": "newer producer"}.get(end, "client")
        true = TrueTransaction(producer.name, producer.number, producer.epoch, ended_by, state, producer.version)
        for of in partitions:
            first, began = firsts[of]
            marker = self._offset(of), self._tick()
            part = Part(
                of, producer.number, data_epoch, producer.epoch, state, first, first + 1, marker[0], 2, began, marker[1]
            )
            true.parts[of] = part
            self.logs[of].append(part)
        status = COMPLETE_COMMIT if is_commit else COMPLETE_ABORT
        self._record(producer, status, start=start, last_update=completes_at)
        self.truth.append(true)
        if is_fence or end == "restart":
            producer.epoch += 1
            self._record(producer, EMPTY)

    def compacted(self, until: int) -> list[StateRecord]:
        """Return the records of the coordinator of which those before a place were compacted."""
        last = {record.transactional_id: number for number, record in enumerate(self.records[:until])}
        return [record for number, record in enumerate(self.records) if number >= until or number in last.values()]


def changed(part: Part, **values: object) -> Part:
    """Return a part with other values."""
    return part._replace(**values)


def without_data(part: Part) -> Part:
    """Return a part of which the cleaner left the marker alone."""
    return changed(part, data_epoch=-1, first_offset=-1, last_offset=-1, records_count=0, start_timestamp=-1)


def without_marker(part: Part) -> Part:
    """Return a part whose log ends before the marker."""
    return changed(part, state="open", marker_epoch=-1, marker_offset=-1, marker_timestamp=-1)
