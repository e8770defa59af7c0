"""What older releases could not read of the golden logs, with counts by Kafka's answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from downgrade_counts import TOPICS, UNKNOWN_TYPE, answers, by_kind, counts

from kraftlog.coordinator.downgrade_check import COLUMNS, downgrade_check
from kraftlog.coordinator.releases import FORMATS, name_of_type, readers, release_of, skips_unknown_types
from kraftlog.messages.catalog import BUILT_IN, format_of_topic

# partition, type, value version, tag, field, records, first offset, outcome
Row = tuple[int, str | None, int | None, int | None, str | None, int, int, str]
Found = tuple[str | None, int | None, str]

BY_915 = ("3.0.3", "3.1.3", "3.2.4", "3.3.3", "3.4.1", "3.5.0", "3.6", "3.9.1", "4.0", "4.3.1")
BEFORE_915 = ("3.0", "3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4", "3.4.0")
CONSUMER_GROUPS, SHARE_GROUPS, STREAMS_GROUPS = (*range(3, 9), 16), range(10, 16), (17, *range(19, 24))
# the highest version that a release reads of each type of __consumer_offsets
BEFORE = dict.fromkeys((0, 1, 2), 3)
WITH_915 = dict.fromkeys((0, 1, 2), 4)
OF_4_0 = WITH_915 | dict.fromkeys((*CONSUMER_GROUPS, 9, *SHARE_GROUPS), 0)
OF_4_1 = WITH_915 | {0: 0} | dict.fromkeys((*CONSUMER_GROUPS, *SHARE_GROUPS, *STREAMS_GROUPS), 0)
READS = {
    "3.4.0": BEFORE,
    "3.4.1": WITH_915,
    "3.9": WITH_915,
    "4.0": OF_4_0,
    "4.1": OF_4_1,
    "4.2": OF_4_1,
    "4.3": OF_4_1,
}


def rows(scenario: str, topic: str, release: str) -> list[dict[str, Any]]:
    format_name = format_of_topic(topic)
    assert format_name is not None
    table = downgrade_check(format_name, counts(scenario, topic), release_of(release))
    assert table.schema == COLUMNS
    return table.to_pylist()


def short(found: Iterable[dict[str, Any]]) -> list[Row]:
    names = ("partition", "type", "value_version", "tag", "field", "records_count", "first_offset", "outcome")
    return [tuple(row[name] for name in names) for row in found]  # type: ignore[misc]


@pytest.mark.parametrize(("scenario", "topic"), TOPICS)
def test_what_4_3_reads_is_what_kafka_4_3_reads(scenario: str, topic: str) -> None:
    """Its serde skips what is of an unknown type, and fails for all else that it does not take."""
    expected: dict[tuple[int, int | None, str], int] = {}
    for partition, records in answers(scenario, topic).items():
        for _, answer, kind in records:
            error = answer.get("error_class")
            if error is not None:
                key = partition, kind[0], "skipped" if UNKNOWN_TYPE in error else "fails"
                expected[key] = expected.get(key, 0) + 1
    found: dict[tuple[int, int | None, str], int] = {}
    for row in rows(scenario, topic, "4.3"):
        if row["tag"] is None:
            key = row["partition"], row["key_version"], row["outcome"]
            found[key] = found.get(key, 0) + row["records_count"]
    assert found == expected


@pytest.mark.parametrize("release", READS)
@pytest.mark.parametrize("scenario", ["coordinator_future", "groups", "schema_all"])
def test_consumer_offsets(scenario: str, release: str) -> None:
    """Every row that is not about a tagged field, by the counts of Kafka's answers."""
    known, is_before_915 = READS[release], release in BEFORE_915
    types = BUILT_IN.formats["consumer_offsets"].types
    expected: dict[tuple[int, str | None, int | None, str], tuple[int, int]] = {}
    for partition, records in answers(scenario, "__consumer_offsets").items():
        for (api_key, version, is_tombstone, is_damaged), (count, first) in by_kind(records).items():
            name = None
            if api_key is not None:
                name = types[api_key].name if api_key in types else {9: "ShareGroupPartitionMetadata"}.get(api_key)
                name = name or str(api_key)
            if api_key is None:
                outcome = "fails"
            elif api_key not in known:
                outcome = "fails" if is_before_915 else "skipped"
            elif is_tombstone:
                continue
            elif is_damaged or version is None or version > known[api_key]:
                outcome = "fails"
            elif release == "4.0" and api_key in (11, 15):
                outcome = "fails"  # early access, in another layout
            else:
                continue
            key = partition, name, version, outcome
            before = expected.get(key, (0, first))
            expected[key] = before[0] + count, min(before[1], first)
    found: dict[tuple[int, str | None, int | None, str], tuple[int, int]] = {}
    for row in short(rows(scenario, "__consumer_offsets", release)):
        if row[3] is None and row[7] != "field_ignored":
            key = row[0], row[1], row[2], row[7]
            before = found.get(key, (0, row[6]))
            found[key] = before[0] + row[5], min(before[1], row[6])
    assert found == expected


