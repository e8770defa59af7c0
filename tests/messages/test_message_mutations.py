"""Damaged messages: the reader takes what the twin takes, refuses what it refuses, and never needs much memory."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import twin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from message_answers import Golden, comparable, decode_record, expected_json, golden, in_order, typed_row
from odd_definitions import filled_message, odd_definitions
from twin_records import OF_MIRROR_MAKER, Record

from golden_files import GOLDEN, lines
from kraftlog._native import message as native
from kraftlog.messages.catalog import BUILT_IN, FORMATS, format_of_topic
from kraftlog.messages.definition import Definition, Field
from kraftlog.messages.frames import frame, framed
from kraftlog.messages.layout import layout
from kraftlog.messages.program import programs
from kraftlog.messages.reader import FRAMED, MessageReader, Messages
from kraftlog.messages.record_type import RecordFormat, RecordType

# Where the reader is stricter than Kafka's classes, and with them the twin: of two fields of one tag they take the
# last, and numbers of 2^31 and more are negative ones to them, which is null or an empty list. Nobody writes either.
DELIBERATE = ("stands there twice", "is not between 0 and 2147483647")
LEFT_BEHIND = "bytes left behind the message"
ODD_FORMAT = RecordFormat(
    "metadata",
    {300 + number: RecordType(one.name, 300 + number, None, one) for number, one in enumerate(odd_definitions())},
)
SOURCES = {
    "metadata": ["schema_all:metadata_records"],
    "consumer_offsets": ["schema_all:consumer_offsets", "coordinator_future:consumer_offsets"],
    "transaction_state": ["schema_all:transaction_state", "coordinator_future:transaction_state"],
    "share_group_state": ["schema_all:share_group_state"],
    "remote_log_metadata": ["schema_all:remote_log_metadata", "remote_log_metadata:remote_log_metadata"],
}
INTERESTING = [0, 1, 2, 0x0F, 0x7F, 0x80, 0x81, 0xFE, 0xFF]
MOST_BYTES = 40  # of one value in a column: its text, where it ends, and whether it is valid
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@cache
def seeds(name: str) -> list[tuple[bytes | None, bytes | None]]:
    """Return keys and values of a format that Kafka wrote."""
    if name in OF_MIRROR_MAKER:
        rows = [
            row for row in lines(GOLDEN / "mirror_maker" / "records.jsonl") if format_of_topic(row["topic"]) == name
        ]
        return [(bytes.fromhex(row["key"]), bytes.fromhex(row["value"])) for row in rows]
    found: list[Golden] = [one for source in SOURCES[name] for one in golden(source)]
    return [pair for one in found for pair in zip(one.keys, one.values, strict=True)]


@cache
def odd_seeds() -> list[tuple[bytes | None, bytes | None]]:
    """Return values of messages in which every field has a value."""
    values = []
    for api_key, record_type in ODD_FORMAT.types.items():
        definition = record_type.value
        assert definition is not None
        for version in range(definition.versions.first, definition.versions.last + 1):
            message = filled_message(definition.fields, version, version in definition.flexible)
            values.append(frame(api_key, version) + twin.encode(definition, version, message))
    return [(None, value) for value in values]


def damage(data: bytes | None, chance: random.Random) -> bytes | None:
    """Flip, insert, delete and cut off a few bytes."""
    if data is None:
        return None
    damaged = bytearray(data)
    for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
        at = chance.randrange(len(damaged) + 1)
        byte = chance.choice([chance.choice(INTERESTING), chance.randrange(256)])
        match chance.randrange(6):
            case 0:
                damaged[at:at] = bytes([byte])
            case 1:
                del damaged[at : at + chance.randrange(1, 4)]
            case 2:
                del damaged[at:]
            case 3:
                damaged[at:at] = bytes([byte] * chance.randrange(1, 12))
            case 4 if at < len(damaged):
                damaged[at] ^= 1 << chance.randrange(8)
            case _ if at < len(damaged):
                damaged[at] = byte
    return bytes(damaged)


def twin_record(record_format: RecordFormat, key: bytes | None, value: bytes | None) -> Record | None:
    try:
        return decode_record(record_format, key, value)
    except twin.MalformedError:
        return None


def check_as_the_twin(record_format: RecordFormat, pairs: list[tuple[bytes | None, bytes | None]]) -> None:
    keys = None if record_format.name in FRAMED else pa.array([key for key, _ in pairs], pa.binary())
    messages = MessageReader(record_format).read(keys, pa.array([value for _, value in pairs], pa.binary()))
    texts = messages.json()
    from_json = messages.errors.to_pylist()
    rows = {row: shown for name in messages.types_there for row, shown in typed_rows(messages, name)}
    for row, (key, value) in enumerate(pairs):
        text = from_json[row]
        assert text == messages.errors[row].as_py(), "the fault is another one where columns are read"
        about = f"key {key and key.hex()}, value {value and value.hex()}: {text}"
        record = twin_record(record_format, key, value)
        if text is not None and any(words in text for words in DELIBERATE):
            assert row not in rows, about
            continue
        assert (row in rows) == (record is not None), about
        if record is None:
            assert text is not None, about
            continue
        assert text is None or LEFT_BEHIND in text, about
        assert comparable(rows[row]) == comparable(typed_row(record)), about
        for column, side in zip(texts, ("key", "value"), strict=True):
            check_json(record, side, column[row].as_py(), about)


def typed_rows(messages: Messages, name: str) -> list[tuple[int, dict[str, Any]]]:
    typed = messages.typed(name)
    typed.fields.validate(full=True)
    return list(zip(typed.rows.tolist(), typed.fields.to_pylist(), strict=True))


def check_json(record: Record, side: str, text: str | None, about: str) -> None:
    message, definition = getattr(record, side), getattr(record.record_type, side)
    if message is None:
        assert text is None, about
        return
    version = record.version if side == "value" else 0
    assert text is not None, about
    shown = without_defaults(definition.fields, version, json.loads(text))
    assert in_order(shown) == in_order(expected_json(definition.fields, version, message)), about


def without_defaults(fields: tuple[Field, ...], version: int, shown: dict[str, Any]) -> dict[str, Any]:
    """Return JSON without tagged fields that are there although they have their default: Kafka's does not show them."""
    kept = dict(shown)
    for field in fields:
        if field.name not in shown:
            continue
        value = shown[field.name]
        if field.kind == "struct" and value is not None:
            inner = [without_defaults(field.fields, version, one) for one in (value if field.is_array else [value])]
            kept[field.name] = inner if field.is_array else inner[0]
        default = twin.default_of(field)
        if default is not None and not field.is_array:
            default = twin.one_json(field, version, default)
        if version in field.tagged and kept[field.name] == default:
            del kept[field.name]
    return kept


