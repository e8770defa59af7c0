"""Keys and values of coordinators' records in the definitions of releases before 4.0.

There they are messages of the role ``data`` without an api key, and today's api key is the version of the key:
``OffsetCommitKey`` had the versions 0 and 1, ``GroupMetadataKey`` the version 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kraftlog.messages.definition import NO_VERSIONS, Definition, Field, Versions
from kraftlog.messages.format_of import format_of

_KEY, _VALUE = "Key", "Value"
_FIRST = Versions(0, 0)


def with_api_keys(definitions: Mapping[str, Definition], files: Mapping[str, Path]) -> dict[str, Definition]:
    """Return definitions with such keys and values in the form of later releases.

    A key with two versions becomes two keys: the first is called ``Legacy``, as in later releases.

    Parameters
    ----------
    definitions : Mapping of str to Definition
        By name.
    files : Mapping of str to Path
        Files of the definitions, by name.

    Raises
    ------
    ValueError
        When a key has more than two versions.
    """
    found = dict(definitions)
    for name, key in definitions.items():
        value = definitions.get(name.removesuffix(_KEY) + _VALUE)
        if name.endswith(_KEY) and value is not None and _is_earlier(key) and _is_earlier(value):
            format_name = format_of(key.name, "coordinator-key", files[name])
            for one in _keys(key):
                found[one.name] = replace(one, format=format_name)
            found[value.name] = replace(value, role="coordinator-value", api_key=key.versions.last, format=format_name)
    return found


def _is_earlier(definition: Definition) -> bool:
    return definition.role == "data" and definition.api_key is None


def _keys(key: Definition) -> Iterator[Definition]:
    first, last = key.versions.first, key.versions.last
    if last - first not in (0, 1):
        raise ValueError(f"{key.name}: a key has one version or two, not {key.versions}")
    for version in range(first, last + 1):
        yield Definition(
            name=key.name if version == last else f"Legacy{key.name}",
            role="coordinator-key",
            api_key=version,
            versions=_FIRST,
            flexible=NO_VERSIONS,
            fields=_fields_at(version, key.fields),
        )


def _fields_at(version: int, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(
        replace(
            field,
            versions=_FIRST,
            nullable=_FIRST if version in field.nullable else NO_VERSIONS,
            tag=None,
            tagged=NO_VERSIONS,
            fields=_fields_at(version, field.fields),
        )
        for field in fields
        if version in field.versions
    )
