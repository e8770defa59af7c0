"""How keys and values are to be typed, as a user says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.values.find_schemas import find_schemas
from kraftlog.values.first_values import Sample, first_values
from kraftlog.values.formats import JSON_FORMAT, ChosenFormat, FormatOptions, choose
from kraftlog.values.framing import Side
from kraftlog.values.schema_store import SchemaStore
from kraftlog.values.typed import TypedRecords


@dataclass(frozen=True)
class TypedOptions:
    """Formats of keys and values, of which one may be None, and where their schemas are."""

    value: FormatOptions | None = None
    key: FormatOptions | None = None
    schemas: SchemaStore | str | Path | None = None

    @classmethod
    def of(
        cls,
        value_format: str | None = None,
        key_format: str | None = None,
        value_schema: str | None = None,
        key_schema: str | None = None,
        value_framing: str | None = None,
        key_framing: str | None = None,
        schemas: SchemaStore | str | Path | None = None,
        json_sample: Sample | str | None = None,
    ) -> TypedOptions | None:
        """Return what the options of a function or command say; None where they name no format.

        Raises
        ------
        ValueError
            For a format that there is not, and for a schema, schemas, a framing or a sample without a format.
        """
        sample = _sample(json_sample)
        if sample is not None and JSON_FORMAT not in (value_format, key_format):
            raise ValueError("json_sample requires the format json")
        made = []
        for side, form, schema, framing in (
            ("value", value_format, value_schema, value_framing),
            ("key", key_format, key_schema, key_framing),
        ):
            if form is None and (schema is not None or framing is not None):
                raise ValueError(f"{side}_schema and {side}_framing go with a {side}_format")
            made.append(None if form is None else FormatOptions(form, framing or "confluent", schema, sample))
        if made == [None, None]:
            if schemas is not None:
                raise ValueError("schemas goes with a value_format or key_format")
            return None
        return cls(made[0], made[1], schemas)

    def sampling_all(self) -> TypedOptions:
        """Return the same options, by which all values of JSON say its type where no sample is chosen."""
        value, key = (one and replace(one, json_sample=one.json_sample or "all") for one in (self.value, self.key))
        return TypedOptions(value, key, self.schemas)

    def with_schemas_of(self, found: Discovery, faults: list[Fault]) -> TypedOptions:
        """Return the same options with the schemas that belong to some files, for a part of them."""
        return replace(self, schemas=self._schemas(found, faults))

    def check_names(self) -> None:
        """Raise ValueError for a schema that is named and not there, where the schemas of some files are known."""
        for one in (self.value, self.key):
            if one is not None and one.needs_schemas and one.schema is not None:
                self._store.named(one.schema)

    def has_schemas_of(self, topic: str) -> bool:
        """Return whether a schema is named, or the topic has a subject, where a format needs one."""
        return all(
            one is None
            or not one.needs_schemas
            or one.schema is not None
            or self._store.newest(f"{topic}-{side}") is not None
            for side, one in (("value", self.value), ("key", self.key))
        )

    @property
    def _store(self) -> SchemaStore:
        return self.schemas if isinstance(self.schemas, SchemaStore) else SchemaStore()

    def resolved(self, found: Discovery, *, strict: bool) -> ResolvedTypes:
        """Return what the records of some files are read by; it takes no more looking at them.

        Raises
        ------
        ValueError
            When there is no schema for them.
        RecordError
            With ``strict``, when the topic of schemas cannot be read.
        """
        sides: dict[Side, FormatOptions | None] = {"key": self.key, "value": self.value}
        faults: list[Fault] = []
        store = self._schemas(found, faults)
        if faults and strict:
            raise error_from_fault(faults[0])
        topics = sorted({one.topic for one in found.segments if one.topic is not None})
        samples = partial(first_values, found.segments)
        formats = {side: choose(one, side, topics, store, samples) for side, one in sides.items() if one is not None}
        return ResolvedTypes(formats, store, tuple(faults))

    def renewed(self, resolved: ResolvedTypes, found: Discovery) -> ResolvedTypes:
        """Return the same formats with the schemas that there are now."""
        faults: list[Fault] = []
        return ResolvedTypes(resolved.formats, self._schemas(found, faults), tuple(faults))

    def _schemas(self, found: Discovery, faults: list[Fault]) -> SchemaStore:
        if any(one is not None and one.needs_schemas for one in (self.key, self.value)):
            return find_schemas(found, self.schemas, faults)
        return SchemaStore()


def _sample(given: Sample | str | None) -> Sample | None:
    if given is None:
        return None
    if given == "all":
        return "all"
    if isinstance(given, bool) or not str(given).isdecimal() or int(given) == 0:
        raise ValueError(f"json_sample is {given!r}, not all or a number above 0")
    return int(given)


@dataclass(frozen=True)
class ResolvedTypes:
    """Formats with their schemas: plain values, which another process can be sent."""

    formats: dict[Side, ChosenFormat]
    store: SchemaStore
    faults: tuple[Fault, ...] = ()

    def resolved(self, _: Discovery, *, strict: bool) -> ResolvedTypes:
        """Return itself."""
        return self

    def records(self, columns: Sequence[str] | None, *, strict: bool) -> TypedRecords:
        """Return what types records."""
        made = {side: one.made(side, self.store) for side, one in self.formats.items()}
        return TypedRecords(made, columns, strict=strict)
