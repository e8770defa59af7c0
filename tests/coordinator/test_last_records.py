"""The fold by the bytes of keys against a plain one, of records that were decoded one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_fold import PlainFold

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import int16_prefix
from kraftlog.messages.last_records import GroupRule, LastRecords, Markers
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.writer import encode_messages

_FORMAT = BUILT_IN.formats["consumer_offsets"]
_READER = MessageReader(_FORMAT)
_RULE = GroupRule("OffsetCommit", ["GroupMetadata", "ConsumerGroupMetadata"])
_WANTED = ["OffsetCommit", "GroupMetadata", "ConsumerGroupMetadata"]
_RECORDS = pa.schema(
    [("key", pa.binary()), ("value", pa.binary()), ("offset", pa.int64()), ("producer_id", pa.int64())]
)
Event = tuple[str, Any, Any, int]


def _message(name: str, version: int, prefix: int, **fields: Any) -> bytes:
    columns = pa.record_batch({field: pa.array([value]) for field, value in fields.items()})
    encoded = encode_messages(BUILT_IN.messages[name], version, columns, prefix=int16_prefix(prefix))
    found: bytes = encoded[0].as_py()
    return found


def _commit_key(kind: int, group: str, topic: str, partition: int) -> bytes:
    return int16_prefix(kind) + b"".join(
        [*(int16_prefix(len(text.encode())) + text.encode() for text in (group, topic)), partition.to_bytes(4)]
    )


_COMMIT_KEYS = [_commit_key(kind, group, "t", 0) for kind in (0, 1) for group in ("g", "ü", "\ufffd")]
_KEYS = [
    *_COMMIT_KEYS,
    _commit_key(1, "g", "u", 7),
    _commit_key(1, "g", "t", 0) + b"behind",
    _commit_key(1, "g", "t", 0)[:-1],
    _commit_key(1, "?", "t", 0).replace(b"?", b"\xff"),  # U+FFFD to Java
    *(_message(f"{name}Key", 0, kind, **{field: "g"}) for name, kind, field in
      (("GroupMetadata", 2, "group"), ("ConsumerGroupMetadata", 3, "group_id"))),
    int16_prefix(99) + b"of a later release",
    int16_prefix(-1),
    b"\x00",
    None,
]  # fmt: skip
_COMMITS = [_message("OffsetCommitValue", version, version, offset=5, metadata="m" * version) for version in range(5)]
_VALUES = [
    *_COMMITS,
    *(value + b"behind" for value in _COMMITS[1:3]),
    *(value[:-1] for value in _COMMITS[2:]),
    int16_prefix(0) + (3).to_bytes(4) + b"\0",
    int16_prefix(9) + b"of a later release",
    b"",
    None,
    None,
    None,
]
_PRODUCERS = st.sampled_from([-1, -1, 0, 1, 7_000_000_000])
_LOGS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.sampled_from(_COMMIT_KEYS), st.sampled_from([*_COMMITS, None]), _PRODUCERS),
        st.tuples(st.just("record"), st.sampled_from(_KEYS), st.sampled_from(_VALUES), _PRODUCERS),
        st.tuples(st.sampled_from(["COMMIT", "ABORT"]), st.none(), st.none(), _PRODUCERS.filter(lambda p: p >= 0)),
    ),
    max_size=60,
)


class _Plain:
    """Decodes every record by itself."""

    def __init__(self) -> None:
        self.offsets = PlainFold()
        self.groups: dict[str, dict[str, int]] = {name: {} for name in _WANTED[1:]}
        self.made: dict[str, tuple[int, int]] = {}
        self.faults: dict[int, str] = {}

    def replay(self, at: int, event: Event) -> None:
        kind, key, value, producer = event
        if kind != "record":
            self.offsets.replay(at, kind, None, producer)
            return
        messages = _READER.read(pa.array([key], pa.binary()), pa.array([value], pa.binary()))
        for name in messages.types_there:
            if name in _WANTED:
                for row in messages.typed(name).fields.to_pylist():
                    self._replay(at, name, row, producer, int(messages.value_versions[0]), is_tombstone=value is None)
        if messages.faults:
            self.faults[at] = messages.faults[0]

    def _replay(
        self, at: int, name: str, row: dict[str, Any], producer: int, version: int, *, is_tombstone: bool
    ) -> None:
        if name == "OffsetCommit":
            key = (row["group"], row["key_topic"], row["key_partition"])
            self.offsets.replay(at, "tombstone" if is_tombstone else "commit", key, producer)
            if not is_tombstone:
                self.made[row["group"]] = at, version
            return
        group = row["group" if name == "GroupMetadata" else "group_id"]
        self.groups[name].pop(group, None)
        if is_tombstone:
            self.made.pop(group, None)
        else:
            self.groups[name][group] = at


def _added(last: LastRecords, log: list[tuple[int, Event]]) -> dict[int, str]:
    """Add a stretch of a log; returns what is wrong with its records, by offset."""
    records = [(key, value, at, producer) for at, (kind, key, value, producer) in log if kind == "record"]
    ends = [(at, producer, kind == "COMMIT") for at, (kind, _, _, producer) in log if kind != "record"]
    columns = [list(column) for column in zip(*records, strict=True)] or [[]] * 4
    markers = [list(column) for column in zip(*ends, strict=True)] or [[]] * 3
    odd = last.add(
        pa.record_batch([pa.array(column, field.type) for column, field in zip(columns, _RECORDS, strict=True)],
                        schema=_RECORDS),
        Markers(*(np.array(column, kind) for column, kind in zip(markers, (np.int64, np.int64, bool), strict=True))),
    )  # fmt: skip
    return {} if odd is None else {records[odd.rows[row]][2]: text for row, text in odd.messages.faults.items()}


@settings(max_examples=300, deadline=None)
@given(_LOGS, st.lists(st.integers(0, 30), max_size=5))
def test_as_if_every_record_was_decoded(log: list[Event], cuts: list[int]) -> None:
    plain, last = _Plain(), LastRecords(_FORMAT, _WANTED, ["OffsetCommit"], _RULE)
    numbered, faults, at = list(enumerate(log)), {}, 0
    for offset, event in numbered:
        plain.replay(offset, event)
    for cut in [*cuts, len(log)]:
        faults |= _added(last, numbered[at : at + cut])
        at += cut
    assert faults == plain.faults
    found = {
        (
            (row["group"], row["key_topic"], row["key_partition"]),
            "committed" if row["producer_id"] < 0 else "pending",
            row["offset"],
            None if row["producer_id"] < 0 else row["producer_id"],
        )
        for row in last.typed("OffsetCommit").to_pylist()
    }
    assert found == plain.offsets.rows()
    assert len(found) == last.typed("OffsetCommit").num_rows
    for name, groups in plain.groups.items():
        field = "group" if name == "GroupMetadata" else "group_id"
        assert {row[field]: row["offset"] for row in last.typed(name).to_pylist()} == groups
    made = {row["group"]: (row["offset"], row["value_version"]) for row in last.groups().to_pylist()}
    assert made == plain.made


@pytest.mark.parametrize("keys", [1, 100, 3_000])
def test_values_of_changing_length_and_keys_that_go(keys: int) -> None:
    last, expected = LastRecords(_FORMAT, ["OffsetCommit"]), {}
    for turn in range(6):
        chosen = [number for number in range(keys) if number % 7 != turn]
        values = [
            None if number % 5 == turn else _COMMITS[1][:-20] + _COMMITS[1][-20:] if turn % 2 else _COMMITS[4]
            for number in chosen
        ]
        records = pa.record_batch(
            [
                pa.array([_commit_key(1, f"group-{number}", "t", number) for number in chosen], pa.binary()),
                pa.array(values, pa.binary()),
                pa.array([turn * keys + number for number in chosen], pa.int64()),
                pa.array([-1] * len(chosen), pa.int64()),
            ],
            schema=_RECORDS,
        )
        assert last.add(records) is None
        for number, value in zip(chosen, values, strict=True):
            expected.pop(number, None)
            if value is not None:
                expected[number] = turn * keys + number
    assert {row["key_partition"]: row["offset"] for row in last.typed("OffsetCommit").to_pylist()} == expected


def test_a_key_of_version_0_means_the_same() -> None:
    last = LastRecords(_FORMAT, ["OffsetCommit"])
    log = [("record", _commit_key(0, "g", "t", 0), _COMMITS[1], -1), ("record", _commit_key(1, "g", "t", 0), None, -1)]
    assert not _added(last, list(enumerate(log)))
    assert last.typed("OffsetCommit").num_rows == 0


def _mutated(random: np.random.Generator, message: bytes) -> bytes:
    at = int(random.integers(0, len(message)))
    kind = random.integers(0, 4)
    if kind == 0:
        return message[:at]
    if kind == 1:
        return message + b"\0\1"
    byte = int(random.integers(0, 256)) if kind == 2 else message[at] ^ 1 << int(random.integers(0, 8))
    return message[:at] + bytes([byte]) + message[at + 1 :]


@pytest.mark.parametrize("seed", range(20))
def test_damage_among_values_that_are_alike(seed: int) -> None:
    random = np.random.default_rng(seed)
    topic_ids = ["AAAAAAAAAAAAAAAAAAAAAQ", "-_BBAAAAAAAAAAAAAAAAAg"]
    values: list[bytes | None] = [
        _message("OffsetCommitValue", version, version, offset=offset, metadata="m" * length)
        for version in range(5) for offset in (1, 1 << 40) for length in (0, 3, 40)
    ] + [
        _message("OffsetCommitValue", 4, 4, offset=7, metadata="", topic_id=topic_id) for topic_id in topic_ids
    ]  # fmt: skip
    values.append(None)
    keys = [_commit_key(1, f"group-{number}", "topic", number) for number in range(30)]
    rows = []
    for at in range(3_000):
        key, value = keys[random.integers(0, len(keys))], values[random.integers(0, len(values))]
        if random.integers(0, 20) == 0 and value is not None:
            value = _mutated(random, value)
        if random.integers(0, 100) == 0:
            key = _mutated(random, key)
        rows.append((key, value, at, -1))
    records = pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _RECORDS, strict=True)],
        schema=_RECORDS,
    )
    messages = _READER.read(records.column("key"), records.column("value"))
    typed, expected = messages.typed("OffsetCommit"), {}
    for row, fields in zip(typed.rows.tolist(), typed.fields.to_pylist(), strict=True):
        key = fields["group"], fields["key_topic"], fields["key_partition"]
        expected.pop(key, None)
        if rows[row][1] is not None:
            expected[key] = row, fields["value_offset"], fields["metadata"], fields["topic_id"]
    last, faults, at = LastRecords(_FORMAT, ["OffsetCommit"], ["OffsetCommit"]), {}, 0
    for cut in [*sorted(random.integers(0, len(rows), 4).tolist()), len(rows)]:
        odd = last.add(records.slice(at, cut - at))
        if odd is not None:
            faults |= {at + int(odd.rows[row]): text for row, text in odd.messages.faults.items()}
        at = cut
    assert faults == dict(messages.faults)
    assert len(faults) > 20
    found = last.typed("OffsetCommit").to_pylist()
    assert {
        (row["group"], row["key_topic"], row["key_partition"]): (
            row["offset"],
            row["value_offset"],
            row["metadata"],
            row["topic_id"],
        )
        for row in found
    } == expected
