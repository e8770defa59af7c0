"""Partitions as transactional producers and their coordinator write them, made by kraftlog batch by batch."""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import islice

from jvm import Line
from records import made, table

import kraftlog

# Not so old that Kafka forgets the producers, and old enough for a transaction to hang.
START = time.time_ns() // 1_000_000 - 3_600_000
MOST_RECORDS = 3_000
PLAIN = -1  # what stands for a producer id where there is none


class ProducerLog:
    """A partition that grows by a batch of data or a marker at a time.

    With ``raises_epoch`` each marker raises its producer's epoch, as since transaction.version 2. ``more`` is added to
    producer ids, which no two logs may have in common: a coordinator gives each producer one of its own.
    """

    def __init__(self, topic: str, *, raises_epoch: bool, more: int) -> None:
        self.lines: list[Line] = []
        self.segments = {0: b""}
        self.next_offset = 0
        self._raise, self._more = int(raises_epoch), more
        self._epochs: dict[int, int] = defaultdict(int)
        self._sequences: dict[int, int] = defaultdict(int)
        self._made = iter(made(topic, 0, MOST_RECORDS))

    def data(self, producer_id: int, count: int = 3, *, transactional: bool = True, compression: str = "none") -> None:
        """Append a batch of a producer."""
        offsets = range(self.next_offset, self.next_offset + count)
        records = zip(islice(self._made, count), offsets, strict=True)
        lines = [line | {"offset": offset, "timestamp": START + offset} for line, offset in records]
        producer = {
            "producer_id": producer_id + self._more,
            "producer_epoch": self._epochs[producer_id],
            "base_sequence": self._sequences[producer_id],
        }
        self._append(
            kraftlog.encode(
                table(lines),
                compression=compression,
                base_offset=self.next_offset,
                partition_leader_epoch=0,
                is_transactional=transactional,
                **({} if producer_id == PLAIN else producer),
            ).to_pybytes(),
            count,
        )
        self.lines += lines
        self._sequences[producer_id] += count

    def plain(self) -> None:
        """Append a batch of no producer."""
        self.data(PLAIN, transactional=False)

    def marker(self, control_type: str, producer_id: int) -> None:
        """Append the end of a producer's transaction."""
        self._epochs[producer_id] += self._raise
        if self._raise:
            self._sequences[producer_id] = 0
        marker = kraftlog.encode_marker(
            control_type,
            producer_id=producer_id + self._more,
            producer_epoch=self._epochs[producer_id],
            coordinator_epoch=3,
            base_offset=self.next_offset,
            partition_leader_epoch=0,
            timestamp_ms=START + self.next_offset,
        )
        self._append(marker.to_pybytes(), 1)

    def roll(self) -> None:
        """Go on in a new segment."""
        self.segments[self.next_offset] = b""

    def _append(self, batch: bytes, count: int) -> None:
        self.segments[max(self.segments)] += batch
        self.next_offset += count
