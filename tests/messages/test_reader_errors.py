"""What is said of records that cannot be read: worked out by hand from what each case of the golden files is."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from message_answers import golden

from golden_files import GOLDEN
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.reader import MessageReader

NO_VALUE = "value: a field of 2 bytes, but 0 bytes left"
NULL_KEY = "key: the key is null"
UNKNOWN_FRAME = "value: frame version 0 is not 1"
OFFSET_COMMIT_KEY = "key: version 0 of OffsetCommit"
NOT_NULL = "null, which this version does not allow"
NO_MEMBER = "key: version 0 of StreamsGroupCurrentMemberAssignment, memberId: a field of 2 bytes, but 0 bytes left"

OFFSET_COMMITS = {
    23: "value: version 5 of OffsetCommit is not between 0 and 4",
    24: "value: version 9 of OffsetCommit is not between 0 and 4",
    25: "value: version 1000 of OffsetCommit is not between 0 and 4",
    26: "value: version 32767 of OffsetCommit is not between 0 and 4",
    27: "value: version -1 of OffsetCommit is not between 0 and 4",
    28: "value: version 4 of OffsetCommit, offset: a field of 8 bytes, but 7 bytes left, at byte 2",
    29: "value: a field of 2 bytes, but 1 bytes left",
    30: NO_VALUE,
    31: "value: version 3 of OffsetCommit: 8 bytes left behind the message, at byte 25",
    33: f"{OFFSET_COMMIT_KEY}: 2 bytes left behind the message, at byte 14",
    92: f"{OFFSET_COMMIT_KEY}, group: length 3 exceeds 1 bytes left, at byte 4",
    93: f"{OFFSET_COMMIT_KEY}, group: length 500 exceeds 3 bytes left, at byte 4",
    94: f"{OFFSET_COMMIT_KEY}, group: null, which this version does not allow, at byte 4",
}
UNKNOWN_TYPES = {57: 9, 60: 18, 63: 24, 66: 99, 69: 1000, 72: 32767, 75: -1, 78: -32768}
ARBITRARY_BYTES = {
    81: f"value: version 0 of ConsumerGroupPartitionMetadata, topics: {NOT_NULL}, at byte 3",
    83: NO_VALUE,
    84: f"{NO_MEMBER}, at byte 13",
    85: f"{NO_MEMBER}, at byte 13",
    86: NO_VALUE,
    87: "value: version 0 of StreamsGroupTopology, subtopologies: 96 elements, but 1 bytes left, at byte 7",
    89: NO_VALUE,
    90: "key: a field of 2 bytes, but 0 bytes left",
    91: "key: a field of 2 bytes, but 1 bytes left",
}
NEW_GROUPS = {  # four cases each: as it is, an unknown version, a tombstone, a value of no bytes
    95: "ConsumerGroupMetadata",
    99: "ConsumerGroupPartitionMetadata",
    103: "ConsumerGroupMemberMetadata",
    107: "ConsumerGroupTargetAssignmentMetadata",
    111: "ConsumerGroupTargetAssignmentMember",
    115: "ConsumerGroupCurrentMemberAssignment",
    119: "ShareGroupMemberMetadata",
    123: "ShareGroupMetadata",
    127: "ShareGroupTargetAssignmentMetadata",
    131: "ShareGroupTargetAssignmentMember",
    135: "ShareGroupCurrentMemberAssignment",
    139: "ShareGroupStatePartitionMetadata",
    143: "ConsumerGroupRegularExpression",
    147: "StreamsGroupMetadata",
    151: "StreamsGroupMemberMetadata",
    155: "StreamsGroupTargetAssignmentMetadata",
    159: "StreamsGroupTargetAssignmentMember",
    163: "StreamsGroupCurrentMemberAssignment",
    167: "StreamsGroupTopology",
}
FUTURE_OFFSETS = {
    **OFFSET_COMMITS,
    55: "value: version 5 of GroupMetadata is not between 0 and 4",
    **{first + more: f"unknown type {number}" for first, number in UNKNOWN_TYPES.items() for more in range(3)},
    **ARBITRARY_BYTES,
    **{first + 1: f"value: version 1 of {name} is not between 0 and 0" for first, name in NEW_GROUPS.items()},
    **{first + 3: NO_VALUE for first in NEW_GROUPS},
    171: NULL_KEY,
    172: NULL_KEY,
}
FUTURE_TRANSACTIONS = {
    27: "value: version 2 of TransactionLog is not between 0 and 1",
    28: "value: version 77 of TransactionLog is not between 0 and 1",
    30: NO_VALUE,
    31: "unknown type 1",
    32: "unknown type 1",
    33: "unknown type 2",
    34: "unknown type 2",
    35: "unknown type 50",
    36: "unknown type 50",
    37: "key: a field of 2 bytes, but 0 bytes left",
    39: NULL_KEY,
}
METADATA = {
    111: "value: a field of 1 bytes, but 0 bytes left",
    112: UNKNOWN_FRAME,
    113: "value: a field of 1 bytes, but 0 bytes left",
    114: "value: frame version 2 is not 1",
    115: "value: a field of 1 bytes, but 0 bytes left",
    116: "value: version 99 of TopicRecord is not between 0 and 0",
    117: "value: unknown type 120",
    118: "value: 32768 is not between 0 and 32767",
    120: "value: version 0 of NoOpRecord: 1 bytes left behind the message, at byte 4",
    121: "value: version 0 of NoOpRecord: a field of 1 bytes, but 0 bytes left, at byte 3",
}
REMOTE_LOG_METADATA = {
    15: "value: a field of 1 bytes, but 0 bytes left",
    16: UNKNOWN_FRAME,
    17: UNKNOWN_FRAME,
    18: "value: frame version 9 is not 1",
    19: UNKNOWN_FRAME,
    20: "value: version 1 of RemoteLogSegmentMetadataRecord is not between 0 and 0",
}
EXPECTED = {
    "coordinator_future:consumer_offsets": FUTURE_OFFSETS,
    "coordinator_future:transaction_state": FUTURE_TRANSACTIONS,
    "schema_all:consumer_offsets": {},
    "schema_all:transaction_state": {},
    "schema_all:share_group_state": {},
    "schema_all:metadata_records": METADATA,
    "schema_all:remote_log_metadata": {},
    "remote_log_metadata:remote_log_metadata": REMOTE_LOG_METADATA,
}


@pytest.mark.parametrize("json_first", [True, False])
@pytest.mark.parametrize("name", EXPECTED)
def test_errors(name: str, json_first: bool) -> None:
    """They are the same whether a record is read for its JSON or for its columns."""
    (found,) = golden(name)
    messages = MessageReader(found.record_format).read(found.keys_array(), found.values_array())
    if json_first:
        messages.json()
    else:
        for type_name in messages.types_there:
            messages.typed(type_name)
    errors = messages.errors.to_pylist()
    assert {found.offsets[row]: text for row, text in enumerate(errors) if text} == EXPECTED[name]


def test_the_cases_are_those_that_the_texts_are_for() -> None:
    cases = json.loads((GOLDEN / "coordinator_future/expected/consumer_offsets_cases.json").read_text())
    names = {case["offset"]: case["case"] for case in cases}
    for first, number in UNKNOWN_TYPES.items():
        assert names[first] == f"unknown key type {number} with a value"
    for first, name in NEW_GROUPS.items():
        kafka_name = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name).lstrip("_")
        assert names[first] == f"{kafka_name} value 0, unknown tagged fields in every struct"
        assert names[first + 3] == f"{kafka_name} empty value"


@pytest.mark.parametrize("json_first", [True, False])
def test_a_record_with_bytes_behind_it_is_shown_whatever_was_asked_for_first(json_first: bool) -> None:
    (found,) = golden("coordinator_future:consumer_offsets")
    messages = MessageReader(found.record_format).read(found.keys_array(), found.values_array())
    if json_first:
        messages.json()
    rows = messages.typed("OffsetCommit").rows.tolist()
    assert {found.offsets[row] for row in rows} >= {31, 33}
    assert [row for row in rows if found.offsets[row] in {28, 29, 92}] == []
    assert messages.json()[1][rows[0]].is_valid


def test_the_first_fault_is_named_when_key_and_value_have_one() -> None:
    """A key of one string that is cut off, a value of version 0 that is."""
    key, value = bytes.fromhex("0001 0003 61"), bytes.fromhex("0000 00")
    texts = []
    for ask in ("json", "typed"):
        reader = MessageReader(BUILT_IN.formats["consumer_offsets"])
        messages = reader.read(pa.array([key], pa.binary()), pa.array([value], pa.binary()))
        if ask == "json":
            assert [column.to_pylist() for column in messages.json()] == [[None], [None]]
        else:
            assert messages.typed("OffsetCommit").fields.num_rows == 0
        texts += messages.errors.to_pylist()
    assert texts == [f"{OFFSET_COMMIT_KEY}, group: length 3 exceeds 1 bytes left, at byte 4"] * 2
