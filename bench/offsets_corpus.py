"""A seeded partition of ``__consumer_offsets``: commits of consumers, some in transactions, and a few tombstones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import corpus
import kraftlog
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import int16_prefix
from kraftlog.messages.writer import encode_messages

VERSION = 1  # in the name of every file; to be raised when the contents change
BATCH_BYTES = 8 << 10
GROUPS, TOPICS, PARTITIONS = 50, 10, 10
KEYS = GROUPS * TOPICS * PARTITIONS
LEAST_RECORDS = 20 * KEYS  # keys are drawn: so many hold every one of them
STRETCH = 1_000  # records: most of them plain, then a transaction of the others
IN_TRANSACTION = 100
STRETCHES_AT_ONCE = 100
ABORTED_EVERY = 10
TOMBSTONES_PER_THOUSAND = 50  # of the first tenth of the log: every key is committed again behind it
KEY_TYPE, OLD, NEW = 1, 3, 4  # the type of the keys; versions of the values: every third group has the new one


@dataclass(frozen=True)
class OffsetsLog:
    """So many commits; the markers are not among them."""

    records: int

    @classmethod
    def of_records(cls, records: int) -> OffsetsLog:
        """Return one of about so many, and of no fewer than hold every key."""
        return cls(max(records, LEAST_RECORDS) // STRETCH * STRETCH)


def path(log: OffsetsLog) -> Path:
    """Return the folder of the partition; it is made if need be."""
    folder = corpus.CACHE / f"offsets-{log.records}-{VERSION}" / "__consumer_offsets-0"
    file = folder / f"{0:020d}.log"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part")
        with unfinished.open("wb") as out:
            out.writelines(_batches(log))
        unfinished.rename(file)
    return folder


def _batches(log: OffsetsLog) -> Iterator[pa.Buffer]:
    random = np.random.default_rng(corpus.SEED)
    keys = _keys()
    stretches, offset = log.records // STRETCH, 0
    sequences = [0, 0, 0]
    for first in range(0, stretches, STRETCHES_AT_ONCE):
        count = min(STRETCHES_AT_ONCE, stretches - first) * STRETCH
        rows = _rows(random, keys, first * STRETCH, count, log.records)
        for number in range(first, min(first + STRETCHES_AT_ONCE, stretches)):
            stretch = rows.slice((number - first) * STRETCH, STRETCH)
            options = {"max_batch_bytes": BATCH_BYTES, "timestamp_ms": corpus.FIRST_TIMESTAMP + number}
            yield kraftlog.encode(stretch.slice(0, STRETCH - IN_TRANSACTION), base_offset=offset, **options)
            producer = {"producer_id": number % 3, "producer_epoch": 0}
            yield kraftlog.encode(
                stretch.slice(STRETCH - IN_TRANSACTION),
                base_offset=offset + STRETCH - IN_TRANSACTION,
                base_sequence=sequences[number % 3],
                is_transactional=True,
                **producer,
                **options,
            )
            sequences[number % 3] += IN_TRANSACTION
            kind = "ABORT" if number % ABORTED_EVERY == 0 else "COMMIT"
            yield kraftlog.encode_marker(kind, base_offset=offset + STRETCH, **producer)
            offset += STRETCH + 1


def _keys() -> pa.BinaryArray:
    numbers = np.arange(KEYS)
    rows = {
        "group": pa.array([f"group-{number:02d}" for number in numbers // (TOPICS * PARTITIONS)]),
        "topic": pa.array([f"orders-{number}" for number in numbers // PARTITIONS % TOPICS]),
        "partition": pa.array(numbers % PARTITIONS, pa.int32()),
    }
    definition = BUILT_IN.messages["OffsetCommitKey"]
    return encode_messages(definition, 0, pa.record_batch(rows), prefix=int16_prefix(KEY_TYPE))


def _rows(random: np.random.Generator, keys: pa.BinaryArray, first: int, count: int, records: int) -> pa.RecordBatch:
    chosen = random.integers(0, KEYS, count)
    is_new = chosen // (TOPICS * PARTITIONS) % 3 == 0
    topics = np.zeros((count, 16), np.uint8)
    topics[:, 15] = 1 + chosen // PARTITIONS % TOPICS
    committed = {
        "offset": pa.array(first + np.arange(count)),
        "leader_epoch": pa.array(random.integers(0, 6, count), pa.int32()),
        "metadata": pa.array([""] * count),
        "commit_timestamp": pa.array(corpus.FIRST_TIMESTAMP + first + np.arange(count)),
    }
    ids = pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(topics)])
    values = pa.concat_arrays([_values(OLD, committed, ~is_new), _values(NEW, committed | {"topic_id": ids}, is_new)])
    values = values.take(pa.array(np.argsort(np.argsort(is_new, kind="stable"), kind="stable")))
    is_early = first + np.arange(count) < records // 10
    is_tombstone = is_early & (random.integers(0, 1000, count) < TOMBSTONES_PER_THOUSAND)
    values = pc.if_else(pa.array(is_tombstone), pa.scalar(None, pa.binary()), values)
    return pa.record_batch({"key": keys.take(pa.array(chosen)), "value": values})


def _values(version: int, columns: dict[str, pa.Array], wanted: npt.NDArray[np.bool_]) -> pa.BinaryArray:
    definition = BUILT_IN.messages["OffsetCommitValue"]
    rows = np.flatnonzero(wanted)
    return encode_messages(definition, version, pa.record_batch(columns), prefix=int16_prefix(version), rows=rows)
