"""Logs of other releases: what their own brokers said of them."""

from __future__ import annotations

from typing import Any

import pytest

import kraftlog
from golden_releases import LOGS, RELEASES, STATES, answers, folder_of

RECORDS = ["topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value"]
# Their answers have no producers; producers of 2.8 expired soon.
HAVE_PRODUCERS = [release for release in RELEASES if release >= "3"]


def log_of(release: str, state: str) -> kraftlog.Log:
    return kraftlog.open(folder_of(release, state) / "log")


def starts(release: str, state: str) -> dict[tuple[str, int], int]:
    """Return where a consumer starts in each partition."""
    ends = answers(release, state, "end")
    return {(end["topic"], end["partition"]): end["log_start_offset"] for end in ends}


def hex_or_none(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


@pytest.mark.parametrize(("release", "state"), LOGS)
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_records_are_those_of_a_consumer(release: str, state: str, level: str):
    expected = answers(release, state, level)
    if release == "0.10.2.2":
        expected = [line | {"answer": level} for line in answers(release, state, "read_uncommitted")]
    assert len(expected) > 400
    begins = starts(release, state)
    found = []
    for row in log_of(release, state).records(RECORDS, isolation_level=level).to_table().to_pylist():
        partition = row["topic"], row["partition"]
        if row["offset"] >= begins.get(partition, 1 << 62):  # not of internal topics
            found.append(
                [
                    *partition,
                    row["offset"],
                    row["timestamp_ms"],
                    row["timestamp_type"],
                    *map(hex_or_none, (row["key"], row["value"])),
                ]
            )
    names = ["topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value"]
    assert sorted(found, key=_place) == sorted(([line[name] for name in names] for line in expected), key=_place)


def _place(row: list[Any]) -> tuple[Any, ...]:
    return tuple(row[:3])


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("release", HAVE_PRODUCERS)
def test_producers_are_those_of_the_broker(release: str, state: str):
    expected = {
        (line["topic"], line["partition"], line["producer_id"]): line for line in answers(release, state, "producer")
    }
    found = {
        (row["topic"], row["partition"], row["producer_id"]): row
        for row in log_of(release, state).producers().to_pylist()
        if not row["topic"].startswith("__")
    }
    assert found.keys() == expected.keys()
    for key, row in found.items():
        line = expected[key]
        assert round(row["last_timestamp"].timestamp() * 1000) == line["last_timestamp_ms"]
        assert row["current_transaction_first_offset"] == line["current_transaction_first_offset"]
        for name in ("producer_epoch", "last_sequence", "coordinator_epoch"):
            assert (-1 if row[name] is None else row[name]) == line[name], (key, name)
