"""Schemas by id and by subject, as a schema registry has them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"


@dataclass(frozen=True)
class Reference:
    """A schema that another one uses."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    """A version of a subject.

    Attributes
    ----------
    id : int or None
        What values written by it say; None of a file that is named by its subject.
    deleted : bool
        Whether it was deleted softly: values that name its id can still be read.
    """

    subject: str
    version: int
    id: int | None
    type: str
    schema: str
    references: tuple[Reference, ...] = ()
    deleted: bool = False
    offset: int | None = None

    @property
    def guid(self) -> bytes:
        """The 16 bytes that headers name a schema by: the MD5 of its text and its references."""
        digest = hashlib.md5(self.schema.encode(), usedforsecurity=False)
        for one in self.references:
            digest.update(one.name.encode() + one.subject.encode() + one.version.to_bytes(4, "big", signed=True))
        return digest.digest()

    def __str__(self) -> str:
        number = "" if self.id is None else f" with id {self.id}"
        return f"version {self.version} of {self.subject}{number}"


@dataclass
class SchemaStore:
    """Schemas, and what finds them.

    Examples
    --------
    >>> store = SchemaStore([Schema("orders-value", 1, 7, "AVRO", '"long"')])
    >>> store.by_id(7).subject, store.newest("orders-value").id
    ('orders-value', 7)
    """

    schemas: Iterable[Schema] = ()
    source: str = "no schemas were given"
    _by_id: dict[int, Schema] = field(default_factory=dict)
    _by_guid: dict[bytes, Schema] = field(default_factory=dict)
    _subjects: dict[str, dict[int, Schema]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.schemas = list(self.schemas)
        for one in sorted(self.schemas, key=lambda one: not one.deleted):  # those that are deleted first
            if one.id is not None:
                self._by_id[one.id] = one
            self._by_guid[one.guid] = one
            self._subjects.setdefault(one.subject, {})[one.version] = one

    def by_id(self, number: int) -> Schema | None:
        """Return the schema that an id names."""
        return self._by_id.get(number)

    def by_guid(self, guid: bytes) -> Schema | None:
        """Return the schema that a guid names."""
        return self._by_guid.get(guid)

    def newest(self, subject: str) -> Schema | None:
        """Return the newest version of a subject; one that was deleted only where all are."""
        versions = self._subjects.get(subject, {}).values()
        return max(versions, key=lambda one: (not one.deleted, one.version), default=None)

    def named(self, name: str) -> Schema:
        """Return the schema that a user names: an id, a subject, or a subject and a version with a colon between them.

        Raises
        ------
        ValueError
            When there is none.
        """
        subject, _, version = name.rpartition(":")
        found = self.newest(name)
        if found is None and version.isdigit():
            found = self._subjects.get(subject, {}).get(int(version))
        if found is None and name.isdigit():
            found = self.by_id(int(name))
        if found is None:
            there = ", ".join(sorted(self._subjects)[:10]) or self.source
            raise ValueError(f"no schema {name!r}: expected an id, a subject, or SUBJECT:VERSION; there are {there}")
        return found

    def references_of(self, schema: Schema) -> list[tuple[str, Schema]]:
        """Return the schemas that one uses and the names it has for them, each behind those that it uses itself.

        Raises
        ------
        ValueError
            When one of them is not there, or they use each other in a circle.
        """
        found: dict[str, Schema] = {}
        self._collect(schema, found, ())
        return list(found.items())

    def _collect(self, schema: Schema, found: dict[str, Schema], outer: tuple[Schema, ...]) -> None:
        for one in schema.references:
            used = self._subjects.get(one.subject, {}).get(one.version)
            if used is None:
                raise ValueError(f"{schema} uses version {one.version} of {one.subject}, which is not there")
            if used in (*outer, schema):
                raise ValueError(f"{schema} and {used} use each other")
            self._collect(used, found, (*outer, schema))
            found.setdefault(one.name, used)


def unknown_schema(key: int | bytes | None, store: SchemaStore) -> str:
    """Return that there is no such schema."""
    name = f"guid {key.hex()}" if isinstance(key, bytes) else f"id {key}"
    return f"no schema with {name} in {store.source}"
