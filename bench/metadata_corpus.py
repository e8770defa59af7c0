"""A seeded metadata log: topics created in transactions, and the changes of partitions that most of such a log are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import corpus
import kraftlog
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.writer import encode_messages

VERSION = 1  # in the name of every file; to be raised when the contents change
BATCH_BYTES, ONE_RECORD = 8 << 10, 0  # sizes of batches; controllers that have little to do write one record in each
ROWS_AT_ONCE = 1 << 18
BROKERS = 6
PARTITIONS = 20  # of each topic
RECORDS_PER_TOPIC = 200
WORDS = ("created", "shipped", "north", "south", "gold", "silver", "mobile", "desktop", "search", "checkout")
CONFIGS = {
    "retention.ms": "604800000",
    "cleanup.policy": "compact,delete",
    "segment.bytes": "1073741824",
    "min.insync.replicas": "2",
    "max.message.bytes": "1048588",
}
OF_TOPIC = 1 + 1 + len(CONFIGS) + PARTITIONS + 1  # records: begin, topic, configs, partitions, end
NO_LEADER_CHANGE = -2

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MetadataLog:
    """What a metadata log holds; a brokers' registration each, and the level of ``metadata.version``, stand first."""

    topics: int
    changes: int
    batch_bytes: int = BATCH_BYTES

    @classmethod
    def of_records(cls, records: int, batch_bytes: int = BATCH_BYTES) -> MetadataLog:
        """Return one of about so many records, a tenth of them PartitionRecords."""
        topics = records // RECORDS_PER_TOPIC
        return cls(topics, records - topics * OF_TOPIC - BROKERS - 1, batch_bytes)

    @property
    def records(self) -> int:
        """How many records there are."""
        return 1 + BROKERS + self.topics * OF_TOPIC + self.changes

    @property
    def partitions(self) -> int:
        """How many partitions there are in the end."""
        return self.topics * PARTITIONS


def path(log: MetadataLog) -> Path:
    """Return the folder of a metadata log; it is made if need be."""
    name = f"metadata-{log.topics}-{log.changes}-{log.batch_bytes}-{VERSION}"
    folder = corpus.CACHE / name / "__cluster_metadata-0"
    file = folder / f"{0:020d}.log"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part")
        with unfinished.open("wb") as out:
            out.writelines((_batches if log.batch_bytes else _singles)(log, _values(log)))
        unfinished.rename(file)
    return folder


def _batches(log: MetadataLog, values: pa.BinaryArray) -> Iterator[pa.Buffer]:
    encoder = kraftlog.Encoder(max_batch_bytes=log.batch_bytes, timestamp_ms=corpus.FIRST_TIMESTAMP)
    for first in range(0, len(values), ROWS_AT_ONCE):
        encoder.write(pa.record_batch({"value": values.slice(first, ROWS_AT_ONCE)}))
        yield encoder.take()
    yield encoder.finish()


def _singles(_: MetadataLog, values: pa.BinaryArray) -> Iterator[pa.Buffer]:
    rows = pa.record_batch({"value": values})
    for row in range(len(values)):
        yield kraftlog.encode(rows.slice(row, 1), base_offset=row, timestamp_ms=corpus.FIRST_TIMESTAMP)


def _values(log: MetadataLog) -> pa.BinaryArray:
    """Return the records in their order: of each type all are encoded at once, and then put in their places."""
    random = np.random.default_rng(corpus.SEED)
    topics, each = np.arange(log.topics), np.arange(PARTITIONS)
    created_at = np.sort(random.integers(0, max(log.changes, 1), log.topics))  # how many changes come before
    created_at[:1] = 0
    ids = random.integers(0, 256, (log.topics, 16), np.uint8)
    names = pa.array([f"orders-{WORDS[word]}-{topic}" for topic, word in enumerate(random.integers(0, 10, log.topics))])
    first = 1 + BROKERS + created_at + topics * OF_TOPIC  # where each topic's transaction begins
    places, pieces = [np.arange(1 + BROKERS)], [_head()]

    def put(where: Ints, kind: str, version: int, columns: dict[str, pa.Array]) -> None:
        places.append(where.ravel())
        pieces.append(_encoded(kind, version, columns))

    put(first, "BeginTransactionRecord", 0, {"name": pa.array(["Create topic(s)"] * log.topics)})
    put(first + 1, "TopicRecord", 0, {"name": names, "topic_id": _uuids(ids)})
    for at, (name, value) in enumerate(CONFIGS.items()):
        put(first + 2 + at, "ConfigRecord", 0, _config(names, name, value))
    before = 2 + len(CONFIGS)
    put(first[:, None] + before + each, "PartitionRecord", 1, _partitions(random, ids))
    places.append(first + before + PARTITIONS)
    pieces.append(pa.array([frame(24, 0) + b"\0"] * log.topics, pa.binary()))  # EndTransactionRecord has no fields
    made = np.searchsorted(created_at, np.arange(log.changes), "right")
    put(1 + BROKERS + made * OF_TOPIC + np.arange(log.changes), "PartitionChangeRecord", 0, _changes(random, ids, made))
    order = np.empty(log.records, np.int64)
    order[np.concatenate(places)] = np.arange(log.records)
    return pa.concat_arrays(pieces).take(pa.array(order))


