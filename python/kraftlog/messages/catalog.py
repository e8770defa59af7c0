"""All known messages, and the record types of each internal topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from kraftlog.messages import definition_text
from kraftlog.messages.definition import Definition
from kraftlog.messages.format_of import FORMATS, format_of_topic
from kraftlog.messages.record_type import RecordFormat, RecordType

__all__ = ["BUILT_IN", "FORMATS", "Catalog", "RecordFormat", "RecordType", "format_of_topic"]

_KEY, _VALUE = "Key", "Value"
# Releases before 4.0 wrote keys of type 0 and of type 1 with values of any version.
_LEGACY_OFFSET_COMMIT, _OFFSET_COMMIT = "LegacyOffsetCommit", "OffsetCommit"


class Catalog:
    """Messages, and the formats of records that consist of them.

    Parameters
    ----------
    load : callable
        Returns the definitions; called once, on first use.

    Attributes
    ----------
    messages : Mapping of str to Definition
        By name.
    formats : Mapping of str to RecordFormat
        One for each of ``FORMATS``, by name.
    """

    def __init__(self, load: Callable[[], Mapping[str, Definition]]) -> None:
        self._load = load

    @cached_property
    def messages(self) -> Mapping[str, Definition]:
        """Every definition by its name."""
        return self._load()

    @cached_property
    def formats(self) -> Mapping[str, RecordFormat]:
        """Every format by its name."""
        return {name: _format(name, self.messages) for name in FORMATS}

    def with_definitions(self, definitions: Mapping[str, Definition]) -> Catalog:
        """Return a catalog that has these definitions in addition to its own.

        They replace definitions of the same name, and definitions of the same records under another name.

        Raises
        ------
        ValueError
            When two types of records would have the same api key.
        """
        replaced = {_records_of(definition) for definition in definitions.values()} - {None}
        kept = {name: one for name, one in self.messages.items() if _records_of(one) not in replaced}
        merged = {**kept, **definitions}
        catalog = Catalog(lambda: merged)
        _ = catalog.formats
        return catalog


def _records_of(definition: Definition) -> tuple[str | None, str, int] | None:
    return None if definition.api_key is None else (definition.format, definition.role, definition.api_key)


def _format(name: str, messages: Mapping[str, Definition]) -> RecordFormat:
    types: dict[int, RecordType] = {}
    for record_type in _types(name, messages):
        if record_type.api_key in types:
            both = f"{types[record_type.api_key].name} and {record_type.name}"
            raise ValueError(f"{both} of {name} have the same api key {record_type.api_key}")
        types[record_type.api_key] = record_type
    return RecordFormat(name, dict(sorted(types.items())))


def _types(format_name: str, messages: Mapping[str, Definition]) -> Iterable[RecordType]:
    for definition in messages.values():
        if definition.format != format_name or definition.api_key is None:
            continue
        if definition.role == "metadata":
            yield RecordType(definition.name, definition.api_key, None, definition)
        elif definition.role == "coordinator-key":
            name = definition.name.removesuffix(_KEY)
            name = _OFFSET_COMMIT if name == _LEGACY_OFFSET_COMMIT else name
            yield RecordType(name, definition.api_key, definition, messages.get(name + _VALUE))


def _built_in() -> Mapping[str, Definition]:
    return definition_text.parse_folder(Path(__file__).with_name("definitions"))


BUILT_IN = Catalog(_built_in)
