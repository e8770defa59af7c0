"""``kraftlog.decode_messages`` and ``kraftlog.encode_messages``."""

from __future__ import annotations

import base64

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.messages.arrow_types import TAGGED_FIELD
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.writer import encode_messages
from kraftlog.messages.written_version import written_version

UNKNOWN = pa.list_(TAGGED_FIELD)


def test_records_of_one_type_among_others() -> None:
    """The others are rows that say what they are."""
    records = kraftlog.open(GOLDEN / "metadata" / "log").records(["value"], start_offset=10, end_offset=16).to_table()
    rows = kraftlog.decode_messages("TopicRecord", records["value"].combine_chunks())
    answers = [
        one
        for one in lines(GOLDEN / "metadata" / "expected" / "metadata_records.jsonl")
        if one["file"].endswith(".log") and 10 <= one["offset"] < 16
    ]
    for row, answer in zip(rows.to_pylist(), answers, strict=True):
        if answer["type"] == "TOPIC_RECORD":
            assert (row["name"], row["topic_id"], row["error"]) == (*answer["data"].values(), None)
        else:
            assert row["name"] is None
            assert row["error"].startswith("a record of type ")


def test_records_with_keys_come_back() -> None:
    """Key and value of every offset commit that a broker wrote, byte for byte."""
    records = kraftlog.open(GOLDEN / "groups" / "log").records(["key", "value"]).to_table().combine_chunks()
    keys, values = (records[name].combine_chunks() for name in ("key", "value"))
    rows = pa.Table.from_batches([kraftlog.decode_messages("OffsetCommit", values, keys=keys)])
    is_commit = pa.compute.and_(pa.compute.is_null(rows["error"]), pa.compute.is_valid(rows["value_offset"]))
    rows = rows.filter(is_commit)
    assert rows.num_rows > 20
    key = rows.select(["group", "key_topic", "key_partition"]).rename_columns(["group", "topic", "partition"])
    assert kraftlog.encode_messages("OffsetCommitKey", key, 0).equals(keys.filter(is_commit.combine_chunks()))
    value = rows.rename_columns({"value_offset": "offset"})
    fields = ["offset", "leader_epoch", "metadata", "commit_timestamp", "topic_id", "unknown_tagged_fields"]
    assert kraftlog.encode_messages("OffsetCommitValue", value.select(fields), 4).equals(
        values.filter(is_commit.combine_chunks())
    )


def test_messages_that_are_no_records() -> None:
    """What members tell of themselves, as Kafka's own client reads it."""
    answers = [
        member
        for one in lines(GOLDEN / "groups" / "expected" / "consumer_offsets.jsonl")
        for member in one.get("members_as_consumer_protocol", [])
    ]
    subscriptions = [
        one["value"]["data"]["members"]
        for one in lines(GOLDEN / "groups" / "expected" / "consumer_offsets.jsonl")
        if (one.get("value") or {}).get("name") == "GroupMetadataValue"
    ]
    blobs = [base64.b64decode(member["subscription"]) for members in subscriptions for member in members]
    rows = kraftlog.decode_messages("ConsumerProtocolSubscription", pa.array(blobs, pa.binary())).to_pylist()
    assert [row["error"] for row in rows] == [None] * len(answers)
    assert [row["topics"] for row in rows] == [one["subscription"]["topics"] for one in answers]


def test_a_version_that_is_told() -> None:
    """Then nothing stands before the message."""
    table = pa.table({"topics": [["a", "b"]], "user_data": pa.array([None], pa.binary())})
    plain = kraftlog.encode_messages("ConsumerProtocolSubscription", table, 0, with_prefix=False)
    prefixed = kraftlog.encode_messages("ConsumerProtocolSubscription", table, 0)
    assert prefixed[0].as_py() == b"\0\0" + plain[0].as_py()
    of_plain = kraftlog.decode_messages("ConsumerProtocolSubscription", plain, version=0)
    assert of_plain.equals(kraftlog.decode_messages("ConsumerProtocolSubscription", prefixed))
    assert of_plain.column("topics").to_pylist() == [["a", "b"]]


