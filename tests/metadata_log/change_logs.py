"""Random metadata logs of records of all types, with transactions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from change_twin import Block, ChangeTwin
from hypothesis import strategies as st
from image_rows import Fields, record
from random_records import UUIDS, about_brokers, about_others, about_topics

import kraftlog
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.writer import encode_messages
from kraftlog.metadata.schemas import schema_of

MARKERS = ("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord")


def _named(one: tuple[str, Fields]) -> tuple[str, Fields]:
    """Give each topic id a name of its own: keys of changes are names."""
    name, fields = one
    return (name, fields | {"name": "abcdef"[UUIDS.index(fields["topic_id"])]}) if name == "TopicRecord" else one


records = st.one_of(about_topics, about_topics, about_brokers, about_others).filter(lambda one: one[0] not in MARKERS)
blocks = st.builds(
    Block,
    st.sampled_from(["plain", "plain", "committed", "committed", "aborted"]),
    st.lists(records.map(_named), min_size=1, max_size=8),
)
LOG = st.lists(blocks, min_size=1, max_size=8)


def write(folder: Path, log: list[Block], batch_bytes: int, *, ends_open: bool) -> ChangeTwin:
    """Write a metadata log; returns what is to be found in it."""
    twin, values = ChangeTwin(), []
    if ends_open:
        log = [*log, Block("open", [("NoOpRecord", record("NoOpRecord"))])]
    for block in log:
        first = len(values)
        for name, fields in block.whole:
            definition = BUILT_IN.messages[name]
            version = definition.versions.last
            rows = pa.RecordBatch.from_pylist([record(name) if fields is None else fields], schema=schema_of(name))
            values.append(encode_messages(definition, version, rows, prefix=frame(definition.api_key, version))[0])
        if block.kind == "plain":
            for offset, (name, fields) in enumerate(block.records, first):
                twin.step(offset, [(offset, name, fields)])
        elif block.kind == "committed":
            twin.step(len(values) - 1, [(at, *one) for at, one in enumerate(block.records, first + 1)])
    folder.mkdir(parents=True)
    rows = pa.table({"value": pa.array([value.as_py() for value in values], pa.binary())})
    data = kraftlog.encode(rows, max_batch_bytes=batch_bytes, timestamp_ms=1_700_000_000_000)
    (folder / f"{0:020d}.log").write_bytes(data)
    return twin
