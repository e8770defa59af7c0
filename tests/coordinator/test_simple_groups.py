"""Groups that are there for no other reason than that something was committed for them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from kafka_rows import typed

from kraftlog.coordinator.groups import GroupFold

Line = dict[str, Any]


def _commit(offset: int, group: str, *, is_tombstone: bool = False, producer_id: int = -1) -> Line:
    key = {"name": "OffsetCommitKey", "data": {"group": group, "topic": "t", "partition": 0}}
    data = {"offset": 1, "metadata": "", "commitTimestamp": 0}
    return _line(offset, key, None if is_tombstone else data, producer_id)


def _deleted(offset: int, kind: str, group: str) -> Line:
    field = "group" if kind == "GroupMetadata" else "groupId"
    return _line(offset, {"name": f"{kind}Key", "data": {field: group}}, None, -1)


def _line(offset: int, key: Line, data: Line | None, producer_id: int) -> Line:
    return {"offset": offset, "producer_id": producer_id, "key": key, "value": data and {"data": data}}


def _simple_groups(lines: list[Line], size: int) -> list[str]:
    fold = GroupFold()
    for at in range(0, len(lines), size):
        rows: dict[str, pa.RecordBatch] = typed(lines[at : at + size], "consumer_offsets")
        fold.add_commits(rows.pop("OffsetCommit", None))
        for name, each in rows.items():
            fold.add(name, each)
        fold.simple_groups()  # has no bearing on what follows
    return sorted(fold.simple_groups())


@pytest.mark.parametrize("size", range(1, 10))
def test_a_commit_makes_a_group_and_only_a_groups_tombstone_takes_it_away(size: int) -> None:
    lines = [
        _commit(0, "stays"),
        _commit(1, "emptied"),
        _commit(2, "in a transaction", producer_id=5),
        _commit(3, "gone"),
        _commit(4, "back"),
        _deleted(5, "GroupMetadata", "gone"),
        _deleted(6, "ConsumerGroupMetadata", "back"),
        _commit(7, "emptied", is_tombstone=True),
        _commit(8, "back"),
        _commit(9, "only a tombstone", is_tombstone=True),
    ]
    assert _simple_groups(lines, size) == ["back", "emptied", "in a transaction", "stays"]
