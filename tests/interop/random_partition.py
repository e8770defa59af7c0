"""Random partitions that Kafka's own ``UnifiedLog`` writes, and what a log goes through."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from jvm import Line
from partition_logs import PartitionLogs, cleaning, opening

import kraftlog

TWO_HOURS = 7_200_000
CODECS = ("none", "none", "none", "gzip", "snappy", "lz4", "zstd")


@dataclass
class Producer:
    """A producer of the partition; ``raises_epoch`` says that each marker does, as since transaction version 2."""

    producer_id: int
    raises_epoch: bool
    epoch: int = 0
    sequence: int = 0
    is_open: bool = False


class RandomBatches:
    """Batches for a log, one behind the other.

    Parameters
    ----------
    chance : random.Random
    now : int
        In milliseconds; records are older.
    """

    def __init__(self, chance: random.Random, now: int) -> None:
        self._random = chance
        self._time = now - TWO_HOURS
        self._producers = [
            Producer(chance.choice([0, 1, 70_000, 2**40]) + 7 * number, chance.random() < 0.5)
            for number in range(chance.randint(1, 5))
        ]
        self._keys = chance.choice([2, 8, 40])
        self._leader_epoch = chance.randrange(3)
        self._coordinator_epoch = chance.randrange(3)
        self._codecs = chance.choice([CODECS, ("none",), CODECS[3:]])
        self.times: list[int] = []

    def next(self, offset: int) -> bytes:
        """Return the batch that begins at an offset."""
        chance, one = self._random, self._random.choice(self._producers)
        if chance.random() < 0.03:
            self._leader_epoch += chance.randint(1, 3)
        kind = chance.random()
        if kind < 0.15:
            return self._data(offset, None, is_transactional=False)
        if kind < 0.25 and not one.is_open:
            return self._data(offset, one, is_transactional=False)
        if kind < 0.7:
            return self._data(offset, one, is_transactional=True)
        if one.is_open or chance.random() < 0.15:  # a coordinator ends those that have no batch here, too
            return self._marker(offset, one)
        return self._data(offset, one, is_transactional=True)

    def forget(self, known: list[list[int]]) -> None:
        """Go on behind a truncation, with what Kafka knows of the producers."""
        epochs = {row[0]: (row[1], row[2], row[6]) for row in known}
        for one in self._producers:
            epoch, sequence, begun = epochs.get(one.producer_id, (0, -1, -1))
            one.epoch, one.sequence, one.is_open = epoch, sequence + 1, begun >= 0

    def _data(self, offset: int, one: Producer | None, *, is_transactional: bool) -> bytes:
        chance, count = self._random, self._random.randint(1, 4)
        timestamps = [self._tick() for _ in range(count)]
        columns = {
            "key": pa.array([self._key() for _ in range(count)], pa.binary()),
            "value": pa.array(
                [None if chance.random() < 0.1 else b"v%d" % (offset + n) for n in range(count)], pa.binary()
            ),
            "timestamp_ms": pa.array(timestamps),
        }
        batch = kraftlog.encode(
            pa.table(columns),
            base_offset=offset,
            compression=chance.choice(self._codecs),
            partition_leader_epoch=self._leader_epoch,
            producer_id=-1 if one is None else one.producer_id,
            producer_epoch=-1 if one is None else one.epoch,
            base_sequence=-1 if one is None else one.sequence,
            is_transactional=is_transactional,
        )
        if one is not None:
            one.sequence += count
            one.is_open |= is_transactional
        return batch.to_pybytes()

    def _key(self) -> bytes | None:
        return None if self._random.random() < 0.03 else b"k%d" % self._random.randrange(self._keys)

    def _marker(self, offset: int, one: Producer) -> bytes:
        if self._random.random() < 0.1:
            self._coordinator_epoch += 1
        if one.raises_epoch or self._random.random() < 0.1:
            one.epoch, one.sequence = one.epoch + 1, 0
        one.is_open = False
        return kraftlog.encode_marker(
            self._random.choice(["COMMIT", "ABORT"]),
            producer_id=one.producer_id,
            producer_epoch=one.epoch,
            coordinator_epoch=self._coordinator_epoch,
            base_offset=offset,
            partition_leader_epoch=self._leader_epoch,
            timestamp_ms=self._tick(),
        ).to_pybytes()

    def _tick(self) -> int:
        self._time += self._random.choice([0, 1, 5, 7, 40, -3000])
        self.times.append(self._time)
        return self._time


class RandomPartition:
    """A partition in Kafka's hands.

    Parameters
    ----------
    kafka : PartitionLogs
    folder : Path
        Which is made.
    chance : random.Random
    now : int
    what : tuple of str
        What may happen to the log between batches.
    steps : int
        Batches and events.

    Attributes
    ----------
    done : list of str
        What happened.
    """

    def __init__(
        self, kafka: PartitionLogs, folder: Path, chance: random.Random, now: int, what: tuple[str, ...], steps: int
    ) -> None:
        folder.mkdir(parents=True)
        self.kafka, self.folder, self.now = kafka, folder, now
        self.config: Line = {"delete.retention.ms": chance.choice([0, 100_000])}
        self._random = chance
        self._batches = RandomBatches(chance, now)
        self._dirty = 0
        self.done: list[str] = []
        self.state: Any = None
        kafka.do(opening(folder, config=self.config))
        rolls, happens = chance.choice([0.05, 0.15, 0.3]), chance.choice([0.0, 0.02, 0.06])
        waiting: list[bytes] = []
        offset = 0
        for _ in range(steps):
            if chance.random() < rolls:
                self._append(waiting)
                kafka.do(self._step("roll"))
            if what and chance.random() < happens:
                self._append(waiting)
                self._happen(chance.choice(what))
                offset = self.look()["end"]
            batch = self._batches.next(offset)
            waiting.append(batch)
            offset += int.from_bytes(batch[23:27], "big") + 1
        self._append(waiting)
        self.look()

    def look(self) -> Any:
        """Return all that Kafka says of the log."""
        (self.state,) = self.kafka.do(self.state_step(self.folder))
        self.state["is_cleaned"] = "clean" in self.done
        return self.state

    def state_step(self, folder: Path) -> Line:
        """Return the step that answers all of that, with the offsets of some times."""
        times = self._random.sample(self._batches.times, min(6, len(self._batches.times)))
        around = [time + self._random.choice([-1, 0, 1]) for time in times]
        return {"do": "state", "folder": str(folder), "times": [-1, -2, -3, *around]}

    def _step(self, do: str, **more: object) -> Line:
        return {"do": do, "folder": str(self.folder), **more}

    def _append(self, waiting: list[bytes]) -> None:
        if waiting:
            self.kafka.do(*(self._step("append", batches=batch.hex()) for batch in waiting))
            waiting.clear()

    def _happen(self, kind: str) -> None:
        chance, state = self._random, self.look()
        between = chance.randint(state["start"], state["end"])
        self.done.append(kind)
        match kind:
            case "truncate":
                self.kafka.do(self._step("truncate", to=between))
                self._dirty = min(self._dirty, between)
                self._batches.forget(self.look()["producers"])
            case "start over":
                self.kafka.do(self._step("start over", to=state["end"] + chance.randrange(5)))
                self._batches.forget([])
                self._dirty = state["end"]
            case "delete records":
                self.kafka.do(self._step("delete records", to=between), self._step("delete segments"))
            case "flush" | "delete files":
                self.kafka.do(self._step(kind))
            case "clean":
                self.clean()
            case "restart":
                self.kafka.do(self._step("close"), self._opening(is_clean=True))
            case "crash":
                self.kafka.do(self._step("leave"), self._opening(is_clean=False))

    def clean(self) -> None:
        """Clean what can be cleaned."""
        state = self.state
        dirty = max(self._dirty, state["start"])
        if dirty < min(state["stable"], state["bases"][-1]):
            buffer = self._random.choice([1 << 16, 24 * 12])  # the smaller one takes 10 keys
            (self._dirty,) = self.kafka.do(cleaning(self.folder, self.now, dirty=dirty, buffer=buffer))

    def cleaning_step(self, folder: Path, dirty: int, end: int) -> Line:
        """Return the step that cleans a copy of the log."""
        return cleaning(folder, self.now, dirty=dirty, end=end)

    def _opening(self, *, is_clean: bool) -> Line:
        state = self.state
        point = state["end"] if is_clean else self._random.choice([0, state["recovery_point"]])
        return opening(self.folder, start=state["start"], recovery_point=point, is_clean=is_clean, config=self.config)


def rows(answer: list[list[Any]]) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """Return records of an answer as ``(offset, timestamp, key, value)``."""
    for offset, timestamp, key, value in answer:
        yield offset, timestamp, _bytes(key), _bytes(value)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
