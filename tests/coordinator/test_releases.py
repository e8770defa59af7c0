"""Groups, offsets and transactional ids of logs of other releases are those that Admin lists."""

from __future__ import annotations

import pytest

import kraftlog
from golden_releases import LOGS, RELEASES, STATES, answers, folder_of

# Brokers before 3.0 do not list transactions.
LIST_TRANSACTIONS = [release for release in RELEASES if release >= "3"]


@pytest.mark.parametrize(("release", "state"), LOGS)
def test_groups(release: str, state: str):
    """A group that was deleted, or of which all offsets were, is gone."""
    expected = {line["group"]: line["state"] for line in answers(release, state, "group")}
    assert len(expected) >= 4
    log = kraftlog.open(folder_of(release, state) / "log")
    assert {row["group"]: row["state"] for row in log.groups().to_pylist()} == expected


@pytest.mark.parametrize(("release", "state"), LOGS)
def test_offsets(release: str, state: str):
    log = kraftlog.open(folder_of(release, state) / "log")
    found: dict[str, dict[str, list[object]]] = {line["group"]: {} for line in answers(release, state, "group")}
    for row in log.offsets().to_pylist():
        if row["state"] == "committed":
            found[row["group"]][f"{row['topic']}-{row['partition']}"] = [row["offset"], row["metadata"]]
    assert found == {line["group"]: line["offsets"] for line in answers(release, state, "group")}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("release", LIST_TRANSACTIONS)
def test_transactional_ids(release: str, state: str):
    names = ("transactional_id", "producer_id", "producer_epoch", "timeout_ms")
    expected = sorted((*map(line.get, names), line["state"]) for line in answers(release, state, "transactional_id"))
    assert expected
    log = kraftlog.open(folder_of(release, state) / "log")
    rows = log.transactional_ids().to_pylist()
    assert sorted((*map(row.get, names), row["status"]) for row in rows) == expected


@pytest.mark.parametrize("state", STATES)
def test_a_transactional_id_that_expired(state: str):
    """Its tombstone is in the log; what a broker does without one depends on a clock, and is not done."""
    log = kraftlog.open(folder_of("2.8.2", state) / "log")
    ids = {row["transactional_id"] for row in log.transactional_ids().to_pylist()}
    assert "expired" not in ids
    assert "tx-0" in ids
    types = log.messages(["type", "key", "is_tombstone"]).to_table().to_pylist()
    assert any("expired" in row["key"] and row["is_tombstone"] for row in types if row["type"] == "TransactionLog")
