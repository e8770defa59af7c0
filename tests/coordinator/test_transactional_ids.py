"""The table ``transactional_ids`` against what Kafka's Admin says of the same logs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kafka_rows import readable

import kraftlog
from golden_files import GOLDEN
from kraftlog import schema
from kraftlog.coordinator.transactional_ids import status_name

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _table(folder: Path, columns: list[str] | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        kraftlog.open(folder / "log").transactional_ids(columns, strict=False, faults=[]).to_pylist()
    )
    return rows


def _milliseconds(stamp: datetime | None) -> int | None:
    return None if stamp is None else (stamp - _EPOCH) // timedelta(milliseconds=1)


@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0", "transactions_hanging"])
def test_as_admin_says(scenario: str) -> None:
    folder = GOLDEN / scenario
    answers = json.loads((folder / "expected" / "broker_state.json").read_text())["transactions"]
    expected = [{name: value for name, value in each.items() if name != "coordinator_id"} for each in answers]
    found = [
        {
            "transactional_id": row["transactional_id"],
            "state": row["status"],
            "producer_id": row["producer_id"],
            "producer_epoch": row["producer_epoch"],
            "timeout_ms": row["timeout_ms"],
            "start_time_ms": _milliseconds(row["start_timestamp"]),
            "topic_partitions": sorted(
                f"{each['topic']}-{partition}" for each in row["partitions"] for partition in each["partitions"]
            ),
        }
        for row in sorted(_table(folder), key=lambda row: row["transactional_id"])
    ]
    assert found == sorted(expected, key=lambda each: each["transactional_id"])


def test_every_field_of_the_last_record_of_each_id() -> None:
    folder = GOLDEN / "coordinator_future"
    last: dict[str, Any] = {}
    for line in readable(folder, "transaction_state"):
        last[line["key"]["data"]["transactionalId"]] = line["value"] and line["value"]["data"]
    last = {name: value for name, value in last.items() if value is not None}
    rows = _table(folder, [*schema.TRANSACTIONAL_IDS.shown, *schema.TRANSACTIONAL_IDS.on_request])
    assert [row["transactional_id"] for row in rows] == sorted(last)
    for row in rows:
        value = last[row["transactional_id"]]
        assert row["producer_id"] == value["producerId"]
        assert row["previous_producer_id"] == value.get("previousProducerId")
        assert row["next_producer_id"] == value.get("nextProducerId")
        assert row["producer_epoch"] == value["producerEpoch"]
        assert row["next_producer_epoch"] == value.get("nextProducerEpoch")
        assert row["client_transaction_version"] == value.get("clientTransactionVersion", 0)
        assert row["timeout_ms"] == value["transactionTimeoutMs"]
        assert row["status"] == status_name(value["transactionStatus"])
        assert row["partitions"] == [
            {"topic": each["topic"], "partitions": each["partitionIds"]}
            for each in value["transactionPartitions"] or []
        ]
        assert row["start_timestamp_ms"] == value["transactionStartTimestampMs"]
        assert row["last_update_timestamp_ms"] == value["transactionLastUpdateTimestampMs"]
        assert _milliseconds(row["last_update_timestamp"]) == value["transactionLastUpdateTimestampMs"]


def test_a_status_that_is_not_known_is_named_by_its_number() -> None:
    rows = {row["transactional_id"]: row["status"] for row in _table(GOLDEN / "coordinator_future")}
    assert rows["status42"] == "UNKNOWN(42)"
    assert rows["tx-7"] == "PrepareEpochFence"
    assert "tx-1" not in rows  # a tombstone took it away
