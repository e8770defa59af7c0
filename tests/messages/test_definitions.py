"""Every message is defined as Kafka's JSON defines it, in every version and in every fact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kafka_schemas import differences, schemas

from kraftlog.messages.catalog import BUILT_IN, Catalog
from kraftlog.messages.definition import NO_VERSIONS, STRUCT, Definition, Field, Versions
from kraftlog.messages.format_of import UNNAMED_KEYS

# of MirrorMaker there are no JSON files; test_mirror_maker.py compares with its classes
MESSAGES = {name: one for name, one in BUILT_IN.messages.items() if one.format not in UNNAMED_KEYS}


def test_definitions_equal_kafkas() -> None:
    assert len(schemas()) == 93
    assert differences(schemas(), MESSAGES) == []


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_a_message_that_is_missing_is_found(name: str) -> None:
    others = {other: one for other, one in MESSAGES.items() if other != name}
    assert differences(schemas(), others) == [f"{name}: only in the JSON"]
    remaining = {other: schema for other, schema in schemas().items() if other != name}
    assert differences(remaining, MESSAGES) == [f"{name}: only defined"]


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_a_changed_fact_is_found(name: str) -> None:
    schema = {name: schemas()[name]}
    for changed in mutants(MESSAGES[name]):
        assert differences(schema, {name: changed}), changed


def mutants(definition: Definition) -> Iterator[Definition]:
    """Yield the definition with one fact changed, for each of its facts."""
    yield replace(definition, role="header")
    yield replace(definition, api_key=99)
    yield replace(definition, versions=Versions(definition.versions.first, definition.versions.last + 1))
    yield replace(definition, flexible=NO_VERSIONS if definition.flexible else definition.versions)
    for fields in mutants_of_fields(definition.fields):
        yield replace(definition, fields=fields)


def mutants_of_fields(fields: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    for at, field in enumerate(fields):
        before, after = fields[:at], fields[at + 1 :]
        yield before + after
        if after:
            yield (*before, after[0], field, *after[1:])
        for changed in mutants_of_field(field):
            yield (*before, changed, *after)


def mutants_of_field(field: Field) -> Iterator[Field]:
    first, last = field.versions.first, field.versions.last
    yield replace(field, name=field.name + "s")
    yield replace(field, kind="int64" if field.kind == "int32" else "int32")
    yield replace(field, is_array=not field.is_array)
    yield replace(field, versions=Versions(first + 1, last))
    yield replace(field, versions=Versions(first, last - 1))
    yield replace(field, nullable=NO_VERSIONS if field.nullable else field.versions)
    yield replace(field, tag=99, tagged=field.versions)
    if field.tagged:
        yield replace(field, tagged=NO_VERSIONS)
    yield replace(field, default=None if field.default is not None else "")
    yield replace(field, default=7)
    yield replace(field, is_ignorable=not field.is_ignorable)
    if field.kind == STRUCT:
        for fields in mutants_of_fields(field.fields):
            yield replace(field, fields=fields)


def test_definitions_are_read_when_they_are_needed() -> None:
    loads = []

    def load() -> dict[str, Definition]:
        loads.append(1)
        return BUILT_IN._load()

    catalog = Catalog(load)
    assert not loads
    assert catalog.formats.keys() == BUILT_IN.formats.keys()
    assert catalog.messages == BUILT_IN.messages
    assert len(loads) == 1
