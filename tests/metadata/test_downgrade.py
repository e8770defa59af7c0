"""Downgrades of metadata.version, against what Kafka's own image writer makes of the same image at each level.

``downgrade/records.jsonl`` is the last image of the golden log with a few records more: brokers with cordoned
directories and amid a migration, partitions with eligible leader replicas, a delegation token. What Kafka made of it,
``downgrade/kafka.jsonl``, is what ``tests/interop/src/main/java/Downgraded.java`` printed.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from golden_files import lines
from image_tables import image_tables, known_image
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata.downgrade import DowngradeReport, downgrade_report, downgraded

FOLDER = Path(__file__).parent / "downgrade"
RECORDS = lines(FOLDER / "records.jsonl")
KAFKA = {line["level"]: line for line in lines(FOLDER / "kafka.jsonl")}
NEWEST = 30
ELR = "eligible.leader.replicas.version"
ELR_FIELDS = ("eligibleLeaderReplicas", "lastKnownElr")
PARTITION = 3

# what Kafka says is lost, and what of our rows says so
LOSSES = {
    "DelegationTokenImage(": ("DelegationTokenRecord", None),
    "ScramImage(": ("UserScramCredentialRecord", None),
    "controller registration data": ("RegisterControllerRecord", None),
    "the isMigratingZkBroker state of one or more brokers": ("RegisterBrokerRecord", "isMigratingZkBroker"),
    "the online log directories of one or more brokers": ("RegisterBrokerRecord", "logDirs"),
    "the cordoned log directories of one or more brokers": ("RegisterBrokerRecord", "cordonedLogDirs"),
    "the directory assignment state of one or more replicas": ("PartitionRecord", "directories"),
}

Line = dict[str, Any]
Rows = list[tuple[str, str | None, str | None, str]]


@cache
def tables() -> dict[str, pa.Table]:
    return image_tables(RECORDS)


def report(to_level: int, from_level: int = NEWEST) -> DowngradeReport:
    return downgrade_report(tables(), from_level, to_level)


def rows(to_level: int) -> Rows:
    """Return what is lost or refused, without the messages."""
    found = report(to_level).table.to_pylist()
    return [(row["kind"], row["key"], row["field"], row["outcome"]) for row in found]


def as_text(version: int, row: Line) -> tuple[int, str]:
    return version, json.dumps(row, sort_keys=True, default=bytes.hex)


def without_elr(record: Line) -> Line:
    return {**record, "data": {key: value for key, value in record["data"].items() if key not in ELR_FIELDS}}


def written_by_kafka(level: int) -> dict[str, Counter[tuple[int, str]]]:
    """Return the records of each type; those that Kafka fails to write for their ELR as they are without it.

    The feature on which these depend is not among them, where its level is too high.
    """
    types = BUILT_IN.formats["metadata"].types
    failed = sum("error" in record for record in KAFKA[level]["records"])
    with_elr = [
        record for record in RECORDS if record["type_id"] == PARTITION and set(ELR_FIELDS) & set(record["data"])
    ]
    assert failed in (0, len(with_elr))
    records = [record for record in KAFKA[level]["records"] if "error" not in record]
    if failed:
        version = next(record["version"] for record in records if record["type_id"] == PARTITION)
        directories = {} if version else {"directories": []}
        without = (without_elr(record) for record in with_elr)
        records += [{**record, "version": version, "data": record["data"] | directories} for record in without]
        records = [record for record in records if record["data"].get("name") != ELR]
    found: dict[str, Counter[tuple[int, str]]] = {}
    for type_id in {record["type_id"] for record in records}:
        of_type = [record for record in records if record["type_id"] == type_id]
        name = types[type_id].name
        given = image_tables(of_type)[name].to_pylist()
        texts = [as_text(record["version"], row) for record, row in zip(of_type, given, strict=True)]
        found[name] = Counter(texts)
    return found


@pytest.mark.parametrize("level", KAFKA)
def test_the_records_of_the_snapshot(level: int) -> None:
    """Types, versions and all fields as Kafka writes them."""
    written = downgraded(tables(), level)
    found = {
        name: Counter(as_text(version, row) for row in table.to_pylist()) for name, (version, table) in written.items()
    }
    assert found == written_by_kafka(level)


@pytest.mark.parametrize("level", KAFKA)
def test_metadata_version_is_the_first_record(level: int) -> None:
    """A reader needs it to know what comes."""
    name, (version, table) = next(iter(downgraded(tables(), level).items()))
    assert (name, version) == ("FeatureLevelRecord", 0)
    assert table.slice(0, 1).to_pylist()[0]["name"] == "metadata.version"
    assert table.slice(0, 1).to_pylist()[0]["feature_level"] == level


@pytest.mark.parametrize("level", KAFKA)
def test_what_kafka_says_is_lost(level: int) -> None:
    """It names kinds, not each record; and it fails for what depends on a higher level."""
    said = {row for start, row in LOSSES.items() for loss in KAFKA[level]["losses"] if loss.startswith(start)}
    assert len(said) == len(KAFKA[level]["losses"])
    outcomes = {"dropped", "lossy"}
    found = {(kind, field) for kind, _, field, outcome in rows(level) if outcome in outcomes}
    fails = any("error" in record for record in KAFKA[level]["records"])
    assert found - {("PartitionRecord", field) for field in ELR_FIELDS} == said
    assert {field for _, field in found if field in ELR_FIELDS} == (set(ELR_FIELDS) if fails else set())
    assert (("FeatureLevelRecord", ELR, "featureLevel", "refused") in rows(level)) == fails


def test_rows_of_a_level_below_cordoned_directories() -> None:
    """One broker has any."""
    assert rows(29) == [
        ("RegisterBrokerRecord", "2", "cordonedLogDirs", "lossy"),
        ("RegisterBrokerRecord", None, None, "kept_in_older_version"),
    ]
    messages = [row["message"] for row in report(29).table.to_pylist()]
    assert messages == [
        "4.2-IV1 writes version 3, which has no such field",
        "4 records are written in version 3 instead of 4",
    ]


def test_rows_of_a_level_far_below() -> None:
    """Each thing that is lost, by its own name; the partitions of the golden log are all in an assigned directory."""
    golden = known_image(None).tables()
    names = dict(
        zip(golden["TopicRecord"]["topic_id"].to_pylist(), golden["TopicRecord"]["name"].to_pylist(), strict=True)
    )
    partitions = zip(
        golden["PartitionRecord"]["topic_id"].to_pylist(),
        golden["PartitionRecord"]["partition_id"].to_pylist(),
        strict=True,
    )
    assigned = [f"{names[topic]}-{partition}" for topic, partition in partitions]
    older = "kept_in_older_version"
    assert rows(7) == [
        ("FeatureLevelRecord", "group.version", "featureLevel", "kept"),
        ("FeatureLevelRecord", "transaction.version", "featureLevel", "kept"),
        ("FeatureLevelRecord", "share.version", "featureLevel", "kept"),
        ("FeatureLevelRecord", ELR, "featureLevel", "refused"),
        ("FeatureLevelRecord", "streams.version", "featureLevel", "kept"),
        ("RegisterBrokerRecord", "2", "isMigratingZkBroker", "lossy"),
        *(("RegisterBrokerRecord", broker, "logDirs", "lossy") for broker in ("1", "2", "4")),
        ("RegisterBrokerRecord", "2", "cordonedLogDirs", "lossy"),
        ("RegisterControllerRecord", "1", None, "dropped"),
        *(("PartitionRecord", partition, "directories", "lossy") for partition in assigned),
        ("PartitionRecord", "directories-1", "directories", "lossy"),
        ("PartitionRecord", "directories-2", "directories", "lossy"),
        ("PartitionRecord", "directories-3", "eligibleLeaderReplicas", "lossy"),
        ("PartitionRecord", "directories-4", "eligibleLeaderReplicas", "lossy"),
        ("PartitionRecord", "directories-4", "lastKnownElr", "lossy"),
        ("UserScramCredentialRecord", "alice SCRAM-SHA-256", None, "dropped"),
        ("UserScramCredentialRecord", "alice SCRAM-SHA-512", None, "dropped"),
        ("UserScramCredentialRecord", "carol SCRAM-SHA-512", None, "dropped"),
        ("DelegationTokenRecord", "token-1", None, "dropped"),
        ("RegisterBrokerRecord", None, None, older),
        ("PartitionRecord", None, None, older),
    ]


@pytest.mark.parametrize("level", KAFKA)
def test_whether_it_must_be_forced(level: int) -> None:
    """Kafka's checkIfMetadataChanged says so."""
    assert report(level).verdict == ("needs force" if KAFKA[level]["metadata_changed"] else "safe")
    assert not report(level).is_lossless


