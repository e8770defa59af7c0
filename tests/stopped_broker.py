"""Log directories as a broker leaves them that ran for some hours, and the evidence of an audit of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import pyarrow as pa

import kraftlog
from kraftlog.audit.evidence import Evidence
from kraftlog.layout.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, read_properties
from kraftlog.layout.discover import discover
from kraftlog.messages.api import encode_messages
from kraftlog.metadata.kafka_names import TOPIC_RESOURCE
from kraftlog.read.log_pass import Pass
from kraftlog.write.metadata_writer import MetadataLogWriter

HOUR_MS = 3_600_000
SEGMENT_RECORDS = 10
_VALUE = b"v" * 100  # two batches of ten are larger than a segment
SMALL_SEGMENTS = {"internal.segment.bytes": "2000"}
UNKNOWN_TO_STORE = {"min.cleanable.dirty.ratio", "remote.storage.enable", "min.insync.replicas"}
PARTITION = 0


class Broker:
    """A directory with topics of four segments, the last one active; its metadata log ends hours after the records.

    Parameters
    ----------
    path : Path
    topics : mapping of str to mapping
        Settings of each topic.
    hours : float
        How long the node ran after the last record.
    """

    def __init__(self, path: Path, topics: Mapping[str, Mapping[str, str]], *, hours: float = 3) -> None:
        self.path = path
        self.end_ms = int(time.time() * 1000)
        with kraftlog.LogStore(path, clock=lambda: self.end_ms) as store:
            for topic, configs in topics.items():
                known = {name: value for name, value in configs.items() if name not in UNKNOWN_TO_STORE}
                store.create_topic(topic, configs={**SMALL_SEGMENTS, **known})
            self.fill(store, *topics)
            self.end_ms += int(hours * HOUR_MS)
            store.create_topic("last")
        for topic, configs in topics.items():
            for name in UNKNOWN_TO_STORE & configs.keys():
                self.configure((TOPIC_RESOURCE, topic), name, configs[name])
        ends = dict.fromkeys(topics, 4 * SEGMENT_RECORDS)
        self.checkpoint(HIGH_WATERMARKS, ends)
        self.checkpoint(CLEANER_OFFSETS, {})

    @classmethod
    def at(cls, path: Path, end_ms: int) -> Self:
        """Return the broker of a directory that exists."""
        broker = cls.__new__(cls)
        broker.path, broker.end_ms = path, end_ms
        return broker

    @property
    def directory_id(self) -> str:
        """The id of the directory."""
        return read_properties(self.path / "meta.properties")["directory.id"]

    def fill(self, store: kraftlog.LogStore, *topics: str, segments: int = 4) -> None:
        """Write segments of ten records."""
        producer = store.producer()
        for number in range(segments):
            keys = [f"key {number} {at}" for at in range(SEGMENT_RECORDS)]
            for topic in topics:
                producer.send(topic, pa.table({"key": keys, "value": [_VALUE] * SEGMENT_RECORDS}), partition=PARTITION)

    def checkpoint(self, name: str, offsets: Mapping[str, int]) -> None:
        """Write a checkpoint with the offsets of partitions 0."""
        rows = [f"{topic} {PARTITION} {offset}" for topic, offset in offsets.items()]
        (self.path / name).write_text("\n".join(["0", str(len(rows)), *rows, ""]))

    def configure(self, resource: tuple[int, str], name: str, value: str) -> None:
        """Append a setting to the metadata log: of a topic (2) or of brokers (4)."""
        types = {"resource_type": pa.int8(), "resource_name": pa.string(), "name": pa.string(), "value": pa.string()}
        rows = [dict(zip(types, (*resource, name, value), strict=True))]
        self.append("ConfigRecord", pa.Table.from_pylist(rows, schema=pa.schema(list(types.items()))))

    def change_partition(self, topic: str, **fields: object) -> None:
        """Append a change of partition 0 of a topic to the metadata log: replicas, isr, directories."""
        cluster = self.evidence().cluster
        assert cluster is not None
        numbers, texts = pa.list_(pa.int32()), pa.list_(pa.string())
        types = {"replicas": numbers, "isr": numbers, "directories": texts}
        columns = {"partition_id": pa.array([PARTITION], pa.int32()), "topic_id": pa.array([cluster.topic_ids[topic]])}
        columns |= {name: pa.array([value], types[name]) for name, value in fields.items()}
        self.append("PartitionChangeRecord", pa.table(columns))

    def append(self, name: str, rows: pa.Table) -> None:
        """Append records to the metadata log at its end, with the files around it as they are."""
        marks = {path: path.read_bytes() for path in self.path.iterdir() if path.is_file()}
        with MetadataLogWriter(self.path / "__cluster_metadata-0", None, clock=lambda: self.end_ms) as writer:
            writer.append(encode_messages(name, rows).to_pylist())
        for path, data in marks.items():
            path.write_bytes(data)

    def folder(self, topic: str) -> Path:
        """Return the folder of a topic's partition."""
        return self.path / f"{topic}-{PARTITION}"

    def evidence(self, *more: Path) -> Evidence:
        """Return what an audit has at the time at which the metadata log ends."""
        return evidence_of(self.path, *more, now=self.end_ms)


def evidence_of(*paths: Path, now: int | None = None) -> Evidence:
    """Return what an audit has of paths."""
    here = int(time.time() * 1000) if now is None else now
    return Evidence(discover(list(paths)), Pass(), here, [str(path) for path in paths])
