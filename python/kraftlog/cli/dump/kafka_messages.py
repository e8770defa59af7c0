"""Messages as Kafka's own readers show them: their JSON, and why one cannot be read."""

from __future__ import annotations

import re

import pyarrow as pa

from kraftlog._native import status
from kraftlog.messages.layout import field_path
from kraftlog.messages.reader import FoundFault, fault_words

_ENDS_EARLY = "null"  # the message of a BufferUnderflowException


# Quotes within a string have a backslash before them, so that this is never a part of one.
_UNKNOWN_TAGGED_FIELDS = re.compile(r',?"unknownTaggedFields":\[(\{"tag":[0-9]+,"data":"[0-9A-Za-z+/=]*"\},?)*\]')


def json_of_kafka(texts: pa.StringArray) -> list[str | None]:
    """Return the JSON of messages as Kafka prints it: without the tagged fields that it does not know."""
    return [None if text is None else _UNKNOWN_TAGGED_FIELDS.sub("", text) for text in texts.to_pylist()]


def words_of_kafka(fault: FoundFault | None, side: str) -> str:
    """Return the message of the exception that Kafka's generated code throws.

    Parameters
    ----------
    fault : FoundFault or None
    side : str
        ``"key"`` or ``"value"``.
    """
    if fault is None:
        return _ENDS_EARLY
    _, index, number, _, expected, actual = fault.native
    code = status.CODES[number]
    name = field_path(fault.definition, index).rpartition(".")[2]
    if code == "truncated_field":
        return _ENDS_EARLY
    if code == "bad_length":
        return f"Error reading byte array of {actual} byte(s): only {expected} byte(s) available"
    if code in ("bad_elements_count", "bad_tagged_fields_count"):
        return f"Tried to allocate a collection of size {actual}, but there are only {expected} bytes remaining."
    if code == "unexpected_null":
        return f"non-nullable field {name} was serialized as null"
    if code == "string_too_long":
        return f"string field {name} had invalid length {actual}"
    return fault_words(fault.definition, fault.version, fault.native, side)
