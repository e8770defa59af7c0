"""Records of all types in one pass: the same columns and faults as of each type by itself."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
import twin
from message_strategies import versions
from odd_definitions import filled_message
from test_message_mutations import damage
from test_straight_decoders import some_fields

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.format_of import (
    CONSUMER_OFFSETS,
    METADATA,
    REMOTE_LOG_METADATA,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from kraftlog.messages.frames import frame, int16_prefix
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.typed_pass import Typed


def check_same(of_format: str, values: list[bytes | None], keys: list[bytes | None] | None = None) -> None:
    for uuid in ("text", "binary"):
        reader = MessageReader(BUILT_IN.formats[of_format], uuid)
        columns = None if keys is None else pa.array(keys, pa.binary()), pa.array(values, pa.binary())
        expected = reader.read(*columns)
        names = expected.types_there
        each = {name: expected.typed(name) for name in names}
        found = reader.read(*columns)
        every = found.every_typed()
        assert found.faults == expected.faults
        assert set(every) == set(names)
        for name, one in every.items():
            check_same_typed(one, each[name])
        for name in sorted(names)[:3]:
            alone = reader.read(*columns)
            check_same_typed(alone.typed(name), each[name])
            own = set(expected.rows_of(name).tolist())
            assert {row: alone.faults[row] for row in alone.faults if row in own} == {
                row: expected.faults[row] for row in expected.faults if row in own
            }
            assert alone.unknown_types == expected.unknown_types


def check_same_typed(found: Typed, expected: Typed) -> None:
    found.fields.validate(full=True)
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.is_tombstone.tolist() == expected.is_tombstone.tolist()
    same = found.fields.equals(expected.fields)
    assert same or repr(found.fields.to_pylist()) == repr(expected.fields.to_pylist())  # a NaN is not itself


def some_values(of_format: str, chance: random.Random, count: int, *, is_damaged: bool) -> list[bytes | None]:
    """Return records in runs of one type, of all versions."""
    types = list(BUILT_IN.formats[of_format].types.values())
    found: list[bytes | None] = []
    while len(found) < count:
        definition = chance.choice(types).value
        assert definition is not None
        assert definition.api_key is not None
        for _ in range(chance.choice([1, 2, 30])):
            version = chance.choice(versions(definition))
            message = some_fields(definition.fields, version, True, chance)
            value = twin.encode(definition, version, message)
            value = (damage(value, chance) or b"") if is_damaged and chance.randrange(3) == 0 else value
            found.append(frame(definition.api_key, version) + value)
    return found


@pytest.mark.parametrize("of_format", [METADATA, REMOTE_LOG_METADATA])
@pytest.mark.parametrize("is_damaged", [False, True])
def test_records_of_all_types(of_format: str, is_damaged: bool) -> None:
    for seed in range(10):
        check_same(of_format, some_values(of_format, random.Random(seed), 400, is_damaged=is_damaged))


@pytest.mark.parametrize(
    "odd", [None, b"", b"\x01\x05", b"\x02\x05\x00", b"\x01\x63\x00", b"\x01\x05\x63", b"\x01\x85\x00\x00"]
)
@pytest.mark.parametrize("at", [0, 17, 30])
def test_odd_frames(odd: bytes | None, at: int) -> None:
    values = some_values(METADATA, random.Random(at), 30, is_damaged=True)
    check_same(METADATA, [*values[:at], odd, *values[at:]])


def test_nothing_and_one() -> None:
    check_same(METADATA, [])
    check_same(METADATA, some_values(METADATA, random.Random(1), 1, is_damaged=False)[:1])


def test_more_than_a_block_and_long_values() -> None:
    definition = BUILT_IN.messages["ConfigRecord"]
    message = filled_message(definition.fields, 0, False) | {"value": "x" * 70_000}
    long = frame(definition.api_key or 0, 0) + twin.encode(definition, 0, message)
    change = BUILT_IN.messages["PartitionChangeRecord"]
    short = frame(5, 0) + twin.encode(change, 0, filled_message(change.fields, 0, False))
    check_same(METADATA, [short] * 3000 + [long] + [short] * 3000 + [long, long, short])


def test_records_with_keys() -> None:
    assert BUILT_IN.formats[CONSUMER_OFFSETS].types
    check_same(CONSUMER_OFFSETS, [None, b"\x00\x09"], [b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", b"\x00\x63"])


Keyed = tuple[list[bytes | None], list[bytes | None]]


def some_records(of_format: str, chance: random.Random, count: int, *, tombstones: int, damaged: int) -> Keyed:
    """Return keys and values in runs of one type; of 100 so many are tombstones, and so many damaged."""
    types = [one for one in BUILT_IN.formats[of_format].types.values() if one.key is not None and one.value is not None]
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    while len(keys) < count:
        one = chance.choice(types)
        assert one.key is not None
        assert one.value is not None
        for _ in range(chance.choice([1, 2, 30])):
            version = chance.choice(versions(one.value))
            key = twin.encode(one.key, 0, some_fields(one.key.fields, 0, 0 in one.key.flexible, chance))
            fields = some_fields(one.value.fields, version, version in one.value.flexible, chance)
            value: bytes | None = twin.encode(one.value, version, fields)
            if chance.randrange(100) < damaged:
                key, value = damage(key, chance) or b"", damage(value or b"", chance) or b""
            value = None if chance.randrange(100) < tombstones else int16_prefix(version) + (value or b"")
            keys.append(int16_prefix(one.api_key) + key)
            values.append(value)
    return keys, values


@pytest.mark.parametrize("of_format", [CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE])
@pytest.mark.parametrize(("tombstones", "damaged"), [(0, 0), (10, 0), (100, 0), (10, 1)])
def test_records_with_keys_of_all_types(of_format: str, tombstones: int, damaged: int) -> None:
    for seed in range(5):
        keys, values = some_records(of_format, random.Random(seed), 400, tombstones=tombstones, damaged=damaged)
        check_same(of_format, values, keys)


ODD_KEYED = [(None, b"\x00\x03"), (b"", None), (b"\x00\x63", None), (b"\x01\x01", b""), (b"\x00\x01", b"\x00")]


@pytest.mark.parametrize(("key", "value"), [*ODD_KEYED, (b"\x00\x01", b"\x00\x63"), (b"\x00\x01", b"\xff\xff")])
@pytest.mark.parametrize("at", [0, 17, 30])
def test_odd_keys_and_values(key: bytes | None, value: bytes | None, at: int) -> None:
    keys, values = some_records(CONSUMER_OFFSETS, random.Random(at), 30, tombstones=10, damaged=0)
    check_same(CONSUMER_OFFSETS, [*values[:at], value, *values[at:]], [*keys[:at], key, *keys[at:]])


def test_keys_of_more_than_a_block_and_long_values() -> None:
    keys, values = some_records(CONSUMER_OFFSETS, random.Random(3), 200, tombstones=10, damaged=0)
    at = next(at for at, key in enumerate(keys) if key is not None and key[1] == 1 and values[at] is not None)
    key, value = keys[at], values[at]
    long = BUILT_IN.messages["GroupMetadataValue"]
    message = filled_message(long.fields, 3, False) | {"protocol": "x" * 30_000}
    group = int16_prefix(3) + twin.encode(long, 3, message)
    check_same(
        CONSUMER_OFFSETS,
        [value] * 1500 + [None] + [group] * 3 + [value],
        [key] * 1501 + [int16_prefix(2) + b"\x00\x01g"] * 3 + [key],
    )


def test_a_reader_of_many_chunks_in_two_threads() -> None:
    chunks = [
        some_records(CONSUMER_OFFSETS, random.Random(seed), 1 + 900 * (seed % 4), tombstones=10, damaged=seed % 5 == 4)
        for seed in range(12)
    ]
    arrays = [(pa.array(keys, pa.binary()), pa.array(values, pa.binary())) for keys, values in chunks]
    expected = [MessageReader(BUILT_IN.formats[CONSUMER_OFFSETS]).read(*one).every_typed() for one in arrays]
    reader = MessageReader(BUILT_IN.formats[CONSUMER_OFFSETS])
    with ThreadPoolExecutor(2) as threads:
        for at, every in enumerate(threads.map(lambda one: reader.read(*one).every_typed(), arrays * 10)):
            assert every.keys() == expected[at % len(arrays)].keys()
            for name, one in every.items():
                check_same_typed(one, expected[at % len(arrays)][name])
