"""The table ``topic_summary``: what each topic holds, from batch headers alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog._native.scanner import COMPRESSION_MASK, CONTROL_BIT, DELETE_HORIZON_BIT, TIMESTAMP_TYPE_BIT
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import COMPRESSION_NAMES, NO_TIMESTAMP, Headers
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import scanned, segment_file
from kraftlog.tables.file_tables import from_rows
from kraftlog.tables.read import Read

_OLDEST_COUNTED = 2  # magic from which headers say how many records a batch has


@dataclass
class _Topic:
    name: str | None
    partitions: set[int | None] = field(default_factory=set)
    records: int | None = 0
    size_in_bytes: int = 0
    first: int = NO_TIMESTAMP
    last: int = NO_TIMESTAMP
    formats: set[str] = field(default_factory=set)
    damaged: int = 0
    torn: int = 0

    def add(self, headers: Headers) -> None:
        """Take the next headers; markers of transactions and others of control are no records of users."""
        data = headers[(headers["attributes"] & CONTROL_BIT) == 0]
        if not len(data):
            return
        is_unknown = (data["magic"] < _OLDEST_COUNTED) & (data["records_count"] < 0)
        counted = int(data["records_count"].clip(min=0).sum(dtype=np.int64))
        self.records = None if self.records is None or is_unknown.any() else self.records + counted
        for magic, code in np.unique(np.stack([data["magic"], data["attributes"] & COMPRESSION_MASK]), axis=1).T:
            self.formats.add(f"v{magic} {COMPRESSION_NAMES[code]}")
        base, latest = data["base_timestamp"], data["max_timestamp"]
        # the base of others is what the client had before the append time, or a delete horizon (KIP-534)
        is_first = (data["attributes"] & (TIMESTAMP_TYPE_BIT | DELETE_HORIZON_BIT)) == 0
        stamps = np.concatenate([base[is_first & (base != NO_TIMESTAMP)], latest[latest != NO_TIMESTAMP]])
        if len(stamps):
            least = int(stamps.min())
            self.first = least if self.first == NO_TIMESTAMP else min(self.first, least)
            self.last = max(self.last, int(stamps.max()))

    def row(self) -> dict[str, Any]:
        """Return a row of the table."""
        wrong = [
            f"{count} {what if count == 1 else f'{what}s'}"
            for count, what in ((self.damaged, "damaged segment"), (self.torn, "torn tail"))
            if count
        ]
        return {
            "topic": self.name,
            "partitions": len(self.partitions),
            "records": self.records,
            "size_in_bytes": self.size_in_bytes,
            "first_timestamp_ms": None if self.first == NO_TIMESTAMP else self.first,
            "last_timestamp_ms": None if self.last == NO_TIMESTAMP else self.last,
            "formats": ", ".join(sorted(self.formats)),
            "health": ", ".join(wrong) or "headers ok",
        }


def topic_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table topic_summary: headers tell of damage, checksums are not compared."""
    topics: dict[str | None, _Topic] = {}
    for segment in read.segments:
        _add(topics.setdefault(segment.topic, _Topic(segment.topic)), segment, read)
        read.advance(segment.size)
    if topics:
        rows = [topics[name].row() for name in sorted(topics, key=lambda name: (name is None, name or ""))]
        yield from_rows(rows, schema.TOPIC_SUMMARY, read.schema)


def _add(topic: _Topic, segment: Segment, read: Read) -> None:
    topic.partitions.add(segment.partition)
    topic.size_in_bytes += segment.size
    known = len(read.faults)
    with segment_file(segment, read.faults, strict=read.options.strict) as file:
        scan = HeaderScan(file)
        for headers in scanned(segment, scan, read.faults, strict=read.options.strict):
            topic.add(headers)
        topic.torn += scan.torn_at >= 0
    topic.damaged += len(read.faults) > known
