"""Counts of the records of a partition by type, version and tagged field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_TOMBSTONE, _EMPTY, _UNREADABLE = -1, -2, -3  # in place of a version
_LOW = 0xFFFF

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class Kind(NamedTuple):
    """The type and version of records.

    ``api_key`` is None for records without a readable type in the key; ``value_version`` is None for a tombstone and
    for a value without a readable version.
    """

    api_key: int | None
    value_version: int | None
    is_tombstone: bool
    is_unreadable: bool


class TagKind(NamedTuple):
    """Records of one type and version that have a tagged field.

    ``structs`` are the names of the structs that contain it, joined by dots; ``name`` is empty if unknown.
    """

    api_key: int
    value_version: int
    structs: str
    tag: int
    name: str

    @property
    def field(self) -> str | None:
        """The path of the field and its name, as far as known."""
        return ".".join(part for part in (self.structs, self.name) if part) or None


@dataclass
class Count:
    """The number of records, and the offset of the first."""

    records: int
    first_offset: int

    def __add__(self, other: Count) -> Count:
        """Return the count of both."""
        return Count(self.records + other.records, min(self.first_offset, other.first_offset))


class RecordCounts:
    """Counts of the records of one partition, including those that later ones overwrite, since a coordinator loads all.

    Attributes
    ----------
    kinds : Mapping of Kind to Count
    tags : Mapping of TagKind to Count
    """

    def __init__(self) -> None:
        self._codes: dict[int, Count] = {}
        self._no_type = Count(0, 0)
        self._tags: dict[TagKind, Count] = {}

    def add(
        self,
        types: Numbers,
        value_versions: Numbers,
        is_tombstone: Mask,
        offsets: Offsets,
        *,
        unknown_type: int,
        is_unreadable: Mask | None = None,
    ) -> None:
        """Count the next records, in the order of the log.

        Parameters
        ----------
        types : numpy.ndarray
            Api keys.
        value_versions : numpy.ndarray
            Negative for none.
        is_tombstone : numpy.ndarray
        offsets : numpy.ndarray
        unknown_type : int
            The value in ``types`` for a key without a readable type.
        is_unreadable : numpy.ndarray, optional
            Records of a known type and version that no release can read.
        """
        has_type = types != unknown_type
        if not has_type.all():
            without = np.flatnonzero(~has_type)
            _take(self._no_type, len(without), int(offsets[without[0]]))
        versions = np.where(value_versions < 0, _EMPTY, value_versions).astype(np.int64)
        versions[is_tombstone] = _TOMBSTONE
        if is_unreadable is not None:
            versions[is_unreadable] = _UNREADABLE
        codes = types.astype(np.int64) << 16 | (versions & _LOW)
        unique_codes, first, counts = np.unique(codes[has_type], return_index=True, return_counts=True)
        first_offsets = offsets[has_type][first]
        for code, first_offset, count in zip(
            unique_codes.tolist(), first_offsets.tolist(), counts.tolist(), strict=True
        ):
            _take(self._codes.setdefault(code, Count(0, 0)), count, first_offset)

    def add_tag(self, kind: TagKind, offsets: Offsets) -> None:
        """Count the next records that have a tagged field."""
        if len(offsets):
            _take(self._tags.setdefault(kind, Count(0, 0)), len(offsets), int(offsets[0]))

    @property
    def kinds(self) -> Mapping[Kind, Count]:
        """The counts by type and version."""
        return dict(self._kinds())

    @property
    def tags(self) -> Mapping[TagKind, Count]:
        """The counts by tagged field."""
        return dict(sorted(self._tags.items()))

    def _kinds(self) -> Iterator[tuple[Kind, Count]]:
        if self._no_type.records:
            yield Kind(None, None, False, False), self._no_type
        for code, count in sorted(self._codes.items()):
            version = _signed(code)
            shown_version = version if version >= 0 else None
            yield Kind(code >> 16, shown_version, version == _TOMBSTONE, version == _UNREADABLE), count


def _take(count: Count, records: int, first_offset: int) -> None:
    if not count.records:
        count.first_offset = first_offset
    count.records += records


def _signed(number: int) -> int:
    low = number & _LOW
    return low - (_LOW + 1) if low > _LOW >> 1 else low
