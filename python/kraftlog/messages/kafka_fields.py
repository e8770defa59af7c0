"""The fields of a message in Kafka's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraftlog.messages.default_text import parse_default
from kraftlog.messages.definition import BYTES, KINDS, NO_VERSIONS, STRUCT, Field, Versions

_ELEMENTS = "[]"
_RECORDS = "records"  # encoded like bytes


def read_fields(message: Mapping[str, Any], valid: Versions) -> tuple[Field, ...]:
    """Return the fields of a message.

    Parameters
    ----------
    message : Mapping
        The JSON.
    valid : Versions
        Versions of the message.

    Raises
    ------
    ValueError
        For an invalid field, which the message names.
    """
    structs = {text_of(struct, "name"): objects_of(struct, "fields") for struct in objects_of(message, "commonStructs")}
    return _Reader(structs).fields(objects_of(message, "fields"), valid, ())


def text_of(source: Mapping[str, Any], name: str) -> str:
    """Return a required string."""
    value = source.get(name)
    if not isinstance(value, str):
        raise ValueError(f'"{name}" is a string, not {value!r}')
    return value


def objects_of(source: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return an optional array of objects."""
    value = source.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError(f'"{name}" is an array of objects')
    return value


def versions_of(source: Mapping[str, Any], name: str, absent: Versions = NO_VERSIONS) -> Versions:
    """Return an optional range of versions."""
    return Versions.parse(text_of(source, name)) if source.get(name) is not None else absent


class _Reader:
    def __init__(self, structs: Mapping[str, list[dict[str, Any]]]) -> None:
        self._structs = structs

    def fields(self, fields: list[dict[str, Any]], outer: Versions, inside: tuple[str, ...]) -> tuple[Field, ...]:
        """Return fields; ``inside`` are the types of the enclosing structs."""
        found: dict[str, Field] = {}
        for source in fields:
            try:
                name = text_of(source, "name")
            except ValueError as error:
                raise ValueError(f"a field: {error}") from None
            try:
                field = self._field(source, outer, inside)
                if field.name in found:
                    raise ValueError("a second field of that name")
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            found[field.name] = field
        return tuple(found.values())

    def _field(self, source: dict[str, Any], outer: Versions, inside: tuple[str, ...]) -> Field:
        written = text_of(source, "type")
        element = written.removeprefix(_ELEMENTS)
        is_array = element != written
        kind = BYTES if element == _RECORDS else element if element in KINDS else STRUCT
        if source.get("flexibleVersions") is not None:
            raise ValueError("flexible versions of a field's own are not known here")
        tagged = versions_of(source, "taggedVersions")
        versions = versions_of(source, "versions", tagged)
        if source.get("versions") is None and not tagged:
            raise ValueError("it has no versions")
        versions = versions.within(outer)
        nullable = versions_of(source, "nullableVersions").within(versions)
        default = parse_default(kind, is_array, _default_text(source.get("default")))
        if default is None and not nullable and versions:
            raise ValueError("its default is null, and it is never nullable")
        return Field(
            name=_camel_case(text_of(source, "name")),
            kind=kind,
            is_array=is_array,
            versions=versions,
            nullable=nullable,
            tag=_tag(source, tagged),
            tagged=tagged.within(versions),
            default=default,
            is_ignorable=source.get("ignorable") is True,
            fields=self._struct(source, element, versions, inside) if kind == STRUCT else (),
        )

    def _struct(
        self, source: dict[str, Any], type_name: str, versions: Versions, inside: tuple[str, ...]
    ) -> tuple[Field, ...]:
        if type_name in inside:
            raise ValueError(f"a {type_name} in a {type_name}")
        fields = objects_of(source, "fields") or self._structs.get(type_name)
        if fields is None:
            raise ValueError(f"{type_name} is no type, and no struct that the message defines")
        return self.fields(fields, versions, (*inside, type_name))


def _tag(source: dict[str, Any], tagged: Versions) -> int | None:
    tag = source.get("tag")
    if (tag is None) != (not tagged):
        raise ValueError("a tag and tagged versions go together")
    if tag is not None and (not isinstance(tag, int) or tag < 0):
        raise ValueError(f"a tag is a number from 0, not {tag!r}")
    return tag


def _default_text(default: object) -> str:
    """Return a default by the rule of Kafka's generator: a JSON null is no default, the string "null" is one."""
    if default is None:
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def _camel_case(name: str) -> str:
    return name[:1].lower() + name[1:]
