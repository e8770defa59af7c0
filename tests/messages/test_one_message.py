"""One message without Arrow is what the twin writes, for every message and version."""

from __future__ import annotations

import pytest
import twin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from message_strategies import messages, versions

from kraftlog.errors import InvalidRecordError
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.one_message import encode_message


def without_unknown(value: object) -> object:
    """Return a message without tagged fields that its definition does not have."""
    if isinstance(value, dict):
        return {name: without_unknown(one) for name, one in value.items() if name != twin.UNKNOWN}
    return [without_unknown(one) for one in value] if isinstance(value, list) else value


def with_no_unknown(value: object) -> object:
    """Return the same for the twin, which wants them named."""
    if isinstance(value, dict):
        return {name: [] if name == twin.UNKNOWN else with_no_unknown(one) for name, one in value.items()}
    return [with_no_unknown(one) for one in value] if isinstance(value, list) else value


@pytest.mark.sweep(30)
@pytest.mark.parametrize("name", sorted(BUILT_IN.messages))
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_messages(name: str, data: st.DataObject):
    definition = BUILT_IN.messages[name]
    version = data.draw(st.sampled_from(versions(definition)))
    message = data.draw(messages(definition, version))
    expected = twin.encode(definition, version, with_no_unknown(message))
    assert encode_message(name, version, without_unknown(message)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(BUILT_IN.messages))
def test_defaults(name: str):
    definition = BUILT_IN.messages[name]
    for version in versions(definition):
        fields = [one for one in definition.fields if one.default is None and version not in one.nullable]
        if fields:
            continue  # a null that the version does not have
        every = {one.column: twin.default_of(one) for one in definition.fields} | {twin.UNKNOWN: []}
        assert encode_message(name, version, {}) == twin.encode(definition, version, every)


@pytest.mark.parametrize(
    ("name", "version", "values", "error", "says"),
    [
        ("Nothing", 0, {}, ValueError, "no message 'Nothing' of version 0 is known"),
        ("TransactionLogValue", 9, {}, ValueError, "no message 'TransactionLogValue' of version 9 is known"),
        ("TransactionLogKey", 0, {"id": "x"}, ValueError, "has no field 'id'"),
        ("TransactionLogKey", 0, {"transactional_id": None}, InvalidRecordError, "transactionalId cannot be null"),
        ("TransactionLogKey", 0, {"transactional_id": 7}, ValueError, "TransactionLogKey, version 0"),
        ("TransactionLogValue", 0, {"producer_id": 1 << 63}, ValueError, "TransactionLogValue, version 0"),
        ("PartitionRecord", 0, {"directories": [bytes(16)]}, InvalidRecordError, "version 0 has no field directories"),
    ],
)
def test_refusals(name: str, version: int, values: dict, error: type[Exception], says: str):
    with pytest.raises(error, match=says):
        encode_message(name, version, values)
