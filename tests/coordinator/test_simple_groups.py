"""Groups that are there for no other reason than that something was committed for them."""

from __future__ import annotations

import pytest
from kafka_records import add_lines
from kafka_rows import Line

from kraftlog.tables.coordinator_tables import group_records, groups_of


def _commit(offset: int, group: str, *, is_tombstone: bool = False, producer_id: int = -1, version: int = 4) -> Line:
    key = {"name": "OffsetCommitKey", "data": {"group": group, "topic": "t", "partition": 0}}
    data = {"offset": 1, "metadata": "", "commitTimestamp": 0}
    return _line(offset, key, None if is_tombstone else data, producer_id, version)


def _deleted(offset: int, kind: str, group: str) -> Line:
    field = "group" if kind == "GroupMetadata" else "groupId"
    return _line(offset, {"name": f"{kind}Key", "data": {field: group}}, None, -1)


def _line(offset: int, key: Line, data: Line | None, producer_id: int, version: int = 0) -> Line:
    value = data and {"version": version, "data": data}
    return {"offset": offset, "producer_id": producer_id, "key": key, "value": value}


def _simple_groups(lines: list[Line], size: int, with_offsets: list[str]) -> list[str]:
    last = group_records()
    for at in range(0, len(lines), size):
        add_lines(last, lines[at : at + size], "consumer_offsets")
        groups_of(last)  # has no bearing on what follows
    _, groups = groups_of(last)
    return sorted(groups.simple_groups(with_offsets))


def _log(version: int) -> list[Line]:
    return [
        _commit(0, "stays", version=version),
        _commit(1, "emptied", version=version),
        _commit(2, "in a transaction", producer_id=5, version=version),
        _commit(3, "gone", version=version),
        _commit(4, "back", version=version),
        _deleted(5, "GroupMetadata", "gone"),
        _deleted(6, "ConsumerGroupMetadata", "back"),
        _commit(7, "emptied", is_tombstone=True),
        _commit(8, "back", version=version),
        _commit(9, "only a tombstone", is_tombstone=True),
    ]


@pytest.mark.parametrize("size", range(1, 10))
def test_since_kafka_4_a_commit_makes_a_group_and_only_a_groups_tombstone_removes_it(size: int) -> None:
    assert _simple_groups(_log(4), size, []) == ["back", "emptied", "in a transaction", "stays"]


@pytest.mark.parametrize("size", range(1, 10))
def test_before_kafka_4_a_group_goes_with_its_last_offset(size: int) -> None:
    """A pending commit keeps a group as well; neither writes a tombstone of the group."""
    with_offsets = ["back", "in a transaction", "stays", "of another partition"]
    assert _simple_groups(_log(3), size, with_offsets) == ["back", "in a transaction", "stays"]


def test_of_groups_of_both_the_last_commit_counts() -> None:
    lines = [_commit(0, "upgraded", version=3), _commit(1, "upgraded", version=4), _commit(2, "old", version=4)]
    assert _simple_groups([*lines, _commit(3, "old", version=3)], 2, []) == ["upgraded"]
