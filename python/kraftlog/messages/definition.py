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
    """An inclusive range of versions; empty if the last one is less than the first."""

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
        """Return the intersection with others."""
        both = Versions(max(self.first, outer.first), min(self.last, outer.last))
        return both if both else NO_VERSIONS

    @staticmethod
    def parse(text: str) -> Versions:
        """Parse a range in Kafka's notation: ``3``, ``1-3``, ``2+`` or ``none``.

        Raises
        ------
        ValueError
            For any other text.
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
        Name in Kafka's JSON, for example ``leaderEpoch``.
    kind : str
        One of ``KINDS``; for an array the kind of its elements.
    is_array : bool
    versions : Versions
        Versions with the field: some of those of the struct or message that contains it.
    nullable : Versions
        Versions in which it may be null.
    tag : int or None
    tagged : Versions
        Versions in which it is a tagged field (KIP-482).
    default : bool, int, float, str or None
        Its value if it is absent: the zero of its kind unless the definition has another; None for null. The default of
        a UUID is text. An array, ``bytes`` or a struct has ``""`` for a default that is not null: an empty one, or a
        struct of its fields' defaults.
    is_ignorable : bool
        Whether a writer may drop a value that the version cannot represent.
    fields : tuple of Field
        Fields of a struct.
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
        Name in Kafka's JSON, for example ``OffsetCommitValue``.
    role : str
        ``metadata``, ``coordinator-key``, ``coordinator-value`` or ``data``.
    api_key : int or None
        The number of its type, if it has one.
    versions, flexible : Versions
        All versions, and those in which structs end in tagged fields and lengths are compact (KIP-482).
    fields : tuple of Field
    format : str or None
        Format of the log for records, for example ``consumer_offsets``; None for other messages.
    """

    name: str
    role: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    format: str | None = None

    def __hash__(self) -> int:
        """Return a hash without the fields, like the hash of a field."""
        return hash((self.name, self.role, self.api_key))


def digest(definition: Definition) -> int:
    """Return 64 bits that identify a definition: generated code only decodes its own definition."""
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
