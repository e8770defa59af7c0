"""The table ``offsets`` against a plain fold, that does record by record what Kafka's OffsetMetadataManager does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_records import add_lines
from kafka_rows import Line
from plain_fold import Key, PlainFold

from kraftlog import schema
from kraftlog.coordinator.offset_columns import offset_columns
from kraftlog.messages.last_records import LastRecords
from kraftlog.tables.coordinator_tables import OFFSET_COMMIT, commit_records

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


def _lines(events: list[tuple[int, str, Key | None, int]]) -> list[Line]:
    return [_line(*event) for event in events]


def _line(at: int, kind: str, key: Key | None, producer: int) -> Line:
    if key is None:
        return {"offset": at, "producer_id": producer, "control_type": kind}
    data = {"offset": at, "leaderEpoch": -1, "metadata": f"of {at}", "commitTimestamp": at}
    return {
        "offset": at,
        "producer_id": producer,
        "key": {"name": "OffsetCommitKey", "data": dict(zip(("group", "topic", "partition"), key, strict=True))},
        "value": None if kind == "tombstone" else {"version": 3, "data": data},
    }


def _found(last: LastRecords) -> set[tuple[Key, str, int, int | None]]:
    columns = ["group", "topic", "partition", "offset", "metadata", "state", "record_offset", "producer_id"]
    found = offset_columns(last.typed(OFFSET_COMMIT), schema.OFFSETS.select(columns))
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
@given(_LOGS, st.lists(st.integers(1, 20), max_size=20))
def test_as_a_coordinator_replays(log: list[tuple[Any, int]], cuts: list[int]) -> None:
    events = list(_with_offsets(log))
    plain, last, at = PlainFold(), commit_records(), 0
    for event in events:
        plain.replay(*event)
    for cut in [*cuts, len(events)]:
        add_lines(last, _lines(events[at : at + cut]), "consumer_offsets")
        at += cut
    assert _found(last) == plain.rows()
    assert _found(last) == plain.rows()


@settings(max_examples=50, deadline=None)
@given(_LOGS)
def test_it_may_be_looked_at_on_the_way(log: list[tuple[Any, int]]) -> None:
    plain, last = PlainFold(), commit_records()
    for event in _with_offsets(log):
        plain.replay(*event)
        add_lines(last, _lines([event]), "consumer_offsets")
        assert _found(last) == plain.rows()
