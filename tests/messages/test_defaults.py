"""Defaults of fields: the rule for columns against what the native encoder writes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kraftlog.messages.api import encode_messages
from kraftlog.messages.arrow_types import UUID_BINARY, UUID_TEXT, arrow_type
from kraftlog.messages.catalog import BUILT_IN, Catalog
from kraftlog.messages.defaults import default_column
from kraftlog.messages.definition import STRUCT, Definition, Field
from kraftlog.messages.definition_text import parse
from kraftlog.messages.differing import differs, has_content
from kraftlog.messages.written_version import written_version

_TAGGED = [
    (one, field) for one in BUILT_IN.messages.values() for field in one.fields if field.tag is not None and one.flexible
]
_OTHERS: dict[str, list[Any]] = {
    "bool": [True, False],
    "uuid": ["xxmuDHBfSWqUkjNiXl8dFQ"],
    "string": ["", "x"],
    "bytes": [b"", b"x"],
    "float64": [-0.0, 1.0, float("nan")],
}


def _values(definition: Definition, field: Field) -> list[Any]:
    """Return values of a field: its default, null where it may be, and some more."""
    default = default_column(field, arrow_type(field), 1).to_pylist()
    if field.kind == STRUCT:
        inner = {one.column: default_column(one, arrow_type(one), 1)[0].as_py() for one in field.fields}
        some = [inner | {"unknown_tagged_fields": []}, inner | {"unknown_tagged_fields": [{"tag": 77, "data": b"x"}]}]
    else:
        some = _OTHERS.get(field.kind, [-1, 0, 1])
    some = [[one] for one in some] + [[]] if field.is_array else some
    return [*default, *some, *([None] if definition.versions.last in field.nullable else [])]


@pytest.mark.parametrize(("definition", "field"), _TAGGED, ids=[f"{one.name}.{field.name}" for one, field in _TAGGED])
def test_tagged_fields_are_written_where_they_differ_from_their_defaults(definition: Definition, field: Field) -> None:
    values = _values(definition, field)
    column = pa.array(values, arrow_type(field))
    version = definition.versions.last
    (plain,) = encode_messages(definition.name, _rows(definition, {}, 1), version).to_pylist()
    encoded = encode_messages(definition.name, _rows(definition, {field.column: column}, len(values)), version)
    assert [each != plain for each in encoded.to_pylist()] == differs(field, column).to_pylist()


def _rows(definition: Definition, given: dict[str, pa.Array], count: int) -> pa.RecordBatch:
    columns = {
        field.column: default_column(field, arrow_type(field), count)
        for field in definition.fields
        if definition.versions.last in field.versions
    }
    return pa.record_batch(columns | given)


def test_uuids_as_bytes_have_the_same_default() -> None:
    field = next(one for one in BUILT_IN.messages["OffsetCommitValue"].fields if one.kind == "uuid")
    for uuid in (UUID_TEXT, UUID_BINARY):
        column = default_column(field, arrow_type(field, uuid), 2)
        assert column.type == arrow_type(field, uuid)
        assert differs(field, column).to_pylist() == [False, False]


_STRUCTS = """
AMessage: data, versions 0-1, flexible 1+
    plain   int32
    inner   struct  1+  nullable
        number  int32  1+  default 5
"""


def test_a_struct_of_defaults_needs_no_newer_version() -> None:
    (message,) = parse(_STRUCTS, "odd.messages")
    catalog = Catalog(lambda: {message.name: message})
    inner = next(field for field in catalog.messages[message.name].fields if field.kind == STRUCT)
    rows = pa.array(
        [{"number": 5, "unknown_tagged_fields": []}, {"number": 6, "unknown_tagged_fields": []}, None],
        arrow_type(inner),
    )
    assert differs(inner, rows).to_pylist() == [False, True, True]
    assert has_content(inner, rows).to_pylist() == [False, True, False]
    assert [written_version(message, pa.table({"inner": rows.slice(at, 1)})) for at in range(3)] == [0, 1, 1]
