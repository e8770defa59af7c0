"""The table ``offsets``: the offsets that groups have committed, as the group coordinator loads them.

A commit in a transaction is pending until the marker of its producer. A COMMIT applies it, unless the coordinator has a
commit from a later record by then; an ABORT drops it. A tombstone removes the committed and the pending offsets of its
key. A commit is transactional if its batch has a producer id, as for Kafka's coordinator since 4.0.
``messages/last_records.py`` keeps the last records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog._native.message import ZERO_UUID
from kraftlog.codec.header_columns import timestamps
from kraftlog.codec.options import NO_BOUND
from kraftlog.last_by_key import numbers
from kraftlog.stream import rows_of
from kraftlog.topics import TopicPartition

COMMITTED, PENDING = "committed", "pending"
_NO_PRODUCER_ID = -1
_NO_LEADER_EPOCH = -1

_SORTED_BY = ("group", "key_topic", "key_partition", "is_pending", "offset")


def offset_columns(commits: pa.RecordBatch, arrow_schema: pa.Schema) -> pa.RecordBatch | None:
    """Return the table ``offsets`` by group, topic and partition; None without commits.

    A pending commit, which has a producer id, is a row next to the committed one. Kafka's -1 is null, and so is a topic
    id of zeros.
    """
    if not commits.num_rows:
        return None
    rows = pa.Table.from_batches([commits])
    is_pending = pc.not_equal(rows.column("producer_id"), _NO_PRODUCER_ID)
    rows = rows.append_column("is_pending", is_pending)
    rows = rows.take(pc.sort_indices(rows, [(name, "ascending") for name in _SORTED_BY]))
    columns = [_column(field.name, rows).cast(field.type) for field in arrow_schema]
    return rows_of([_whole(column) for column in columns], arrow_schema, rows.num_rows)


def up_to(commits: pa.RecordBatch, ends: Mapping[TopicPartition, int]) -> pa.RecordBatch:
    """Return commits with the end of a partition instead of an offset after it; its leader epoch is then unknown.

    A log that was cut may end before an offset that a group has committed.
    """
    if not ends:
        return commits
    committed = numbers(commits, "value_offset")
    sources = map(TopicPartition, *(commits.column(name).to_pylist() for name in ("key_topic", "key_partition")))
    limits = np.array([ends.get(of, NO_BOUND) for of in sources], np.int64)
    epochs = np.where(committed > limits, _NO_LEADER_EPOCH, numbers(commits, "leader_epoch"))
    for name, values in (("value_offset", np.minimum(committed, limits)), ("leader_epoch", epochs)):
        at = commits.schema.get_field_index(name)
        commits = commits.set_column(at, commits.schema.field(at), pa.array(values, commits.schema.field(at).type))
    return commits


def topic_names(commits: pa.RecordBatch) -> dict[str, str]:
    """Return the names of topics by their ids, as far as commits have both."""
    ids, topics = (commits.column(name).dictionary_encode() for name in ("topic_id", "key_topic"))
    pairs = pa.table({"topic_id": ids, "key_topic": topics}).group_by(["topic_id", "key_topic"]).aggregate([])
    return {row["topic_id"]: row["key_topic"] for row in pairs.to_pylist() if row["topic_id"] != ZERO_UUID}


def groups_with_offsets(commits: pa.RecordBatch) -> list[str]:
    """Return the groups with a committed or pending offset."""
    names: list[str] = commits.column("group").unique().to_pylist()
    return names


def _column(name: str, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
    return _COLUMNS[name](rows)


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _plain(name: str) -> Callable[[pa.Table], pa.ChunkedArray]:
    return lambda rows: rows.column(name)


def _without(name: str, none: int | str) -> Callable[[pa.Table], pa.ChunkedArray]:
    """Return a column with nulls instead of Kafka's values for none."""
    return lambda rows: pc.if_else(pc.equal(rows.column(name), none), None, rows.column(name))


def _timestamp(name: str) -> Callable[[pa.Table], pa.Array]:
    return lambda rows: timestamps(numbers(rows, name))


def _state(rows: pa.Table) -> pa.Array:
    is_pending = numbers(rows, "is_pending")
    return pa.array(np.where(is_pending, PENDING, COMMITTED), pa.string())


_COLUMNS: dict[str, Callable[[pa.Table], pa.ChunkedArray | pa.Array]] = {
    "group": _plain("group"),
    "topic": _plain("key_topic"),
    "partition": _plain("key_partition"),
    "offset": _plain("value_offset"),
    "leader_epoch": _without("leader_epoch", _NO_LEADER_EPOCH),
    "metadata": _plain("metadata"),
    "commit_timestamp": _timestamp("commit_timestamp"),
    "expire_timestamp": _timestamp("expire_timestamp"),
    "topic_id": _without("topic_id", ZERO_UUID),
    "state": _state,
    "commit_timestamp_ms": _plain("commit_timestamp"),
    "expire_timestamp_ms": _plain("expire_timestamp"),
    "record_offset": _plain("offset"),
    "producer_id": _without("producer_id", _NO_PRODUCER_ID),
}
