"""States of groups by the rules of Kafka's coordinator, where no log of a broker shows them."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_records import add_lines

from kraftlog import schema
from kraftlog.coordinator.group_rows import group_columns
from kraftlog.coordinator.group_states import classic_state, preferred_assignor, reconciled_state
from kraftlog.tables.coordinator_tables import group_records, groups_of

_STABLE, _UNREVOKED = "STABLE", "UNREVOKED_PARTITIONS"


@pytest.mark.parametrize(
    ("group_epoch", "target_epoch", "members", "state"),
    [
        (7, 3, [], "Empty"),
        (4, 3, [(3, _STABLE)], "Assigning"),
        (3, 3, [(3, _STABLE), (2, _STABLE)], "Reconciling"),
        (3, 3, [(3, _STABLE), (3, _UNREVOKED)], "Reconciling"),
        (3, 3, [(3, _STABLE), (3, _STABLE)], "Stable"),
        (3, 4, [(4, _STABLE)], "Stable"),
    ],
)
def test_consumer_groups(group_epoch: int, target_epoch: int, members: list[tuple[int, str]], state: str) -> None:
    assert reconciled_state(group_epoch, target_epoch, members) == state


def test_classic_groups() -> None:
    assert [classic_state(members) for members in (0, 1)] == ["Empty", "Stable"]


@pytest.mark.parametrize(
    ("wished", "assignor"),
    [
        ([], "uniform"),
        ([None, ""], "uniform"),
        (["range", None, None], "range"),
        (["range", "uniform", "uniform"], "uniform"),
        (["uniform", "range"], "range"),
    ],
)
def test_the_assignor_is_the_one_that_most_members_ask_for(wished: list[str | None], assignor: str) -> None:
    assert preferred_assignor(wished) == assignor


def _line(offset: int, name: str, key: dict[str, Any], value: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "offset": offset,
        "producer_id": -1,
        "key": {"name": f"{name}Key", "data": key},
        "value": None if value is None else {"data": value},
    }


_GROUP, _MEMBER = {"groupId": "s"}, {"groupId": "s", "memberId": "m"}
_STREAMS = [
    _line(
        0,
        "StreamsGroupMemberMetadata",
        _MEMBER,
        {
            "instanceId": None,
            "rackId": "r",
            "clientId": "c",
            "clientHost": "/h",
            "rebalanceTimeoutMs": 1,
            "topologyEpoch": 4,
            "processId": "p",
            "userEndpoint": None,
            "clientTags": [],
        },
    ),
    _line(1, "StreamsGroupTopology", _GROUP, {"epoch": 4, "subtopologies": []}),
    _line(2, "StreamsGroupMetadata", _GROUP, {"epoch": 2, "metadataHash": 0}),
    _line(3, "StreamsGroupMetadata", _GROUP, {"epoch": 3, "metadataHash": 0, "validatedTopologyEpoch": 4}),
    _line(4, "StreamsGroupTargetAssignmentMetadata", _GROUP, {"assignmentEpoch": 3}),
    _line(
        5,
        "StreamsGroupCurrentMemberAssignment",
        _MEMBER,
        {
            "memberEpoch": 3,
            "previousMemberEpoch": 0,
            "state": 2,
            "activeTasks": [{"subtopologyId": "0", "partitions": [0, 1]}],
            "standbyTasks": [],
            "warmupTasks": [],
            "activeTasksPendingRevocation": [],
            "standbyTasksPendingRevocation": [],
            "warmupTasksPendingRevocation": [],
        },
    ),
]
_STREAMS.append(_line(6, "StreamsGroupCurrentMemberAssignment", _MEMBER, _STREAMS[5]["value"]["data"] | {"state": 1}))
_STREAMS.append(_line(7, "StreamsGroupMemberMetadata", _MEMBER, None))
_STREAMS.append(_line(8, "StreamsGroupMetadata", _GROUP, None))


def _streams_group(end_offset: int) -> list[dict[str, Any]]:
    last = group_records()
    add_lines(last, _STREAMS[:end_offset], "consumer_offsets")
    _, groups = groups_of(last)
    table = group_columns(groups, [], {}, schema.GROUPS.select())
    return [] if table is None else table.to_pylist()


@pytest.mark.parametrize(
    ("end_offset", "state"),
    [(3, "NotReady"), (4, "Assigning"), (5, "Reconciling"), (6, "Reconciling"), (7, "Stable"), (8, "Empty")],
)
def test_streams_groups(end_offset: int, state: str) -> None:
    assert [row["state"] for row in _streams_group(end_offset)] == [state]


def test_a_streams_group_has_tasks() -> None:
    (row,) = _streams_group(7)
    (member,) = row["members"]
    assert (row["group_type"], row["protocol_type"], row["generation_or_epoch"]) == ("streams", "streams", 3)
    assert member["active_tasks"] == [{"subtopology_id": "0", "partitions": [0, 1]}]
    assert (member["standby_tasks"], member["assignment"], member["rack_id"]) == ([], None, "r")


def test_a_group_whose_records_are_all_deleted_is_gone() -> None:
    assert _streams_group(9) == []