def test_a_safe_downgrade() -> None:
    """Of the image at offset 206, at level 25: to 4.0-IV1 nothing changes, one level below it does."""
    image = known_image(206).tables()
    safe = downgrade_report(image, 25, 23)
    assert (safe.verdict, safe.reasons) == ("safe", ("metadata did not change from 4.0-IV1 to 4.0-IV3",))
    assert [(row["key"], row["outcome"]) for row in safe.table.to_pylist()] == [("transaction.version", "kept")]
    assert safe.is_lossless
    forced = downgrade_report(image, 25, 22)
    assert forced.verdict == "needs force"
    assert forced.reasons[0] == "metadata changed with 4.0-IV1: the downgrade has to be forced"
    assert "Unsafe metadata downgrade is not supported in this version." in forced.reasons[1]
    outcomes = {(row["kind"], row["key"], row["outcome"]) for row in forced.table.to_pylist()}
    assert outcomes == {
        ("FeatureLevelRecord", "transaction.version", "kept"),
        ("PartitionRecord", None, "kept_in_older_version"),
    }


def test_transactions_of_the_log() -> None:
    """Below 3.6-IV1 there must be none: only the snapshot may stay."""
    has_reason = {
        level: any("no metadata transactions" in reason for reason in report(level).reasons) for level in KAFKA
    }
    assert has_reason == {level: level < 13 for level in KAFKA}


@pytest.mark.parametrize(
    ("to_level", "reason"),
    [
        (30, "4.3-IV0 is not below 4.3-IV0"),
        (31, "4.4-IV0 is not below 4.3-IV0"),
        (6, "3.3-IV2 is below 3.3-IV3, the oldest level that Kafka 4 knows"),
        (1, "3.0-IV1 is below 3.3-IV3, the oldest level that Kafka 4 knows"),
    ],
)
def test_no_downgrade(to_level: int, reason: str) -> None:
    """Neither upwards nor to what is too old."""
    found = report(to_level)
    assert (found.verdict, found.reasons, found.table.num_rows) == ("impossible", (reason,), 0)
    assert not found.is_lossless


def test_an_empty_image() -> None:
    """Nothing but its level."""
    written = downgraded({}, 20)
    assert list(written) == ["FeatureLevelRecord"]
    assert [row["feature_level"] for row in written["FeatureLevelRecord"][1].to_pylist()] == [20]
    assert downgrade_report({}, 22, 20).is_lossless
