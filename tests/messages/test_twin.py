"""The plain-Python twin gives what Kafka's own classes gave, and the same bytes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import twin
from twin_records import decode_framed, decode_keyed, encode_framed, encode_keyed

import kraftlog
from golden_files import GOLDEN, hex_or_none, lines
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Definition

CONTROL = {
    "LEADER_CHANGE": "LeaderChangeMessage",
    "SNAPSHOT_HEADER": "SnapshotHeaderRecord",
    "SNAPSHOT_FOOTER": "SnapshotFooterRecord",
    "KRAFT_VERSION": "KRaftVersionRecord",
    "KRAFT_VOTERS": "VotersRecord",
    "COMMIT": "EndTxnMarker",
    "ABORT": "EndTxnMarker",
}
FRAMED = [
    ("schema_all", "metadata_records", "__cluster_metadata-0/00000000000000000000.log"),
    ("schema_all", "remote_log_metadata", "__remote_log_metadata-0/00000000000000000000.log"),
    ("metadata", "metadata_records", ""),
]
KEYED = [
    (scenario, name)
    for scenario in ("schema_all", "groups", "transactions", "share_state")
    for name in ("consumer_offsets", "transaction_state", "share_group_state")
    if (GOLDEN / scenario / "expected" / f"{name}.jsonl").exists()
]
# the log of schema_all is of 4.3; tests/metadata/test_unregistered.py reads a record of 4.4
OF_LATER_RELEASES = {("UnregisterControllerRecord", 0)}
Answer = tuple[dict[str, Any], bytes | None, bytes | None]


def records(file: Path) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Return key and value by offset."""
    columns = ["offset", "key", "value"]
    rows = kraftlog.open(file).records(columns=columns, include_control=True, strict=True).to_table().to_pylist()
    return {row["offset"]: (row["key"], row["value"]) for row in rows}


def answers(scenario: str, name: str, file: str = "") -> Iterator[Answer]:
    """Yield Kafka's answers, each with the key and value it is of; ``file`` is that of answers that name none."""
    found: dict[str, dict[int, tuple[bytes | None, bytes | None]]] = {}
    for answer in lines(GOLDEN / scenario / "expected" / f"{name}.jsonl"):
        path = answer.get("file", file)
        if path not in found:
            found[path] = records(GOLDEN / scenario / "log" / path)
        yield answer, *found[path].pop(answer["offset"])
    assert found
    assert not any(found.values()), "records without an answer"


def check(definition: Definition | None, version: int, message: twin.Message, answer: dict[str, Any]) -> None:
    """Compare a message with Kafka's JSON of it, the order of fields and unknown tagged fields included."""
    assert definition is not None
    assert json.dumps(twin.to_json(definition, version, message)) == json.dumps(answer["data"])
    unknown = [[tag, data.hex()] for tag, data in message[twin.UNKNOWN]]
    if not definition.name.startswith("Remote"):  # whose answers do not tell
        assert unknown == answer.get("unknown_tagged_fields", [])


def check_control(answer: dict[str, Any], value: bytes) -> None:
    definition = BUILT_IN.messages[CONTROL[answer["control_type"]]]
    if "coordinator_epoch" in answer:
        version, data = int.from_bytes(value[:2], "big"), value[2:]  # only of markers; the others have it as a field
        assert twin.decode(definition, version, data)["coordinator_epoch"] == answer["coordinator_epoch"]
        return
    version = answer.get("version", 0)
    message = twin.decode(definition, version, value)
    if "error_class" not in answer:  # Kafka takes every leader change for one of version 0
        check(definition, definition.versions.last, message, answer)  # whose JSON is that of its last version
    assert twin.encode(definition, version, message) == value


