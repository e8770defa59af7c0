"""The decoders that are generated of definitions: they give what the interpreter gives, and leave it little to read."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import twin
from hypothesis import given
from hypothesis import strategies as st
from message_strategies import messages, versions
from odd_definitions import filled, filled_message
from test_message_mutations import QUICK, damage

from kraftlog._native import message as native
from kraftlog.messages.arrow_types import message_schema
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.columns import record_batch
from kraftlog.messages.definition import Definition, Field
from kraftlog.messages.definition_text import parse
from kraftlog.messages.frames import native_values
from kraftlog.messages.layout import layout
from kraftlog.messages.program import programs

Encoded = tuple[int, bytes]
DEFINITIONS = [one for one in BUILT_IN.messages.values() if one.versions]
NAMES = [one.name for one in DEFINITIONS]
BEHIND = 64  # bytes that generated decoders want behind a message; the interpreter reads the last ones


def decoded(definition: Definition, encoded: list[Encoded], uuid: str, *, interpreted: bool) -> tuple[Any, ...]:
    """Return columns, faults by row, and how many messages the interpreter has read."""
    values = pa.array([*(value for _, value in encoded), bytes(BEHIND)], pa.binary())
    chosen = np.array([version for version, _ in encoded] + [definition.versions.first], np.int32)
    columns = native.Columns(layout(definition).columns, uuid == "text")
    rows, starts = np.arange(len(encoded)), np.zeros(len(values), np.int32)
    compiled = programs(definition, interpreted=interpreted)
    assert compiled.is_straight != interpreted
    faults = columns.decode(compiled, native_values(values), rows, starts, chosen)
    count = columns.interpreted
    batch = record_batch([columns], len(encoded), message_schema(definition, uuid))
    batch.validate(full=True)
    assert batch.num_rows == len(encoded)
    return batch, sorted(faults, key=lambda fault: fault[0]), count


def check_same(definition: Definition, encoded: list[Encoded]) -> int:
    """Compare both; returns how many messages the generated decoder has left to the interpreter."""
    for uuid in ("text", "binary"):
        batch, faults, count = decoded(definition, encoded, uuid, interpreted=False)
        expected, expected_faults, _ = decoded(definition, encoded, uuid, interpreted=True)
        assert faults == expected_faults
        assert batch.equals(expected) or repr(batch.to_pylist()) == repr(expected.to_pylist())  # a NaN is not itself
    return int(count)


def some_fields(fields: tuple[Field, ...], version: int, is_flexible: bool, chance: random.Random) -> twin.Message:
    """Return a message of which some fields have their default."""
    message = {
        field.column: filled(field, version, is_flexible) if chance.randrange(3) else twin.default_of(field)
        for field in fields
    }
    unknown = [(99, b"?")] if is_flexible and not chance.randrange(4) else []
    return message | {twin.UNKNOWN: unknown}


def damaged(definition: Definition, chance: random.Random, count: int) -> list[Encoded]:
    """Return messages of all versions, with some bytes changed in most of them."""
    found: list[Encoded] = []
    for _ in range(count):
        version = chance.choice(versions(definition))
        message = some_fields(definition.fields, version, version in definition.flexible, chance)
        value = damage(twin.encode(definition, version, message), chance)
        assert value is not None
        found.append((version, value))
    return found


@pytest.mark.sweep(30)
@pytest.mark.parametrize("name", NAMES)
def test_damaged_messages(name: str) -> None:
    definition = BUILT_IN.messages[name]
    for seed in range(5):
        check_same(definition, damaged(definition, random.Random(seed), 300))


@QUICK
@given(seed=st.integers(0, 2**64))
def test_other_damaged_messages(seed: int) -> None:
    chance = random.Random(seed)
    definition = chance.choice(DEFINITIONS)
    check_same(definition, damaged(definition, chance, chance.choice([1, 60, 700])))


@QUICK
@given(data=st.data())
def test_random_messages(data: st.DataObject) -> None:
    definition = data.draw(st.sampled_from(DEFINITIONS))
    chosen = data.draw(st.lists(st.sampled_from(versions(definition)), min_size=1, max_size=5))
    encoded = [(one, twin.encode(definition, one, data.draw(messages(definition, one)))) for one in chosen]
    check_same(definition, encoded)
    check_same(definition, encoded * 100)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_left_to_the_interpreter(name: str) -> None:
    """Nothing of messages as Kafka writes them: their tags rise, and they have no fields that are not known."""
    definition = BUILT_IN.messages[name]
    encoded = []
    for version in versions(definition):
        message = filled_message(definition.fields, version, False)
        for fields in (message, twin.default_message(definition.fields)):
            encoded.append((version, twin.encode(definition, version, fields)))
    assert check_same(definition, encoded * 50) == 0


def test_another_definition_of_the_same_name() -> None:
    """Its code is not that of the definition that is built in."""
    (other,) = parse("TopicRecord: metadata, api key 2, versions 0, flexible 0+\n    name  string", "test")
    assert not programs(other).is_straight
    assert programs(BUILT_IN.messages["TopicRecord"]).is_straight