def test_transactions_before_kip_915() -> None:
    """Version 1 came with it."""
    assert short(rows("transactions", "__transaction_state", "3.4.0")) == [
        (0, "TransactionLog", 1, None, None, 44, 0, "fails"),
        (1, "TransactionLog", 1, None, None, 41, 0, "fails"),
    ]
    assert rows("transactions_tv0", "__transaction_state", "3.4.0") == []


def test_transactions_with_kip_915() -> None:
    """Their tagged fields are of later releases."""
    fields = {
        partition: {
            name: [offset for offset, answer, _ in records if name in (answer["value"] or {}).get("data", {})]
            for name in ("previousProducerId", "clientTransactionVersion")
        }
        for partition, records in answers("transactions", "__transaction_state").items()
    }
    expected = [
        (
            partition,
            "TransactionLog",
            1,
            tag,
            name,
            len(fields[partition][name]),
            fields[partition][name][0],
            "field_ignored",
        )
        for partition in (0, 1)
        for tag, name in ((0, "previousProducerId"), (2, "clientTransactionVersion"))
    ]
    assert short(rows("transactions", "__transaction_state", "3.4.1")) == expected
    assert short(rows("transactions", "__transaction_state", "3.9")) == expected
    assert rows("transactions", "__transaction_state", "4.0") == []


def test_the_last_tagged_field_of_transactions_is_of_4_1() -> None:
    """So 4.0 does not know it, and nobody knows those of coordinator_future."""
    tags = {
        release: [
            row[3:6] for row in short(rows("coordinator_future", "__transaction_state", release)) if row[3] is not None
        ]
        for release in ("4.0", "4.1")
    }
    unknown = [(4, None, 2), (100, None, 2), (0, "transactionPartitions", 2)]
    assert tags == {"4.0": [(3, "nextProducerEpoch", 4), *unknown], "4.1": unknown}


def test_fields_that_4_0_ignores() -> None:
    """Each with how many of Kafka's answers have it, in the partition with the new groups."""
    records = answers("groups", "__consumer_offsets")[1]

    def having(api_key: int, *path: str) -> int:
        data = [answer["value"]["data"] for _, answer, kind in records if kind[0] == api_key and answer.get("value")]
        if len(path) == 1:
            return sum(path[0] in each for each in data)
        return sum(any(path[1] in item for item in each[path[0]]) for each in data)

    expected = {
        ("OffsetCommit", "topicId"): having(1, "topicId"),
        ("ConsumerGroupMetadata", "metadataHash"): having(3, "metadataHash"),
        ("ConsumerGroupTargetAssignmentMetadata", "assignmentTimestamp"): having(6, "assignmentTimestamp"),
        ("ConsumerGroupCurrentMemberAssignment", "assignedPartitions.assignmentEpochs"): having(
            8, "assignedPartitions", "assignmentEpochs"
        ),
        ("ConsumerGroupCurrentMemberAssignment", "partitionsPendingRevocation.assignmentEpochs"): having(
            8, "partitionsPendingRevocation", "assignmentEpochs"
        ),
        ("ShareGroupTargetAssignmentMetadata", "assignmentTimestamp"): having(12, "assignmentTimestamp"),
    }
    found = {
        (row[1], row[4]): row[5]
        for row in short(rows("groups", "__consumer_offsets", "4.0"))
        if row[0] == 1 and row[7] == "field_ignored"
    }
    assert found == expected


def test_share_state() -> None:
    """Nobody reads it before 4.0, whose early access has other fields."""
    assert {row[7] for row in short(rows("share_state", "__share_group_state", "3.9"))} == {"skipped"}
    written = {
        partition: {kind: found for kind, found in by_kind(records).items() if not kind[2]}
        for partition, records in answers("share_state", "__share_group_state").items()
    }
    names = {0: "ShareSnapshot", 1: "ShareUpdate"}
    assert short(rows("share_state", "__share_group_state", "4.0")) == [
        (partition, names[kind[0] or 0], 0, None, None, *written[partition][kind], "fails")
        for partition in sorted(written)
        for kind in sorted(written[partition])
    ]
    assert rows("share_state", "__share_group_state", "4.2") == []


