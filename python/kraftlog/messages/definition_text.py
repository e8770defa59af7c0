"""Messages' definitions as text: a line for the message, a line for each of its fields.

::

    format consumer_offsets

    OffsetCommitValue: coordinator-value, api key 1, versions 0-4, flexible 4+
        offset           int64
        leaderEpoch      int32   3+  default -1, ignorable
        topicId          uuid    4+  tag 0, ignorable

A field has a name, a type (one of ``KINDS``; for an array ``[]`` and the type of its elements), its versions unless
they are all of its struct's or message's, and remarks: ``nullable``; ``tag`` with its number; both with versions unless
they are all of the field's; ``default`` with a value other than the zero of its kind; ``ignorable``. The fields of a
struct are indented below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kraftlog.messages.default_text import parse_default
from kraftlog.messages.definition import KINDS, NO_VERSIONS, STRUCT, Definition, Field, Versions

ROLES = ("metadata", "coordinator-key", "coordinator-value", "data")
_ROLES_OF_PROTOCOL = ("request", "response")
_INDENT = 4
_MESSAGE = re.compile(r"(\w+): ([\w-]+)(?:, api key (\d+))?, versions (\S+), flexible (\S+)", re.ASCII)
_FIELD = re.compile(r"([a-z]\w*) +(\[\])?(\w+)(?: +(\d\S*))?(?: +(.+))?", re.ASCII)
_NULLABLE = re.compile(r"nullable(?: (\d\S*))?", re.ASCII)
_TAG = re.compile(r"tag (\d+)(?: (\d\S*))?", re.ASCII)


@dataclass(frozen=True)
class _Line:
    number: int
    depth: int
    text: str


class _Lines:
    """The remaining lines, without empty ones and comments."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._lines = list(self._split(text))
        self._next = 0
        self._number = 0

    def _split(self, text: str) -> Iterator[_Line]:
        for self._number, line in enumerate(text.splitlines(), start=1):
            stripped = line.strip()
            if stripped and not stripped.startswith("#"):
                depth, remainder = divmod(len(line) - len(line.lstrip(" ")), _INDENT)
                if remainder:
                    raise self.error(f"an indent is a multiple of {_INDENT} spaces")
                yield _Line(self._number, depth, stripped)

    def peek(self) -> _Line | None:
        return self._lines[self._next] if self._next < len(self._lines) else None

    def take(self) -> _Line:
        line = self._lines[self._next]
        self._next += 1
        self._number = line.number
        return line

    def error(self, message: str) -> ValueError:
        return ValueError(f"{self._name}, line {self._number}: {message}")


def parse_folder(folder: Path) -> dict[str, Definition]:
    """Return the definitions in the files of a folder, by their names."""
    files = sorted(folder.glob("*.messages"))
    return {one.name: one for file in files for one in parse(file.read_text("utf-8"), file.name)}


def parse(text: str, name: str) -> list[Definition]:
    """Return the messages in a text.

    Parameters
    ----------
    text : str
    name : str
        Name of the text, for error messages.

    Raises
    ------
    ValueError
        For an invalid line, which the message names.
    """
    lines = _Lines(text, name)
    format_name: str | None = None
    found: dict[str, Definition] = {}
    while lines.peek() is not None:
        line = lines.take()
        try:
            if line.depth == 0 and line.text.startswith("format "):
                format_name = line.text.removeprefix("format ")
                continue
            message = _message(line, format_name, lines)
        except _LineError as fault:
            raise lines.error(str(fault)) from None
        if message.name in found:
            raise lines.error(f"a second {message.name}")
        found[message.name] = message
    return list(found.values())


class _LineError(ValueError):
    """Return an error for the last line."""


def _message(line: _Line, format_name: str | None, lines: _Lines) -> Definition:
    match = _MESSAGE.fullmatch(line.text)
    if line.depth or match is None:
        raise _LineError(
            f"a message begins as 'Name: role, api key 1, versions 0-4, flexible 4+', not as {line.text!r}"
        )
    name, role, api_key, versions, flexible = match.groups()
    if role not in (*ROLES, *_ROLES_OF_PROTOCOL):
        raise _LineError(f"a message's role is one of {', '.join(ROLES)}, not {role!r}")
    valid = _versions(versions)
    return Definition(
        name=name,
        role=role,
        api_key=None if api_key is None else int(api_key),
        versions=valid,
        flexible=_versions(flexible).within(valid),
        fields=_fields(1, valid, lines),
        format=format_name,
    )


def _fields(depth: int, outer: Versions, lines: _Lines) -> tuple[Field, ...]:
    found: dict[str, Field] = {}
    while (line := lines.peek()) is not None and line.depth >= depth:
        lines.take()
        if line.depth > depth:
            raise _LineError("an indent below what is no struct")
        field = _field(line, outer, lines)
        if field.name in found:
            raise _LineError(f"a second field {field.name}")
        found[field.name] = field
    return tuple(found.values())


def _field(line: _Line, outer: Versions, lines: _Lines) -> Field:
    match = _FIELD.fullmatch(line.text)
    if match is None:
        raise _LineError(f"a field is 'name type versions remarks', not {line.text!r}")
    name, brackets, kind, written, remarks = match.groups()
    if kind not in KINDS:
        raise _LineError(f"a field's type is one of {', '.join(KINDS)}, not {kind!r}")
    versions = _versions(written).within(outer) if written else outer
    nullable, tag, tagged, default, is_ignorable = NO_VERSIONS, None, NO_VERSIONS, "", False
    for remark in remarks.split(", ") if remarks else []:
        if match := _NULLABLE.fullmatch(remark):
            nullable = _versions(match[1]).within(versions) if match[1] else versions
        elif match := _TAG.fullmatch(remark):
            tag, tagged = int(match[1]), _versions(match[2]).within(versions) if match[2] else versions
        elif remark.startswith("default "):
            default = remark.removeprefix("default ")
        elif remark == "ignorable":
            is_ignorable = True
        else:
            raise _LineError(f"a remark is nullable, tag, default or ignorable, not {remark!r}")
    if default == "null" and not nullable:
        raise _LineError(f"{name} is null by default, and is never nullable")
    try:
        value = parse_default(kind, brackets is not None, default)
    except ValueError as error:
        raise _LineError(f"{name}: {error}") from None
    fields = _fields(line.depth + 1, versions, lines) if kind == STRUCT else ()
    return Field(name, kind, brackets is not None, versions, nullable, tag, tagged, value, is_ignorable, fields)


def _versions(text: str) -> Versions:
    try:
        return Versions.parse(text)
    except ValueError as error:
        raise _LineError(str(error)) from None