def _encoded(kind: str, version: int, columns: dict[str, pa.Array]) -> pa.BinaryArray:
    definition = BUILT_IN.messages[kind]
    assert definition.api_key is not None
    return encode_messages(definition, version, pa.record_batch(columns), prefix=frame(definition.api_key, version))


def _head() -> pa.BinaryArray:
    level = {"name": pa.array(["metadata.version"]), "feature_level": pa.array([30], pa.int16())}
    brokers = np.arange(BROKERS)
    registered = {
        "broker_id": pa.array(brokers, pa.int32()),
        "incarnation_id": _uuids(_numbered(9, brokers)),
        "broker_epoch": pa.array(brokers + 10),
        "fenced": pa.array([False] * BROKERS),
        "log_dirs": _lists(np.arange(BROKERS + 1), _uuids(_numbered(5, brokers))),
    }
    return pa.concat_arrays([_encoded("FeatureLevelRecord", 0, level), _encoded("RegisterBrokerRecord", 3, registered)])


def _config(names: pa.Array, name: str, value: str) -> dict[str, pa.Array]:
    count = len(names)
    texts = {"resource_name": names, "name": pa.array([name] * count), "value": pa.array([value] * count)}
    return {"resource_type": pa.array(np.full(count, 2, np.int8)), **texts}


def _partitions(random: np.random.Generator, ids: npt.NDArray[np.uint8]) -> dict[str, pa.Array]:
    count = len(ids) * PARTITIONS
    leaders = random.integers(0, BROKERS, count)
    replicas = (leaders[:, None] + np.arange(3)) % BROKERS
    of_three = np.arange(0, 3 * count + 1, 3)
    brokers = _lists(of_three, pa.array(replicas.ravel(), pa.int32()))
    zeros = pa.array(np.zeros(count, np.int32))
    return {
        "partition_id": pa.array(np.tile(np.arange(PARTITIONS, dtype=np.int32), len(ids))),
        "topic_id": _uuids(np.repeat(ids, PARTITIONS, axis=0)),
        "replicas": brokers,
        "isr": brokers,
        "leader": pa.array(leaders, pa.int32()),
        "leader_epoch": zeros,
        "partition_epoch": zeros,
        "directories": _lists(of_three, _uuids(_numbered(5, replicas.ravel()))),
    }


def _changes(random: np.random.Generator, ids: npt.NDArray[np.uint8], made: Ints) -> dict[str, pa.Array]:
    """Half of them a new ISR of two, three tenths an ISR of the leader that changes with it, the rest a leader."""
    count = len(made)
    leaders = random.integers(0, BROKERS, count)
    kinds = random.integers(0, 10, count)
    lengths = np.select([kinds < 5, kinds < 8], [2, 1], 0)
    pairs = np.column_stack((leaders, (leaders + random.integers(1, BROKERS, count)) % BROKERS))
    in_isr = pairs[np.arange(2) < lengths[:, None]]
    isr = _lists(np.append(0, np.cumsum(lengths)), pa.array(in_isr, pa.int32()), mask=pa.array(lengths == 0))
    return {
        "partition_id": pa.array(random.integers(0, PARTITIONS, count), pa.int32()),
        "topic_id": _uuids(ids[(random.random(count) * made).astype(np.int64)]),
        "isr": isr,
        "leader": pa.array(np.where(kinds < 5, NO_LEADER_CHANGE, leaders), pa.int32()),
    }


def _numbered(high: int, low: Ints) -> npt.NDArray[np.uint8]:
    """Return uuids that are numbers: such as brokers and their directories have here."""
    return np.column_stack((np.full(len(low), high), low)).astype(">i8").view(np.uint8)


def _uuids(cells: npt.NDArray[np.uint8]) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(cells))
    return pa.Array.from_buffers(pa.binary(16), len(cells), [None, data])


def _lists(ends: Ints, items: pa.Array, mask: pa.Array | None = None) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, mask=mask)