def test_one_side_of_a_record() -> None:
    """Its columns have the names of its own fields, and go back in as they come out."""
    key = pa.table({"group": ["g"], "topic": ["orders"], "partition": pa.array([3], pa.int32())})
    keys = kraftlog.encode_messages("OffsetCommitKey", key)
    decoded = kraftlog.decode_messages("OffsetCommitKey", keys)
    assert decoded.drop_columns(["unknown_tagged_fields", "error"]).to_pylist() == key.to_pylist()
    assert kraftlog.encode_messages("OffsetCommitKey", decoded.drop_columns(["error"])).equals(keys)
    prefixed = key.rename_columns(["group", "key_topic", "key_partition"])
    assert kraftlog.encode_messages("OffsetCommitKey", prefixed).equals(keys)
    other = pa.array([b"\0\2\0\1g"])
    assert kraftlog.decode_messages("OffsetCommitKey", other).column("error").to_pylist() == ["value: type 2 is not 1"]
    value = kraftlog.encode_messages("OffsetCommitValue", pa.table({"value_offset": [7]}), 3)
    assert kraftlog.decode_messages("OffsetCommitValue", value).column("offset").to_pylist() == [7]


@pytest.mark.parametrize("version", [None, 0])
def test_null_values(version: int | None) -> None:
    """They are rows with an error, among others and alone."""
    blob = b"\0\0\0\0" + b"\xff" * 4
    values = pa.array([None, blob if version is not None else b"\0\0" + blob, None], pa.binary())
    rows = kraftlog.decode_messages("ConsumerProtocolSubscription", values, version=version)
    assert rows.column("error").to_pylist() == ["value: the value is null", None, "value: the value is null"]
    assert rows.column("topics").to_pylist() == [None, [], None]
    alone = kraftlog.decode_messages("ConsumerProtocolSubscription", pa.array([None], pa.binary()), version=version)
    assert alone.column("error").to_pylist() == ["value: the value is null"]


def test_control_records_are_as_in_the_log() -> None:
    """Their version is their first field, and nothing stands before it."""
    log = kraftlog.open(GOLDEN / "metadata" / "log" / "bootstrap.checkpoint")
    rows = log.records(["control_type", "value"], include_control=True).to_table().to_pylist()
    header = next(row["value"] for row in rows if row["control_type"] == "SNAPSHOT_HEADER")
    decoded = kraftlog.decode_messages("SnapshotHeaderRecord", pa.array([header]))
    assert decoded.column("error").to_pylist() == [None]
    assert decoded.column("last_contained_log_timestamp").to_pylist() == [0]
    assert kraftlog.encode_messages("SnapshotHeaderRecord", decoded.drop_columns(["error"]), 0)[0].as_py() == header


def test_wrong_arguments() -> None:
    """Each refusal says what there is."""
    nothing = pa.array([b""])
    with pytest.raises(ValueError, match="no message 'Nothing' is known"):
        kraftlog.decode_messages("Nothing", nothing)
    with pytest.raises(ValueError, match="no message 'Nothing' is known"):
        kraftlog.encode_messages("Nothing", pa.table({"a": [1]}), 0)
    with pytest.raises(ValueError, match="says its version itself"):
        kraftlog.decode_messages("TopicRecord", nothing, version=0)
    with pytest.raises(ValueError, match="version 9 is not in 0-3"):
        kraftlog.decode_messages("ConsumerProtocolSubscription", nothing, version=9)
    with pytest.raises(ValueError, match="records of consumer_offsets have keys"):
        kraftlog.decode_messages("OffsetCommit", nothing)


@pytest.mark.parametrize(
    ("name", "columns", "version"),
    [
        ("OffsetCommitValue", {}, 3),
        ("OffsetCommitValue", {"leader_epoch": pa.array([4], pa.int32())}, 3),
        ("OffsetCommitValue", {"expire_timestamp": [1704067200000]}, 1),
        ("OffsetCommitValue", {"topic_id": ["Uc4CZnaAGFAZGlBiDRq_IQ"]}, 4),
        ("TransactionLogValue", {}, 0),
        ("TransactionLogValue", {"client_transaction_version": pa.array([2], pa.int16())}, 1),
        ("GroupMetadataValue", {"generation": pa.array([1], pa.int32())}, 3),
        ("PartitionRecord", {}, 2),
        ("OffsetCommitKey", {"group": ["g"]}, 0),
    ],
)
def test_version_that_is_written(name: str, columns: dict[str, pa.Array], version: int) -> None:
    """As KIP-915 wants it: not flexible unless it must be; an expiry needs version 1."""
    table = pa.table(columns) if columns else pa.table({"unknown_tagged_fields": pa.nulls(1, UNKNOWN)})
    definition = BUILT_IN.messages[name]
    chosen = kraftlog.encode_messages(name, table, with_prefix=False)
    assert chosen.equals(encode_messages(definition, version, table))
    assert written_version(definition, table) == version
