"""The topic ``_schemas``, in which Confluent's registry and Karapace keep schemas: folded as a registry does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kraftlog.errors import Fault, InvalidRecordError
from kraftlog.layout.segment import Segment
from kraftlog.notes import Notes
from kraftlog.read.log_pass import Pass
from kraftlog.read.ranges import plan
from kraftlog.read.records import read_ranges
from kraftlog.topics import SCHEMAS
from kraftlog.values.schema_store import AVRO, Reference, Schema, in_context

_COLUMNS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
BAD_SCHEMA = "bad_schema_record"

_METADATA = ("tags", "properties", "sensitive")
_RULES = ("migrationRules", "domainRules", "encodingRules")
_RULE = ("name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure", "disabled")


def schemas_of(segments: list[Segment], read: Pass) -> list[Schema]:
    """Return the schemas that the topic holds at its end, by subject and version.

    ``SCHEMA`` adds a version or, without a value, removes it for good; ``DELETE_SUBJECT`` deletes the versions up to
    one softly, and ``CLEAR_SUBJECT`` removes those that were. Other keys, such as ``CONFIG``, ``MODE`` and ``NOOP``,
    concern no schema. Where Confluent's registry writes no value, Karapace writes one of no bytes.

    Parameters
    ----------
    segments : list of Segment
        Those of other topics are left out.
    read : Pass
        Receives what cannot be read: also a second schema with the id of another, which a registry leaves out.
    """
    found: dict[tuple[str, int], Schema] = {}
    of_topic = [one for one in segments if one.topic == SCHEMAS]
    for batch in read_ranges(plan(of_topic, read.options, None), _COLUMNS, replace(read, notes=Notes())):
        for row in batch.to_pylist():
            try:
                _apply(row["key"], row["value"], row["offset"], found)
            except (ValueError, KeyError, TypeError) as error:
                reason = f"no {error}" if isinstance(error, KeyError) else str(error)
                where = f"{row['topic']}-{row['partition']}: record at offset {row['offset']}"
                fault = Fault(
                    BAD_SCHEMA, f"{where}: {reason}", None, None, row["offset"], None, row["topic"], row["partition"]
                )
                if read.options.strict:
                    raise InvalidRecordError(fault.message, fault) from None
                read.faults.append(fault)
    return [found[key] for key in sorted(found)]


def _apply(key: bytes | None, value: bytes | None, offset: int, found: dict[tuple[str, int], Schema]) -> None:
    if key is None:
        raise ValueError("expected a key with a keytype, found none")
    named = _object(key, "key")
    apply = _BY_TYPE.get(named["keytype"])
    if apply is None:
        raise ValueError(f"keytype {named['keytype']!r} is not known")
    apply(named, _object(value, "value") if value else None, offset, found)


def _object(content: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError as error:
        raise ValueError(f"the {what} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"expected a JSON object as {what}, found {type(found).__name__}")
    return found


def _schema(
    key: dict[str, Any], value: dict[str, Any] | None, offset: int, found: dict[tuple[str, int], Schema]
) -> None:
    subject, version = _text(key, "subject"), _number(key, "version")
    if value is None:
        found.pop((subject, version), None)
        return
    references = tuple(
        Reference(_text(one, "name"), _text(one, "subject"), _number(one, "version"))
        for one in value.get("references") or ()
    )
    made = Schema(
        subject,
        version,
        _number(value, "id"),
        value.get("schemaType") or AVRO,
        _text(value, "schema"),
        references,
        bool(value.get("deleted", False)),
        offset,
        _hashed(value.get("metadata"), value.get("ruleSet")),
    )
    context = in_context(subject)[0]
    same_id = (one for one in found.values() if one.id == made.id and in_context(one.subject)[0] == context)
    other = next((one for one in same_id if one.schema != made.schema), None)
    if other is not None and (other.subject, other.version) != (subject, version):
        raise ValueError(f"{made} is left out: {other} has another schema under the same id")
    found[subject, version] = made


def _delete_subject(
    _: dict[str, Any], value: dict[str, Any] | None, offset: int, found: dict[tuple[str, int], Schema]
) -> None:
    if value is None:
        return
    subject, last = _text(value, "subject"), _number(value, "version")
    for key, one in found.items():
        if key[0] == subject and key[1] <= last:
            found[key] = replace(one, deleted=True)


def _clear_subject(
    _: dict[str, Any], value: dict[str, Any] | None, offset: int, found: dict[tuple[str, int], Schema]
) -> None:
    """Remove what was deleted softly of a subject, or of a context where it names no subject."""
    if value is None:
        return
    cleared = in_context(_text(value, "subject"))
    for key, one in list(found.items()):
        context, name = in_context(key[0])
        if one.deleted and (context, name if cleared[1] else "") == cleared:
            del found[key]


def _hashed(metadata: object, rules: object) -> bytes:
    """Return what the guid of a schema covers of its metadata and its rules, in the order of a registry."""
    made = b""
    if metadata is not None:
        made += b"\1" + b"".join(_texts_of(metadata, _METADATA))
    if rules is not None:
        each = [rule for kind in _RULES for rule in _array(_fields(rules), kind)]
        made += b"\1" + b"".join(text for rule in each for text in _texts_of(rule, _RULE))
    return made


def _texts_of(found: object, names: tuple[str, ...]) -> Iterator[bytes]:
    fields = _fields(found)
    for name in names:
        yield from _texts(fields.get(name))


def _fields(found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"expected an object in metadata or rules, found {found!r}")
    return found


def _array(fields: dict[str, Any], name: str) -> list[Any]:
    found = fields.get(name) or []
    if not isinstance(found, list):
        raise ValueError(f"expected an array as {name}, found {found!r}")
    return found


def _texts(found: object) -> Iterator[bytes]:
    """Return the texts of a field: maps and sets in the order of their keys."""
    if isinstance(found, str):
        yield found.encode()
    elif isinstance(found, list) and all(isinstance(one, str) for one in found):
        yield from (one.encode() for one in sorted(found))
    elif isinstance(found, dict):
        for name in sorted(found):
            yield name.encode()
            yield from _texts(found[name])
    elif found is True:
        yield b"\1"
    elif found:
        raise ValueError(f"expected a text in metadata or rules, found {found!r}")


def _nothing(*_: object) -> None:
    """Concern no schema."""


_BY_TYPE: dict[str, Callable[..., None]] = {
    "SCHEMA": _schema,
    "DELETE_SUBJECT": _delete_subject,
    "CLEAR_SUBJECT": _clear_subject,
    **dict.fromkeys(("CONFIG", "MODE", "NOOP", "CONTEXT", "ASSOC"), _nothing),
}


def _text(found: dict[str, Any], name: str) -> str:
    if not isinstance(found[name], str):
        raise ValueError(f"expected text as {name}, found {found[name]!r}")
    return str(found[name])


def _number(found: dict[str, Any], name: str) -> int:
    if type(found[name]) is not int:
        raise ValueError(f"expected a number as {name}, found {found[name]!r}")
    return int(found[name])
