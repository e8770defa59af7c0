"""Faults of records of topics and partitions, with their messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native.topic_slots import (
    BAD_DIRECTORIES,
    BAD_RECOVERY_STATE,
    UNKNOWN_PARTITION,
    UNKNOWN_TOPIC,
)
from kraftlog.errors import Fault
from kraftlog.metadata import schemas
from kraftlog.metadata.topics.types import CLEAR_ELR, PARTITION, PARTITION_CHANGE, TYPES
from kraftlog.metadata.uuids import uuid_text

_WORDS = {
    UNKNOWN_TOPIC: ("unknown_topic", "there is no such topic"),
    UNKNOWN_PARTITION: ("unknown_partition", "there is no such partition"),
    BAD_DIRECTORIES: ("bad_directories", "there are not as many directories as replicas"),
    BAD_RECOVERY_STATE: ("bad_leader_recovery_state", "its leader recovery state is neither 0 nor 1"),
}


def topic_faults(native_faults: npt.NDArray[np.int64], batches: Mapping[str, pa.RecordBatch]) -> Iterator[Fault]:
    """Return the faults that the core found: kind of record, row, fault."""
    for kind, row, number in native_faults.tolist():
        name = TYPES[kind]
        batch = batches[name].slice(row, 1)
        error, words = _WORDS[number]
        offset = int(schemas.offsets_of(batch)[0])
        yield Fault(error, f"offset {offset}: {name} of {_concerned(name, batch)}: {words}", base_offset=offset)


def _concerned(name: str, batch: pa.RecordBatch) -> str:
    if name == CLEAR_ELR:
        return f"topic {schemas.column_of(batch, name, 'topic_name')[0].as_py()}"
    topic = uuid_text(schemas.column_of(batch, name, "topic_id")[0].as_py())
    if name in (PARTITION, PARTITION_CHANGE):
        return f"partition {topic}:{schemas.column_of(batch, name, 'partition_id')[0].as_py()}"
    return f"topic {topic}"
