"""Metadata logs made of a list of batches, some of which are lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa
from metadata_twin import Batch

import kraftlog
from kraftlog.codec.control_records import control_batch, leader_change
from kraftlog.codec.metadata_markers import abort_transaction, begin_transaction, end_transaction
from kraftlog.messages.arrow_types import message_schema
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.writer import encode_messages

MARKERS = {"begin": begin_transaction("t"), "end": end_transaction(), "abort": abort_transaction("r")}


def record(of_type: str, version: int = 0, **fields: object) -> bytes:
    """Return a metadata record of a type."""
    definition = BUILT_IN.messages[of_type]
    kinds = message_schema(definition, "binary")
    columns = {field: pa.array([value], kinds.field(field).type) for field, value in fields.items()}
    rows = pa.record_batch(columns)
    value: bytes = encode_messages(definition, version, rows, prefix=frame(definition.api_key or 0, version))[0].as_py()
    return value


@cache
def topic(offset: int) -> bytes:
    """Return a TopicRecord whose name says where it lies."""
    return record("TopicRecord", name=f"t{offset}", topic_id=(offset + 1).to_bytes(16, "big"))


def batch_bytes(batch: Batch) -> bytes:
    """Return a batch as it lies in the log; data are topics."""
    if batch.is_control:
        value = leader_change(1, [1], [1])
        place = {"base_offset": batch.base_offset, "partition_leader_epoch": batch.epoch, "timestamp_ms": 5}
        return bytes(control_batch("LEADER_CHANGE", value, **place))
    values = [_value(kind, batch.base_offset + at) for at, kind in enumerate(batch.kinds)]
    rows = pa.table({"value": pa.array(values, pa.binary())})
    return bytes(
        kraftlog.encode(
            rows, base_offset=batch.base_offset, partition_leader_epoch=batch.epoch, timestamp_ms=batch.base_offset
        )
    )


def _value(kind: str, offset: int) -> bytes:
    if kind.startswith("level "):
        level = int(kind.removeprefix("level "))
        return record("FeatureLevelRecord", name="metadata.version", feature_level=level)
    return MARKERS.get(kind) or topic(offset)


def damaged(data: bytes) -> bytes:
    """Return a batch whose checksum does not match."""
    return data[:-1] + bytes([data[-1] ^ 0x10])


def write_log(
    folder: Path,
    batches: Sequence[Batch],
    *,
    removed: Iterable[int] = (),
    bad: Iterable[int] = (),
    cuts: Iterable[int] = (),
) -> Path:
    """Write a log; batches are given by their number: some are removed, some damaged, and at some a segment starts."""
    folder = folder / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    removed, bad, starts = set(removed), set(bad), {0, *cuts}
    path = folder
    for number, batch in enumerate(batches):
        if number in starts:
            path = folder / f"{batch.base_offset:020d}.log"
            path.touch()
        data = b"" if number in removed else batch_bytes(batch)
        with path.open("ab") as file:
            file.write(damaged(data) if number in bad and data else data)
    return folder