@pytest.mark.parametrize(("scenario", "name", "file"), FRAMED)
def test_framed_records(scenario: str, name: str, file: str) -> None:
    record_format = BUILT_IN.formats["remote_log_metadata" if name == "remote_log_metadata" else "metadata"]
    seen = set()
    for answer, key, value in answers(scenario, name, file):
        assert key is None or "control_type" in answer
        assert value is not None
        if "control_type" in answer:
            check_control(answer, value)
        elif "error_class" in answer:
            with pytest.raises(twin.MalformedError):
                decode_framed(record_format, value)
        else:
            record = decode_framed(record_format, value)
            assert record.record_type.name.upper() == answer["type"].replace("_", "").upper()
            assert (record.record_type.api_key, record.version) == (answer["type_id"], answer["version"])
            assert record.value is not None
            check(record.record_type.value, record.version, record.value, answer)
            assert encode_framed(record) == value
            seen.add((record.record_type.name, record.version))
    if scenario == "schema_all":
        assert seen == every_version(record_format.name) - OF_LATER_RELEASES


def every_version(format_name: str) -> set[tuple[str, int]]:
    return {
        (record_type.name, version)
        for record_type in BUILT_IN.formats[format_name].types.values()
        if record_type.value is not None
        for version in range(record_type.value.versions.first, record_type.value.versions.last + 1)
    }


@pytest.mark.parametrize(("scenario", "name"), KEYED)
def test_keyed_records(scenario: str, name: str) -> None:
    record_format = BUILT_IN.formats[name]
    seen = set()
    for answer, key, value in answers(scenario, name):
        if "control_type" in answer:
            assert value is not None
            check_control(answer, value)
            continue
        record = decode_keyed(record_format, key, value)
        assert record.record_type.api_key == answer["key"]["type"]
        assert record.record_type.name == answer["key"]["name"].removesuffix("Key").removeprefix("Legacy")
        assert record.key is not None
        check(record.record_type.key, 0, record.key, answer["key"])
        assert (record.value is None) == (answer["value"] is None)
        if record.value is not None:
            assert record.version == answer["value"]["version"]
            check(record.record_type.value, record.version, record.value, answer["value"])
            seen.add((record.record_type.name, record.version))
            check_members(answer.get("members_as_consumer_protocol", []), record.value)
        assert encode_keyed(record) == (key, value)
    if scenario == "schema_all":
        assert seen == every_version(record_format.name)


def check_members(expected: list[dict[str, Any]], group: twin.Message) -> None:
    """Compare the members of a classic group with what Kafka's client makes of them."""
    for answer, member in zip(expected, group["members"] if expected else [], strict=True):
        assert answer["member_id"] == member["member_id"]
        check_member(answer["subscription"], "ConsumerProtocolSubscription", member["subscription"])
        check_member(answer["assignment"], "ConsumerProtocolAssignment", member["assignment"])


def check_member(answer: dict[str, Any], name: str, data: bytes) -> None:
    definition = BUILT_IN.messages[name]
    if "version" not in answer:
        assert (len(data), answer["bytes"]) == (0, 0)
        return
    if "error_class" in answer:
        with pytest.raises(twin.MalformedError):
            protocol(definition, data)
        return
    version, message = protocol(definition, data)
    assert version == answer["version"]
    assert twin.encode(definition, version, message) == data[2:]
    if "topics" in answer:
        assert message["topics"] == answer["topics"]
        assert partitions(message["owned_partitions"]) == answer["owned_partitions"]
        assert (message["generation_id"], message["rack_id"]) == (answer["generation_id"], answer["rack_id"])
    else:
        assert partitions(message["assigned_partitions"]) == answer["partitions"]
    user_data = message["user_data"]
    assert answer["user_data"] == hex_or_none(user_data)


def protocol(definition: Definition, data: bytes) -> tuple[int, twin.Message]:
    version = twin.Reader(data).number("int16")
    known = min(version, definition.versions.last)  # a later version is read as the last one that is known
    return version, twin.decode_first(definition, known, data[2:])[0]


def partitions(topics: list[twin.Message]) -> list[str]:
    return [f"{topic['topic']}-{partition}" for topic in topics for partition in topic["partitions"]]


def test_control_records_of_the_raft_log() -> None:
    file = "raft-control-0/00000000000000000000.log"
    for answer, _, value in answers("schema_all", "raft_control_records", file):
        assert value is not None
        check_control(answer, value)
