"""Schemas by id and by subject, as a schema registry has them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"

_CONTEXT = re.compile(r":\.[^:]*:")
_DEFAULT = ":.:"


def in_context(subject: str) -> tuple[str, str]:
    """Return the context of a subject and the subject in it; ids are of one context, the usual one is "".

    Examples
    --------
    >>> in_context(":.staging:orders-value"), in_context("orders-value")
    ((':.staging:', 'orders-value'), ('', 'orders-value'))
    """
    found = _CONTEXT.match(subject)
    if found is None:
        return "", subject
    return "" if found[0] == _DEFAULT else found[0], subject[found.end() :]


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
    hashed : bytes
        What the guid covers behind the text and the references: metadata and rules.
    """

    subject: str
    version: int
    id: int | None
    type: str
    schema: str
    references: tuple[Reference, ...] = ()
    deleted: bool = False
    offset: int | None = None
    hashed: bytes = b""

    @property
    def guid(self) -> bytes:
        """The 16 bytes that headers name a schema by: the MD5 of its text, its references, its metadata and rules."""
        digest = hashlib.md5(self.schema.encode(), usedforsecurity=False)
        for one in self.references:
            digest.update(one.name.encode() + one.subject.encode() + one.version.to_bytes(4, "big", signed=True))
        digest.update(self.hashed)
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
    _by_id: dict[int, dict[str, Schema]] = field(default_factory=dict)
    _of_subject: dict[tuple[str, int], Schema] = field(default_factory=dict)
    _by_guid: dict[bytes, Schema] = field(default_factory=dict)
    _subjects: dict[str, dict[int, Schema]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.schemas = list(self.schemas)
        for one in sorted(self.schemas, key=lambda one: not one.deleted):  # those that are deleted first
            context, name = in_context(one.subject)
            if one.id is not None:
                self._by_id.setdefault(one.id, {})[context] = one
                self._of_subject[context + name, one.id] = one
            if context == "" or one.guid not in self._by_guid:
                self._by_guid[one.guid] = one
            self._subjects.setdefault(context + name, {})[one.version] = one
        contexts = {in_context(subject)[0] for subject in self._subjects}
        self._contexts = sorted(contexts | {""})

    def by_id(self, number: int, subject: str = "") -> Schema | None:
        """Return the schema that an id names.

        Contexts have ids of their own. As in a registry, the subject that values are of says which one counts: it has
        the id itself, or in another context, or its context has the id. Else the only context that has it counts.
        """
        context, name = in_context(subject)
        for one in self._around(context):
            if (one + name, number) in self._of_subject:
                return self._of_subject[one + name, number]
        there = self._by_id.get(number, {})
        return next(iter(there.values())) if len(there) == 1 else there.get(context)

    def _around(self, context: str) -> list[str]:
        """Return the contexts that a subject is looked for in: each when it names none."""
        return [context] if context else self._contexts

    def by_guid(self, guid: bytes) -> Schema | None:
        """Return the schema that a guid names."""
        return self._by_guid.get(guid)

    def newest(self, subject: str) -> Schema | None:
        """Return the newest version of a subject; one that was deleted only where all are.

        Of a subject that is in other contexts alone, it is that of the first of them.
        """
        context, name = in_context(subject)
        found = [self._subjects[one + name] for one in self._around(context) if one + name in self._subjects]
        versions = found[0].values() if found else []
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
            found = self._version(subject, int(version))
        if found is None and name.isdigit():
            found = self.by_id(int(name))
        if found is None:
            there = ", ".join(sorted(self._subjects)[:10]) or self.source
            expected = "expected an id, a subject, SUBJECT:VERSION, or a file .avsc, .proto or .json"
            raise ValueError(f"no schema {name!r}: {expected}; there are {there}")
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
        context, _ = in_context(schema.subject)
        for one in schema.references:
            used = self._version(context + one.subject, one.version) or self._version(one.subject, one.version)
            if used is None:
                raise ValueError(f"{schema} uses version {one.version} of {one.subject}, which is not there")
            if used in (*outer, schema):
                raise ValueError(f"{schema} and {used} use each other")
            self._collect(used, found, (*outer, schema))
            found.setdefault(one.name, used)

    def _version(self, subject: str, version: int) -> Schema | None:
        return self._subjects.get("".join(in_context(subject)), {}).get(version)


def unknown_schema(key: int | bytes | None, store: SchemaStore) -> str:
    """Return that there is no such schema."""
    name = f"guid {key.hex()}" if isinstance(key, bytes) else f"id {key}"
    return f"no schema with {name} in {store.source}"