def test_the_metadata_log() -> None:
    """Records that came with 3.6 and 3.7, and versions that came with 3.7 and 4.3; nothing is ever skipped."""
    kinds = by_kind([(line[0], line[1], line[2]) for line in _metadata_kinds()])
    expected = {
        "4.2": {("RegisterBrokerRecord", 4), ("BrokerRegistrationChangeRecord", 3)},
        "3.5": {
            ("RegisterBrokerRecord", 3),
            ("RegisterBrokerRecord", 4),
            ("BrokerRegistrationChangeRecord", 3),
            ("PartitionRecord", 2),
            ("PartitionChangeRecord", 2),
            ("BeginTransactionRecord", 0),
            ("EndTransactionRecord", 0),
            ("RegisterControllerRecord", 0),
        },
    }
    names = {api_key: one.name for api_key, one in BUILT_IN.formats["metadata"].types.items()}
    for release, unread in expected.items():
        counted = {
            (0, name, version, None, None, count, first, "fails")
            for (api_key, version, _, _), (count, first) in kinds.items()
            if (name := names[api_key or 0], version) in unread
        }
        found = short(rows("metadata", "__cluster_metadata", release))
        assert {row[1:3] for row in found} == unread
        assert set(found) == counted
    assert rows("metadata", "__cluster_metadata", "4.3") == []


def _metadata_kinds() -> list[tuple[int, dict[str, Any], tuple[int | None, int | None, bool, bool]]]:
    from golden_files import GOLDEN, lines

    found = []
    for line in lines(GOLDEN / "metadata" / "expected" / "metadata_records.jsonl"):
        if line["file"].endswith(".log") and "type_id" in line:
            found.append((line["offset"], line, (line["type_id"], line["version"], False, False)))
    return found


def test_messages_say_what_is_lost() -> None:
    """For each outcome."""
    found = {
        (row["type"], row["value_version"], row["tag"]): row["message"]
        for release in ("3.4.0", "3.8")
        for row in rows("coordinator_future", "__consumer_offsets", release)
    }
    assert found["OffsetCommit", 5, None] == "3.8.0 reads versions 0 to 4 of the value"
    assert found["OffsetCommit", None, None].endswith("no release reads it")
    assert found[None, None, None] == "it does not say which type of record it is; no release reads it"
    nobody = "3.8.0 does not know records of type 99, nor does any release up to 4.4: what is lost nobody can say"
    assert found["99", 0, None] == nobody
    assert found["ShareGroupMetadata", 0, None] == "3.8.0 does not know records of type 11: share groups are not known"
    assert "group.coordinator.rebalance.protocols" in found["ConsumerGroupMetadata", 0, None]
    assert "a topic that is made anew" in found["OffsetCommit", 4, 0]
    assert found["OffsetCommit", 4, 300] == "no release up to 4.4 knows this tagged field: what it means is lost"
    older = rows("coordinator_future", "__consumer_offsets", "3.4.0")
    assert [row["message"] for row in older if row["type"] == "99"] == [
        "3.4.0 does not know records of type 99, and is from before KIP-915"
    ] * 2


@pytest.mark.parametrize("name", BY_915 + BEFORE_915)
def test_who_skips_unknown_types(name: str) -> None:
    """The releases that KIP-915 names, and all from 3.5 on."""
    assert skips_unknown_types(release_of(name)) == (name in BY_915)


@pytest.mark.parametrize("name", ["2.8", "4.5", "5.0.0", "3", "3.4.1.2", "", "3.6-IV", "newest", "٣.4"])
def test_releases_that_are_not_known(name: str) -> None:
    """Say so."""
    with pytest.raises(ValueError, match=r"is neither a release|is unknown here"):
        release_of(name)


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_newest_release_reads_what_is_defined(format_name: str) -> None:
    """Types by the names and with the versions that messages are defined with; all are of 4.4."""
    types = {key: one for key, one in BUILT_IN.formats[format_name].types.items() if one.value is not None}
    read = readers(format_name, release_of("4.4"))
    assert {key: reader.name for key, reader in read.items()} == {key: one.name for key, one in types.items()}
    legacy = {0: 0} if format_name == "consumer_offsets" else {}
    assert {key: reader.versions.last for key, reader in read.items()} == {
        key: one.value.versions.last for key, one in types.items() if one.value is not None
    } | legacy
    assert name_of_type(format_name, 4711) is None
