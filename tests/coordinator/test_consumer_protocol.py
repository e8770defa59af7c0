"""Subscriptions and assignments of classic members against what Kafka's ConsumerProtocol makes of them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from kafka_rows import readable

from golden_files import GOLDEN
from kraftlog.coordinator.consumer_protocol import ASSIGNMENT, SUBSCRIPTION, read_blobs

_Answer = dict[str, Any]


def _blobs(field: str) -> list[tuple[bytes, _Answer]]:
    """Return the bytes of a field of members, with Kafka's answers."""
    found = []
    for scenario in ("groups", "coordinator_future"):
        for line in readable(GOLDEN / scenario, "consumer_offsets"):
            for at, answer in enumerate(line.get("members_as_consumer_protocol") or []):
                blob = line["value"]["data"]["members"][at][field]
                found.append((base64.b64decode(blob), answer[field]))
    return found


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _partitions(topics: list[dict[str, Any]]) -> list[str]:
    return [f"{each['topic']}-{partition}" for each in topics for partition in each["partitions"]]


def _was_read(answer: _Answer) -> bool:
    return "user_data" in answer


def test_subscriptions() -> None:
    blobs = _blobs("subscription")
    read = read_blobs(SUBSCRIPTION, [blob for blob, _ in blobs])
    assert {answer.get("version") for _, answer in blobs if _was_read(answer)} == {0, 1, 3}
    for (_, answer), row in zip(blobs, read, strict=True):
        assert (row is not None) == _was_read(answer)
        if row is not None:
            assert row["topics"] == answer["topics"]
            assert _partitions(row["owned_partitions"]) == answer["owned_partitions"]
            assert row["generation_id"] == answer["generation_id"]
            assert row["rack_id"] == answer["rack_id"]
            assert _hex(row["user_data"]) == answer["user_data"]


def test_assignments() -> None:
    blobs = _blobs("assignment")
    read = read_blobs(ASSIGNMENT, [blob for blob, _ in blobs])
    for (_, answer), row in zip(blobs, read, strict=True):
        assert (row is not None) == _was_read(answer)
        if row is not None:
            assert sorted(_partitions(row["assigned_partitions"])) == sorted(answer["partitions"])
            assert _hex(row["user_data"]) == answer["user_data"]


@pytest.mark.parametrize("version", [4, 32767])
def test_a_later_version_is_read_as_the_last_one_known(version: int) -> None:
    blob = next(blob for blob, answer in _blobs("assignment") if answer.get("version") == 3)
    assert read_blobs(ASSIGNMENT, [version.to_bytes(2, "big") + blob[2:]]) == read_blobs(ASSIGNMENT, [blob])


def test_nothing_to_read() -> None:
    assert read_blobs(ASSIGNMENT, []) == []