@pytest.mark.parametrize("name", FORMATS)
@QUICK
@given(seed=st.integers(0, 2**64))
def test_damaged_records(name: str, seed: int) -> None:
    chance = random.Random(seed)
    chosen = chance.choices(seeds(name), k=60)
    pairs = [(damage(key, chance) if chance.randrange(4) == 0 else key, damage(value, chance)) for key, value in chosen]
    check_as_the_twin(BUILT_IN.formats[name], pairs)


@QUICK
@given(seed=st.integers(0, 2**64))
def test_damaged_messages_of_every_kind_of_field(seed: int) -> None:
    chance = random.Random(seed)
    check_as_the_twin(ODD_FORMAT, [(None, damage(value, chance)) for _, value in chance.choices(odd_seeds(), k=60)])


@pytest.mark.parametrize("name", FORMATS)
def test_cut_off_everywhere(name: str) -> None:
    """Each message is cut off after each of its bytes."""
    longest: dict[tuple[bytes | None, bytes | None], bytes] = {}
    for key, value in seeds(name):
        record = twin_record(BUILT_IN.formats[name], key, value)
        if record is not None and value is not None:
            identity = (record.record_type.name.encode(), bytes([record.version]))
            longest[identity] = max(longest.get(identity, b""), value, key=len)
    by_value = {value: key for key, value in seeds(name)}
    for value in longest.values():
        pairs = [(by_value[value], value[:size]) for size in range(min(len(value), 300))]
        check_as_the_twin(BUILT_IN.formats[name], pairs)


# Memory


def most_bytes(definition: Definition, data: int, rows: int) -> int:
    """Return how much the columns may take: a byte of input is one value of each column at most."""
    return layout(definition).columns * MOST_BYTES * (data + rows + 1)


def read_values(definition: Definition, version: int, values: list[bytes]) -> tuple[Messages, int]:
    """Return messages, and how many bytes their columns take, those of the bad ones among them."""
    column = pa.array([frame(1, version) + value for value in values], pa.binary())
    columns = native.Columns(layout(definition).columns, True)
    side = framed(column).value
    columns.decode(programs(definition), side.values, np.arange(len(values)), side.starts, side.versions)
    record_format = RecordFormat("metadata", {1: RecordType(definition.name, 1, None, definition)})
    return MessageReader(record_format).read(None, column), columns.size


HUGE_COUNTS = [
    ("EveryKind", 2, "81 80 80 80 08", "2147483649 is not between 0 and 2147483647"),
    ("EveryKind", 2, "80 80 80 80 08", "2147483648 is not between 0 and 2147483647"),
    ("EveryKind", 2, "ff ff ff ff 07", "2147483646 elements, but"),
    ("EveryKind", 2, "ff ff ff ff 0f", "4294967295 is not between 0 and 2147483647"),
    ("EveryKind", 0, "7f ff ff ff", "2147483647 elements, but"),
    ("EveryKind", 0, "80 00 00 00", "null, which this version does not allow"),
]


@pytest.mark.parametrize(("name", "version", "count", "text"), HUGE_COUNTS)
def test_huge_counts_take_no_memory(name: str, version: int, count: str, text: str) -> None:
    """The first array of the message, one of booleans, says that it has very many elements."""
    definition = {one.name: one for one in odd_definitions()}[name]
    value = (b"\1" if version == 0 else b"\1\1") + bytes.fromhex(count) + b"x" * 200
    messages, taken = read_values(definition, version, [value])
    assert messages.json()[1].nbytes < 100
    assert messages.typed(name).fields.num_rows == 0
    error = messages.errors[0].as_py()
    assert text in error
    assert taken <= most_bytes(definition, len(value), 1)


def test_many_small_structs() -> None:
    """As many elements as there are bytes, each with all its columns."""
    every = {one.name: one for one in odd_definitions()}["EveryStruct"]
    for definition in (BUILT_IN.messages["RegisterBrokerRecord"], every):
        for seed in range(20):
            chance = random.Random(seed)
            version = chance.randint(definition.versions.first, definition.versions.last)
            values = [bytes(chance.choices([0, 1, 1, 2, 3, 9, 60], k=400)) for _ in range(50)]
            values += [bytes([one]) * 400 for one in range(256)]
            messages, taken = read_values(definition, version, values)
            assert messages.typed(definition.name).fields.num_rows == messages.errors.null_count
            assert taken <= most_bytes(definition, sum(map(len, values)), len(values))
