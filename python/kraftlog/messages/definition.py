"""Definitions of messages: their fields, and the versions that have them.

Kafka calls this a message's schema; "A Guide to the Kafka Protocol" and the JSON files from which Kafka generates its
own classes specify the same facts.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache

LAST_VERSION = 32767
_VERSIONS = re.compile(r"(\d+)(?:(\+)|-(\d+))?", re.ASCII)

BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64 = "bool", "int8", "int16", "uint16", "int32", "uint32", "int64"
FLOAT64, STRING, BYTES, UUID, STRUCT = "float64", "string", "bytes", "uuid", "struct"
KINDS = (BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, UUID, STRING, BYTES, STRUCT)


@dataclass(frozen=True)
class Versions:
    """A range of versions, both ends included; it is empty when the last one is below the first."""

    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __bool__(self) -> bool:
        return self.first <= self.last

    def __str__(self) -> str:
        if not self:
            return "none"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def within(self, outer: Versions) -> Versions:
        """Return those that are among others as well."""
        both = Versions(max(self.first, outer.first), min(self.last, outer.last))
        return both if both else NO_VERSIONS

    @staticmethod
    def parse(text: str) -> Versions:
        """Return a range as Kafka writes it: ``3``, ``1-3``, ``2+`` or ``none``.

        Raises
        ------
        ValueError
            It is not written so.
        """
        if text == "none":
            return NO_VERSIONS
        match = _VERSIONS.fullmatch(text)
        if match is None:
            raise ValueError(f"versions are written as 3, 1-3, 2+ or none, not {text!r}")
        first = int(match[1])
        last = LAST_VERSION if match[2] else int(match[3] or first)
        if not first <= last <= LAST_VERSION:
            raise ValueError(f"versions {text!r}: from 0 to {LAST_VERSION}, the first one first")
        return Versions(first, last)


NO_VERSIONS = Versions(0, -1)


@dataclass(frozen=True)
class Field:
    """A field of a message, or of a struct in it.

    Attributes
    ----------
    name : str
        As Kafka's JSON has it, for example ``leaderEpoch``.
    kind : str
        One of ``KINDS``; of an array, what its elements are.
    is_array : bool
    versions : Versions
        In which the field is: some of those of the struct or message that it is in.
    nullable : Versions
        In which it may be null.
    tag : int or None
    tagged : Versions
        In which it is a tagged field (KIP-482).
    default : bool, int, float, str or None
        Its value where it is absent: the zero of its kind unless the definition has another; None for null. A
        uuid's is text. That of an array, of ``bytes`` or of a struct is ``""`` when it is not null: an empty one, or a
        struct of its fields' defaults.
    is_ignorable : bool
        Whether a writer may leave a value out that the version has no place for.
    fields : tuple of Field
        Of a struct.
    """

    name: str
    kind: str
    is_array: bool
    versions: Versions
    nullable: Versions = NO_VERSIONS
    tag: int | None = None
    tagged: Versions = NO_VERSIONS
    default: bool | int | float | str | None = None
    is_ignorable: bool = False
    fields: tuple[Field, ...] = ()

    @property
    def column(self) -> str:
        """The field's name as a column's: ``leaderEpoch`` is ``leader_epoch``."""
        return snake_case(self.name)


@dataclass(frozen=True)
class Definition:
    """A message.

    Attributes
    ----------
    name : str
        As Kafka's JSON has it, for example ``OffsetCommitValue``.
    role : str
        ``metadata``, ``coordinator-key``, ``coordinator-value`` or ``data``.
    api_key : int or None
        The number of its type, where it has one.
    versions, flexible : Versions
        That there are, and in which structs end in tagged fields and lengths are compact (KIP-482).
    fields : tuple of Field
    format : str or None
        That of the log that it is a record of, for example ``consumer_offsets``; None for other messages.
    """

    name: str
    role: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    format: str | None = None

    def __hash__(self) -> int:
        """Return a hash that does not look at the fields, as that of a field."""
        return hash((self.name, self.role, self.api_key))


def digest(definition: Definition) -> int:
    """Return 64 bits that tell a definition from others: code that was generated of one decodes no other."""
    return int.from_bytes(hashlib.sha256(repr(definition).encode()).digest()[:8])


@cache
def snake_case(name: str) -> str:
    """Return a name of Kafka's JSON as a column's.

    Examples
    --------
    >>> snake_case("leaderEpoch"), snake_case("lastKnownElr"), snake_case("kRaftVersion")
    ('leader_epoch', 'last_known_elr', 'kraft_version')
    """
    spelled = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return spelled.lstrip("_").replace("k_raft", "kraft")
