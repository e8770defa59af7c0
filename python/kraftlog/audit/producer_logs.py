"""``ProducerLogs``: what one pass over the headers of all partitions says of producers and their transactions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from kraftlog.codec.headers import NO_TIMESTAMP, Headers, last_offsets
from kraftlog.layout.segment import Segment
from kraftlog.read.held_offsets import lacks_records
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.tables.transactions import TransactionsOfLog
from kraftlog.topics import COORDINATOR_TOPICS, TopicPartition
from kraftlog.transactions.producer import ABORTED as ABORT
from kraftlog.transactions.producer import COMMITTED as COMMIT
from kraftlog.transactions.sequences import OddBatch, SequenceCheck
from kraftlog.transactions.transaction import NONE, OPEN, CoordinatorTransaction, Part, Transaction

_MAX = 2**63 - 1
MOST_TWINS = 1000
"""Pairs of like batches that are compared, of one partition."""


class Place(NamedTuple):
    """Where a batch is."""

    segment: Segment
    position: int
    base_offset: int
    size_in_bytes: int
    producer_id: int


class LateBegin(NamedTuple):
    """The first batch of a producer in a log that has all batches before it, with a sequence other than 0."""

    base_offset: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


class FirstOfEpoch(NamedTuple):
    """The first batch of a leader epoch that holds data; ``producer_id`` is -1 outside of transactions."""

    epoch: int
    base_offset: int
    last_offset: int
    producer_id: int


class ProducerLog:
    """What the headers of one partition say.

    Attributes
    ----------
    of : TopicPartition
    segments : list of Segment
    is_whole : bool
        Whether it has all offsets from 0 on.
    is_sound : bool
        Whether all its batches could be read.
    broker_time : int
        The largest time that a broker set, in milliseconds; -1 without one. Clients may set any time in other batches.
    odd : list of (Segment, OddBatch)
        Batches that a broker would not have accepted.
    impossible : list of (int, str)
        Base offsets of batches whose header no broker writes, and why.
    plain_producers : dict of int to int
        Base offset of the first batch of each producer id outside of transactions.
    late_begins : list of LateBegin
    largest : (int, int)
        The size in bytes of the largest batch with data, and its base offset; (0, -1) without one.
    first_cleaned : int or None
        Base offset of the first batch of which a cleaner has removed records.
    epochs : list of FirstOfEpoch
        In order.
    twins : list of (Place, Place)
        Batches of which only checksum, epoch, sequence and offset may differ, the earlier one first.
    """

    def __init__(self, of: TopicPartition, segments: list[Segment]) -> None:
        self.of, self.segments = of, segments
        self._next_offset = 0
        self.is_whole = self.is_sound = True
        self.broker_time = NO_TIMESTAMP
        self.odd: list[tuple[Segment, OddBatch]] = []
        self.impossible: list[tuple[int, str]] = []
        self.plain_producers: dict[int, int] = {}
        self.late_begins: list[LateBegin] = []
        self.largest = 0, NONE
        self.first_cleaned: int | None = None
        self.epochs: list[FirstOfEpoch] = []
        self.twins: list[tuple[Place, Place]] = []
        self._is_of_users = of.topic not in COORDINATOR_TOPICS
        self._sequences = SequenceCheck(compare_sequences=self._is_of_users)
        self._producers = np.empty(0, np.int64)  # that have written
        self._before: tuple[Segment, Headers] | None = None

    @property
    def end_offset(self) -> int:
        """The end of the log; the last segment may be empty, and retention may have deleted all others."""
        return max(self._next_offset, self.segments[-1].base_offset or 0)

    def add(self, segment: Segment, headers: Headers) -> None:
        """Add the next headers of a segment, with verified crc."""
        sound = headers["crc_ok"] != 0
        if not sound.all():
            self.is_sound, headers = False, headers[sound]
        if not len(headers):
            return
        self.odd += [(segment, odd) for odd in self._sequences.add(headers)]
        ends = last_offsets(headers) + 1
        begins = np.append(self._next_offset, ends[:-1])
        is_whole = self.is_whole & np.logical_and.accumulate(headers["base_offset"] == begins)
        self._next_offset, self.is_whole = int(ends[-1]), bool(is_whole[-1])
        attributes = headers["attributes"]
        is_data = attributes & CONTROL_BIT == 0
        of_broker = (attributes & TIMESTAMP_TYPE_BIT != 0) | (headers["control_type"] >= 0) | (not self._is_of_users)
        self.broker_time = max(self.broker_time, int(headers["max_timestamp"][of_broker].max(initial=NO_TIMESTAMP)))
        self._add_impossible(headers)
        self._add_epochs(headers[is_data])
        self._add_batches(headers[is_data])
        if self._is_of_users:
            self._add_producers(headers[is_data], is_whole[is_data])
            self._add_twins(segment, headers[is_data & (headers["max_timestamp"] != NO_TIMESTAMP)])

    def finish(self) -> None:
        """Drop what only further headers would need."""
        self._before = None
        self._sequences, self._producers = SequenceCheck(), self._producers[:0]

    def _add_impossible(self, headers: Headers) -> None:
        headers = headers[headers["magic"] >= 2]
        is_control, is_transactional = (headers["attributes"] & bit != 0 for bit in (CONTROL_BIT, TRANSACTIONAL_BIT))
        has_producer = headers["producer_id"] >= 0
        is_marker = (headers["control_type"] == ABORT) | (headers["control_type"] == COMMIT)
        epochs = headers["partition_leader_epoch"].astype(np.int64)
        before = np.maximum.accumulate(np.append(self.epochs[-1].epoch if self.epochs else NONE, epochs))[:-1]
        rules = {
            "it is transactional, without a producer id": is_transactional & ~has_producer,
            "it has a producer id without an epoch": has_producer & (headers["producer_epoch"] < 0),
            "it has a producer id without a sequence": has_producer & ~is_control & (headers["base_sequence"] < 0),
            "it is a control batch without a marker": is_control & ~is_marker & (headers["records_count"] > 0),
            "it is a marker that is not transactional": is_control & is_marker & ~is_transactional,
            "it is a marker with two times": (
                is_control
                & is_marker
                & (headers["attributes"] & DELETE_HORIZON_BIT == 0)
                & (headers["base_timestamp"] != headers["max_timestamp"])
            ),
            "it has more records than offsets": headers["records_count"] > headers["last_offset_delta"] + 1,
            # a log may begin with batches of a tool that have none; the checksum does not cover the field
            "an earlier batch has a greater partition_leader_epoch": epochs < before,
            "it is of a producer, and outside of transactions, in a topic that coordinators write": (
                has_producer & ~is_transactional & ~is_control & (not self._is_of_users)
            ),
        }
        for what, is_odd in rules.items():
            self.impossible += [(offset, what) for offset in headers["base_offset"][is_odd].tolist()]

    def _add_epochs(self, data: Headers) -> None:
        last = self.epochs[-1].epoch if self.epochs else NONE
        later = data[data["partition_leader_epoch"] > last]
        epochs, at = np.unique(later["partition_leader_epoch"], return_index=True)
        for epoch, first in zip(epochs.tolist(), later[at], strict=True):
            is_transactional = first["attributes"] & TRANSACTIONAL_BIT != 0
            offsets = int(first["base_offset"]), int(first["base_offset"] + first["last_offset_delta"])
            self.epochs.append(FirstOfEpoch(epoch, *offsets, int(first["producer_id"]) if is_transactional else NONE))

    def _add_batches(self, data: Headers) -> None:
        if len(data):
            at = int(np.argmax(data["batch_length"]))
            self.largest = max(
                self.largest, (int(data["batch_length"][at]) + LOG_OVERHEAD, int(data["base_offset"][at]))
            )
        if self.first_cleaned is None:
            cleaned = data["base_offset"][lacks_records(data)]
            self.first_cleaned = int(cleaned[0]) if len(cleaned) else None

    def _add_producers(self, data: Headers, is_whole: npt.NDArray[np.bool_]) -> None:
        of_producers = (data["magic"] >= 2) & (data["producer_id"] >= 0)
        data, is_whole = data[of_producers], is_whole[of_producers]
        plain = data[data["attributes"] & TRANSACTIONAL_BIT == 0]
        for producer_id, first in zip(*np.unique(plain["producer_id"], return_index=True), strict=True):
            self.plain_producers.setdefault(int(producer_id), int(plain["base_offset"][first]))
        producers, at = np.unique(data["producer_id"], return_index=True)
        is_new = ~np.isin(producers, self._producers)
        self._producers = np.union1d(self._producers, producers)
        first = at[is_new]
        late = first[is_whole[first] & (data["base_sequence"][first] > 0)]
        for row in data[np.sort(late)]:
            names = ("base_offset", "producer_id", "producer_epoch", "base_sequence")
            self.late_begins.append(LateBegin(*(int(row[name]) for name in names)))

    def _add_twins(self, segment: Segment, data: Headers) -> None:
        """Find batches that are like an earlier one, among these headers and those before them."""
        data = data[(data["magic"] >= 2) & (data["attributes"] & DELETE_HORIZON_BIT == 0)]
        before, self._before = self._before, (segment, data)
        both = data if before is None else np.concatenate((before[1], data))
        if len(self.twins) >= MOST_TWINS or len(both) < 2:
            return
        names = ("base_timestamp", "max_timestamp", "batch_length", "records_count", "attributes")
        order = np.lexsort([both[name] for name in names])  # stable: of like batches the earlier one is first
        rows = both[order]
        alike = np.logical_and.reduce([rows[name][1:] == rows[name][:-1] for name in names])
        # a producer that numbers its batches sends none of them again with another sequence in the same epoch
        alike &= (
            (rows["producer_id"][1:] < 0)
            | (rows["producer_id"][1:] != rows["producer_id"][:-1])
            | (rows["producer_epoch"][1:] != rows["producer_epoch"][:-1])
        )
        split = len(both) - len(data)
        pairs = np.flatnonzero(alike)
        pairs = pairs[order[pairs + 1] >= split]  # the others were found before
        pairs = pairs[np.argsort(order[pairs + 1])]
        for pair in pairs[: MOST_TWINS - len(self.twins)].tolist():
            places = []
            for at in (order[pair], order[pair + 1]):
                of = before[0] if before is not None and at < split else segment
                places.append(place_of(of, both[at]))
            self.twins.append((places[0], places[1]))


def place_of(segment: Segment, header: np.void) -> Place:
    """Return where a batch of a segment is."""
    size = int(header["batch_length"]) + LOG_OVERHEAD
    return Place(segment, int(header["position"]), int(header["base_offset"]), size, int(header["producer_id"]))


class PartsOfPartition:
    """The transactions of one partition, by offset.

    Parameters
    ----------
    parts : iterable of (Part, Transaction)

    Attributes
    ----------
    parts : list of (Part, Transaction)
        Those with records, by first offset.
    """

    def __init__(self, parts: Iterable[tuple[Part, Transaction]]) -> None:
        every = list(parts)
        self.parts = sorted((one for one in every if one[0].first_offset != NONE), key=lambda one: one[0].first_offset)
        self._firsts = [part.first_offset for part, _ in self.parts]
        self._starts = _running_max(part.start_timestamp for part, _ in self.parts)
        self._ends = _running_max(_MAX if part.state == OPEN else part.marker_timestamp for part, _ in self.parts)
        self._decisions = _running_max(_MAX if one.decided_at == NONE else one.decided_at for _, one in self.parts)
        self._markers = sorted((part.marker_offset, part.marker_timestamp) for part, _ in every if part.has_ended)
        self._marker_times = _running_max(timestamp for _, timestamp in self._markers)
        self._by_producer: dict[int, list[tuple[Part, Transaction]]] = defaultdict(list)
        for one in self.parts:
            self._by_producer[one[0].producer_id].append(one)

    def before(self, offset: int, timestamp: int) -> int:
        """Return how many transactions have a record before an offset, and began at or before a time."""
        return min(bisect_left(self._firsts, offset), bisect_right(self._starts, timestamp))

    def last_to_end(self, count: int) -> Part | None:
        """Return, of the first transactions, one that is open, or else the one that ended last."""
        return self.parts[bisect_left(self._ends, self._ends[count - 1])][0] if count else None

    def last_decision(self, count: int) -> int:
        """Return when the last of the first transactions was decided; the largest time if one is not."""
        return self._decisions[count - 1] if count else NONE

    def marker_time_before(self, offset: int) -> int:
        """Return the largest time of the markers before an offset; -1 without any."""
        count = bisect_left(self._markers, (offset, NONE))
        return self._marker_times[count - 1] if count else NO_TIMESTAMP

    def marker_time_after(self, offset: int) -> int | None:
        """Return the least time of the markers after an offset; None without any."""
        later = self._markers[bisect_left(self._markers, (offset, NONE)) :]
        return min((timestamp for _, timestamp in later), default=None)

    def holding(self, producer_id: int, offset: int) -> tuple[Part, Transaction] | None:
        """Return the transaction of a producer that has a record; None for one outside of transactions."""
        parts = self._by_producer.get(producer_id, [])
        at = bisect_right(parts, offset, key=lambda one: one[0].first_offset) - 1
        return parts[at] if at >= 0 and offset <= parts[at][0].last_offset else None


def _running_max(values: Iterable[int]) -> list[int]:
    return list(accumulate(values, max))


class ProducerLogs:
    """What the headers of all partitions say.

    Parameters
    ----------
    segments : iterable of Segment
        Of one replica of each partition.
    known : list of CoordinatorTransaction
    read : Pass

    Attributes
    ----------
    logs : dict of TopicPartition to ProducerLog
    transactions : list of Transaction
    """

    def __init__(self, segments: Iterable[Segment], known: list[CoordinatorTransaction], read: Pass) -> None:
        self.logs: dict[TopicPartition, ProducerLog] = {}
        found = TransactionsOfLog()
        for group in by_partition(segments):
            of = group[0].topic_partition
            if of is None or group[0].state or group[0].base_offset is None or is_metadata(group[0]):
                continue
            log = self.logs[of] = ProducerLog(of, group)
            faults = len(read.faults)
            found.read(group, read, also=log.add)
            log.finish()
            log.is_sound &= len(read.faults) == faults
            log.is_whole &= log.is_sound
        self.transactions = [one for some in found.transactions(known) for one in some]

    @cached_property
    def parts(self) -> dict[TopicPartition, PartsOfPartition]:
        """The transactions of each partition."""
        parts: dict[TopicPartition, list[tuple[Part, Transaction]]] = defaultdict(list)
        for one in self.transactions:
            for part in one.parts:
                parts[part.of].append((part, one))
        return {of: PartsOfPartition(some) for of, some in parts.items()}

    def odd_batches(self) -> Iterator[tuple[ProducerLog, Segment, OddBatch]]:
        """Return the batches that a broker would not have accepted."""
        for log in self.logs.values():
            for segment, odd in log.odd:
                yield log, segment, odd

    @cached_property
    def broker_time(self) -> int:
        """The largest time that a broker set in any partition."""
        return max((log.broker_time for log in self.logs.values()), default=NO_TIMESTAMP)
