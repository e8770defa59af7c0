"""Requests and responses are defined as Kafka's JSON defines them, and read and written as other code does."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import twin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka_schemas import REQUESTS, differences, schemas
from message_strategies import messages, versions
from test_definitions import mutants
from test_one_message import with_no_unknown, without_unknown

from kraftlog.errors import InvalidRecordError
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Definition
from kraftlog.messages.one_message import decode_message, encoded
from kraftlog.protocol.api import apis

DEFINED = {one.name: one for api in apis().values() for one in (api.request, api.response)}
EVERY = {**BUILT_IN.messages, **DEFINED}


def test_definitions_equal_kafkas():
    in_json = schemas(sorted(REQUESTS.glob("*.json")))
    assert len(in_json) == 2 * len(apis())
    assert differences(in_json, DEFINED) == []


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_a_changed_fact_is_found(name: str):
    schema = {name: schemas([REQUESTS / f"{name}.json"])[name]}
    for changed in mutants(DEFINED[name]):
        assert differences(schema, {name: changed}), changed


def test_both_messages_of_an_api_have_the_same_versions():
    for key, api in apis().items():
        assert (api.key, api.request.api_key, api.response.api_key) == (key, key, key)
        assert api.request.versions == api.response.versions
        assert api.request.flexible == api.response.flexible


def plain(value: Any) -> Any:
    """Return what is decoded in the twin's form: UUIDs as text."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return bytes(value) if isinstance(value, memoryview) else value


def with_uuids(definition: Definition, message: Any) -> Any:
    return _uuids(definition.fields, message)


def _uuids(fields: Any, message: Any) -> Any:
    if message is None:
        return None
    found = dict(message)
    for field in fields:
        value = found.get(field.column)
        if field.kind == "uuid" and value is not None:
            found[field.column] = [twin.uuid_text(one) for one in value] if field.is_array else twin.uuid_text(value)
        elif field.kind == "struct" and value is not None:
            found[field.column] = (
                [_uuids(field.fields, one) for one in value] if field.is_array else _uuids(field.fields, value)
            )
    return found


@pytest.mark.sweep(60)
@pytest.mark.parametrize("name", sorted(EVERY))
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_messages(name: str, data: st.DataObject):
    definition = EVERY[name]
    version = data.draw(st.sampled_from(versions(definition)))
    message = data.draw(messages(definition, version))
    content = twin.encode(definition, version, with_no_unknown(message))
    assert b"".join(encoded(definition, version, without_unknown(message))) == content  # type: ignore[arg-type]
    decoded = without_unknown(twin.decode(definition, version, content))
    assert with_uuids(definition, plain(decode_message(definition, version, content))) == decoded
    with_unknown = twin.encode(definition, version, message)  # tagged fields that nobody knows are skipped
    assert with_uuids(definition, plain(decode_message(definition, version, with_unknown))) == decoded


@pytest.mark.sweep(30)
@pytest.mark.parametrize("name", sorted(DEFINED))
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_cut_and_changed_bytes(name: str, data: st.DataObject):
    """Whatever the bytes: a message, or an error that says that they are none."""
    definition = DEFINED[name]
    version = data.draw(st.sampled_from(versions(definition)))
    content = bytearray(twin.encode(definition, version, with_no_unknown(data.draw(messages(definition, version)))))
    cut = data.draw(st.integers(0, max(len(content) - 1, 0)))
    if content:
        with pytest.raises(InvalidRecordError, match=name):
            decode_message(definition, version, content[:cut])
    for _ in range(min(len(content), 3)):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidRecordError):
        decode_message(definition, version, content)
