"""Which types of records there are, and how their columns are called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraftlog.messages.catalog import BUILT_IN, FORMATS, format_of_topic

KEYED = ["consumer_offsets", "share_group_state", "transaction_state"]


def test_api_keys_of_each_format() -> None:
    assert {name: sorted(record_format.types) for name, record_format in BUILT_IN.formats.items()} == {
        "metadata": [0, 1, 2, 3, 4, 5, *range(7, 13), 14, 15, *range(17, 30)],
        "consumer_offsets": [*range(9), *range(10, 18), *range(19, 24)],
        "transaction_state": [0],
        "share_group_state": [0, 1],
        "remote_log_metadata": [0, 1, 2, 3],
        "offset_syncs": [0],
        "checkpoints": [0],
        "heartbeats": [0],
    }


@pytest.mark.parametrize("name", KEYED)
def test_keys_and_values_belong_together(name: str) -> None:
    for api_key, record_type in BUILT_IN.formats[name].types.items():
        assert record_type.key is not None
        assert record_type.value is not None
        assert record_type.key.api_key == record_type.api_key == api_key
        assert record_type.value.api_key == (1 if record_type.name == "OffsetCommit" else api_key)
        assert record_type.value.name == f"{record_type.name}Value"
        assert record_type.key_version in record_type.key.versions


def test_offset_commits_of_both_types_are_one() -> None:
    types = BUILT_IN.formats["consumer_offsets"].types
    assert types[0].name == types[1].name == "OffsetCommit"
    assert types[0].value is types[1].value is BUILT_IN.messages["OffsetCommitValue"]
    assert [name for name, _, _ in types[0].columns] == [name for name, _, _ in types[1].columns]
    assert [(name, field.name, side) for name, field, side in types[1].columns] == [
        ("group", "group", "key"),
        ("key_topic", "topic", "key"),
        ("key_partition", "partition", "key"),
        ("value_offset", "offset", "value"),
        ("leader_epoch", "leaderEpoch", "value"),
        ("metadata", "metadata", "value"),
        ("commit_timestamp", "commitTimestamp", "value"),
        ("expire_timestamp", "expireTimestamp", "value"),
        ("topic_id", "topicId", "value"),
    ]


def test_a_name_that_key_and_value_have_is_told_apart() -> None:
    record_type = BUILT_IN.formats["transaction_state"].types[0]
    assert record_type.key is not None
    same = replace(record_type.key.fields[0], name="producerId")
    columns = replace(record_type, key=replace(record_type.key, fields=(same,))).columns
    assert [name for name, _, _ in columns[:3]] == ["key_producer_id", "value_producer_id", "previous_producer_id"]


@pytest.mark.parametrize("format_name", FORMATS)
def test_no_type_has_two_columns_of_one_name(format_name: str) -> None:
    for record_type in BUILT_IN.formats[format_name].types.values():
        names = [name for name, _, _ in record_type.columns]
        assert len(set(names)) == len(names)


def test_topics() -> None:
    topics = ["__cluster_metadata", *(f"__{name}" for name in FORMATS[1:5])]
    topics += ["mm2-offset-syncs.b.internal", "a.checkpoints.internal", "heartbeats"]
    assert [format_of_topic(topic) for topic in topics] == list(FORMATS)
    assert [format_of_topic(topic) for topic in ("orders", "metadata", "__metadata", "")] == [None] * 4


def test_definitions_replace_those_of_the_same_name_and_of_the_same_records() -> None:
    key, value = (BUILT_IN.messages[f"ShareUpdate{side}"] for side in ("Key", "Value"))
    renamed = {
        "ShareDeltaKey": replace(key, name="ShareDeltaKey"),
        "ShareDeltaValue": replace(value, name="ShareDeltaValue"),
    }
    commit = replace(BUILT_IN.messages["OffsetCommitValue"], fields=())
    catalog = BUILT_IN.with_definitions({**renamed, "OffsetCommitValue": commit})
    assert catalog.formats["share_group_state"].types[1].name == "ShareDelta"
    assert "ShareUpdateKey" not in catalog.messages
    assert {catalog.formats["consumer_offsets"].types[api_key].value for api_key in (0, 1)} == {commit}
    assert BUILT_IN.formats["share_group_state"].types[1].name == "ShareUpdate"
    assert catalog.formats["metadata"] == BUILT_IN.formats["metadata"]


def test_two_types_of_one_api_key_are_refused() -> None:
    two = {name: replace(BUILT_IN.messages["TopicRecord"], name=name) for name in ("OneRecord", "OtherRecord")}
    with pytest.raises(ValueError, match="OneRecord and OtherRecord of metadata have the same api key 2"):
        BUILT_IN.with_definitions(two)
