"""The fold by columns against a plain one, that does record by record what Kafka's OffsetMetadataManager does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_fold import Key, PlainFold

from kraftlog import last_by_key, schema
from kraftlog.coordinator.offset_columns import offset_columns
from kraftlog.coordinator.offsets import OffsetFold

_KEYS = st.tuples(st.sampled_from(["g", "ü"]), st.sampled_from(["t", "u"]), st.integers(0, 1))
_PRODUCERS = st.sampled_from([0, 1, 7_000_000_000])
_EVENTS = st.one_of(
    st.tuples(st.just("commit"), _KEYS, st.sampled_from([-1, -1, 0, 1, 7_000_000_000])),
    st.tuples(st.just("tombstone"), _KEYS, st.sampled_from([-1, 0])),
    st.tuples(st.sampled_from(["COMMIT", "ABORT"]), st.none(), _PRODUCERS),
)
_LOGS = st.lists(st.tuples(_EVENTS, st.integers(1, 3)), max_size=60)


def _with_offsets(log: list[tuple[Any, int]]) -> Iterator[tuple[int, str, Key | None, int]]:
    offset = 0
    for event, step in log:
        yield (offset, *event)
        offset += step


def _columns(events: list[tuple[int, str, Key | None, int]]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    rows = [event for event in events if event[2] is not None]
    ends = [event for event in events if event[2] is None]
    keys = [event[2] for event in rows if event[2] is not None]
    is_tombstone = [event[1] == "tombstone" for event in rows]
    values = [None if gone else event[0] for event, gone in zip(rows, is_tombstone, strict=True)]
    commits = pa.record_batch(
        {
            "group": pa.array([key[0] for key in keys], pa.string()),
            "key_topic": pa.array([key[1] for key in keys], pa.string()),
            "key_partition": pa.array([key[2] for key in keys], pa.int32()),
            "offset": pa.array([event[0] for event in rows], pa.int64()),
            "producer_id": pa.array([event[3] for event in rows], pa.int64()),
            "value_offset": pa.array(values, pa.int64()),
            "leader_epoch": pa.array([None if value is None else -1 for value in values], pa.int32()),
            "metadata": pa.array([None if value is None else f"of {value}" for value in values], pa.string()),
            "commit_timestamp": pa.array(values, pa.int64()),
            "expire_timestamp": pa.array([None if value is None else -1 for value in values], pa.int64()),
            "topic_id": pa.array([None if value is None else "A" * 22 for value in values], pa.string()),
            "is_tombstone": pa.array(is_tombstone, pa.bool_()),
        }
    )
    markers = pa.record_batch(
        {
            "offset": pa.array([event[0] for event in ends], pa.int64()),
            "producer_id": pa.array([event[3] for event in ends], pa.int64()),
            "control_type": pa.array([event[1] for event in ends], pa.string()),
        }
    )
    return commits, markers


def _folded(fold: OffsetFold) -> set[tuple[Key, str, int, int | None]]:
    columns = ["group", "topic", "partition", "offset", "metadata", "state", "record_offset", "producer_id"]
    found = offset_columns(fold, schema.OFFSETS.select(columns))
    rows = [] if found is None else found.to_pylist()
    for row in rows:
        assert row["offset"] == row["record_offset"]
        assert row["metadata"] == f"of {row['record_offset']}"
    answer = {
        ((row["group"], row["topic"], row["partition"]), row["state"], row["record_offset"], row["producer_id"])
        for row in rows
    }
    assert len(answer) == len(rows)
    return answer


@settings(max_examples=300, deadline=None)
@given(_LOGS, st.lists(st.integers(1, 20), max_size=20), st.integers(1, 8))
def test_as_a_coordinator_replays(log: list[tuple[Any, int]], cuts: list[int], least_rows: int) -> None:
    events = list(_with_offsets(log))
    plain, fold = PlainFold(), OffsetFold()
    for event in events:
        plain.replay(*event)
    with patch.object(last_by_key, "LEAST_ROWS", least_rows):  # so that rows are compared many times
        at = 0
        for cut in [*cuts, len(events)]:
            fold.add(*_columns(events[at : at + cut]))
            at += cut
        assert _folded(fold) == plain.rows()
    assert _folded(fold) == plain.rows()


@settings(max_examples=50, deadline=None)
@given(_LOGS)
def test_it_may_be_looked_at_on_the_way(log: list[tuple[Any, int]]) -> None:
    plain, fold = PlainFold(), OffsetFold()
    for event in _with_offsets(log):
        plain.replay(*event)
        fold.add(*_columns([event]))
        assert _folded(fold) == plain.rows()
