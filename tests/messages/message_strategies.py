"""Random messages of any definition and version for hypothesis."""

from __future__ import annotations

from functools import cache
from typing import Any

import twin
from hypothesis import strategies as st

from kraftlog.messages.definition import Definition, Field
from kraftlog.messages.record_type import RecordType

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED_BITS = {"uint16": 16, "uint32": 32}
MOST_UNKNOWN_TAG = 2**31 - 1
LETTERS = st.sampled_from(["a", "é", "€", "😀", '"', "\\", "\0", "\n", "\x7f"])
TEXT = st.one_of(
    st.text(max_size=8),
    st.builds(str.__mul__, LETTERS, st.integers(40, 300)),  # lengths of two bytes
    st.just(""),
)
BYTES = st.one_of(
    st.binary(max_size=8), st.builds(bytes.__mul__, st.binary(min_size=1, max_size=3), st.integers(40, 300))
)


def integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from([low, -1 if low < 0 else 0, 0, 1, high]), st.integers(low, high))


def item_of(field: Field, version: int, is_flexible: bool) -> st.SearchStrategy[Any]:
    """Return values of a field; of an array, elements of it."""
    if field.kind == "struct":
        return struct_of(field.fields, version, is_flexible)
    if field.kind in BITS:
        half = 1 << BITS[field.kind] - 1
        return integers(-half, half - 1)
    if field.kind in UNSIGNED_BITS:
        return integers(0, (1 << UNSIGNED_BITS[field.kind]) - 1)
    if field.kind == "uuid":
        return st.binary(min_size=16, max_size=16).map(twin.uuid_text)
    return {"bool": st.booleans(), "float64": st.floats(), "string": TEXT, "bytes": BYTES}[field.kind]


def value_of(field: Field, version: int, is_flexible: bool) -> st.SearchStrategy[Any]:
    """Return values that a field may have in a version, defaults among them."""
    if version not in field.versions:
        return st.builds(twin.default_of, st.just(field))
    found = item_of(field, version, is_flexible)
    if field.is_array:
        many = st.builds(list.__mul__, st.lists(found, min_size=1, max_size=1), st.integers(128, 140))
        found = st.lists(found, max_size=3) if field.kind == "struct" else st.one_of(st.lists(found, max_size=3), many)
    if version in field.nullable:
        found = st.one_of(st.none(), found)
    default = twin.default_of(field)
    return found if default is None else st.one_of(st.builds(twin.default_of, st.just(field)), found)


def struct_of(fields: tuple[Field, ...], version: int, is_flexible: bool) -> st.SearchStrategy[twin.Message]:
    known = {field.tag for field in fields if version in field.tagged}
    unknown: st.SearchStrategy[list[tuple[int, bytes]]] = st.just([])
    if is_flexible:
        tags = integers(0, MOST_UNKNOWN_TAG).filter(lambda tag: tag not in known)
        unknown = st.one_of(unknown, st.dictionaries(tags, BYTES, max_size=3).map(lambda found: sorted(found.items())))
    values = {field.column: value_of(field, version, is_flexible) for field in fields}
    return st.fixed_dictionaries({**values, twin.UNKNOWN: unknown})


@cache
def messages(definition: Definition, version: int) -> st.SearchStrategy[twin.Message]:
    """Return messages of one version."""
    return struct_of(definition.fields, version, version in definition.flexible)


def versions(definition: Definition) -> range:
    return range(definition.versions.first, definition.versions.last + 1)


@cache
def values_of(record_type: RecordType) -> st.SearchStrategy[tuple[int, twin.Message]]:
    """Return versions of a type, each with a message."""
    definition = record_type.value
    assert definition is not None
    each = [st.tuples(st.just(version), messages(definition, version)) for version in versions(definition)]
    return st.one_of(each)
