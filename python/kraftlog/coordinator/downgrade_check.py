"""Records of internal topics that an older release cannot read (KIP-915)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from kraftlog.coordinator.record_counts import Count, Kind, RecordCounts, TagKind
from kraftlog.coordinator.releases import (
    NEWEST_RELEASE,
    Reader,
    Release,
    Tag,
    name_of_type,
    readers,
    skips_unknown_types,
    tags,
)
from kraftlog.messages.format_of import CONSUMER_OFFSETS, METADATA, SHARE_GROUP_STATE

FAILS, SKIPPED, FIELD_IGNORED, UNKNOWN = "fails", "skipped", "field_ignored", "unknown"

# in the form of kraftlog.schema once it is a table of the command line
COLUMNS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("type", pa.string()),
        ("key_version", pa.int16()),
        ("value_version", pa.int16()),
        ("tag", pa.int32()),
        ("field", pa.string()),
        ("records_count", pa.int64()),
        ("first_offset", pa.int64()),
        ("outcome", pa.string()),
        ("message", pa.string()),
    ]
)

# state that is missing while the older release runs; the records stay in the log without tombstones
_LOST_STATE = (
    (range(3, 9), "members and assignments of consumer groups are not known; their committed offsets are"),
    (range(16, 17), "regular expressions of consumer groups are not known; the groups' committed offsets are"),
    (range(9, 16), "share groups are not known"),
    (range(17, 25), "streams groups are not known; their committed offsets are"),
)
_EARLY_ACCESS = Release(3, 7), Release(4, 0)
_NEW_GROUP_COORDINATOR = (
    " (unless group.coordinator.rebalance.protocols has consumer; 3.7 has other fields in them then)"
)
_NO_SHARE_COORDINATOR = Release(4, 0)


@dataclass(frozen=True)
class Check:
    """The records of one log, and the release that must read them."""

    format_name: str
    release: Release
    readers: Mapping[int, Reader]
    tags: Mapping[int, tuple[Tag, ...]]


class Found(NamedTuple):
    """Records, or a tagged field of them, that a release does not read."""

    type: str | None
    key_version: int | None
    value_version: int | None
    tag: int | None
    field: str | None
    outcome: str
    message: str


def downgrade_check(
    format_name: str, counts: Mapping[tuple[str, int | None], RecordCounts], release: Release
) -> pa.Table:
    """Return the records that a release could not read: a row for each type, version and tagged field of a partition.

    Parameters
    ----------
    format_name : str
        Format name of the log: one of ``releases.FORMATS``.
    counts : Mapping of tuple to RecordCounts
        By topic and partition.
    release : Release

    Returns
    -------
    pyarrow.Table
        ``outcome`` is ``fails`` (the partition cannot be loaded), ``skipped`` (only the content of the record is
        missing there), ``field_ignored`` or ``unknown`` (no known release has the field, so the loss is unknown). It
        has no rows if the release reads everything.
    """
    check = Check(format_name, release, readers(format_name, release), tags(format_name))
    rows: list[tuple[object, ...]] = []
    for (topic, partition), counted in sorted(counts.items(), key=_place):
        for finding, count in _found(check, counted).items():
            rows.append((topic, partition, *finding[:-2], count.records, count.first_offset, *finding[-2:]))
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, COLUMNS, strict=True)], schema=COLUMNS
    )


def _place(item: tuple[tuple[str, int | None], RecordCounts]) -> tuple[str, int]:
    (topic, partition), _ = item
    return topic, -1 if partition is None else partition


def _found(check: Check, counts: RecordCounts) -> dict[Found, Count]:
    """Return the records that the release does not read, by release, outcome and reason."""
    by_kind: dict[Found, Count] = {}
    for kind, count in counts.kinds.items():
        judged = _judge(check, kind)
        if judged is not None:
            key = Found(
                _name(check, kind.api_key), _key_version(check, kind.api_key), kind.value_version, None, None, *judged
            )
            by_kind[key] = count if key not in by_kind else by_kind[key] + count
    for tag, count in counts.tags.items():
        ignored = _ignored(check, tag)
        if ignored is not None:
            name, key_version = _name(check, tag.api_key), _key_version(check, tag.api_key)
            by_kind[Found(name, key_version, tag.value_version, tag.tag, tag.field, *ignored)] = count
    return by_kind


def _judge(check: Check, kind: Kind) -> tuple[str, str] | None:
    """Return the outcome for records, and the reason; None if the release reads them."""
    release = check.release
    if check.format_name == SHARE_GROUP_STATE and release < _NO_SHARE_COORDINATOR:
        return SKIPPED, f"{release} has no share coordinator; nobody reads this topic"
    if kind.api_key is None:
        return FAILS, "it does not say which type of record it is; no release reads it"
    reader = check.readers.get(kind.api_key)
    if reader is None:
        return _unknown_type(check, kind.api_key)
    if kind.is_unreadable:
        return FAILS, "it is damaged; no release reads it"
    if kind.is_tombstone:
        return None
    if kind.value_version is None:
        return FAILS, "the value has no version; no release reads it"
    if kind.value_version not in reader.versions:
        return FAILS, f"{release} reads {_versions(reader)} of the value"
    if reader.is_other_layout:
        return FAILS, f"{release} has the type in early access, with other fields in version {kind.value_version}"
    return None


def _unknown_type(check: Check, api_key: int) -> tuple[str, str]:
    release = check.release
    if check.format_name == METADATA:
        return FAILS, f"{release} does not know metadata records of type {api_key}, and cannot load a log that has any"
    if not skips_unknown_types(release):
        return FAILS, f"{release} does not know records of type {api_key}, and is from before KIP-915"
    message = f"{release} does not know records of type {api_key}"
    if name_of_type(check.format_name, api_key) is None:
        return SKIPPED, f"{message}, nor does any release up to {NEWEST_RELEASE}: what is lost nobody can say"
    if check.format_name != CONSUMER_OFFSETS:
        return SKIPPED, message
    lost = next((text for types, text in _LOST_STATE if api_key in types), None)
    is_early_access = api_key in _LOST_STATE[0][0] and _EARLY_ACCESS[0] <= release < _EARLY_ACCESS[1]
    message = message if lost is None else f"{message}: {lost}"
    return SKIPPED, message + (_NEW_GROUP_COORDINATOR if is_early_access else "")


def _ignored(check: Check, kind: TagKind) -> tuple[str, str] | None:
    """Return the outcome of ignoring a tagged field, and the reason; None if it is known, or the record is not read."""
    reader = check.readers.get(kind.api_key)
    if reader is None or kind.value_version not in reader.versions or reader.is_other_layout:
        return None
    tag_of_release = next((tag for tag in check.tags.get(kind.api_key, ()) if tag.field == kind.field), None)
    if tag_of_release is not None and check.release < tag_of_release.since:
        return FIELD_IGNORED, f"{check.release} does not know {tag_of_release.field}: {tag_of_release.loss}"
    if kind.name:
        return None
    return UNKNOWN, f"no release up to {NEWEST_RELEASE} knows this tagged field: what it means is lost"


def _name(check: Check, api_key: int | None) -> str | None:
    """Return the name of a type, or its number without one."""
    return None if api_key is None else name_of_type(check.format_name, api_key) or str(api_key)


def _key_version(check: Check, api_key: int | None) -> int | None:
    """Return the version of a key, Kafka's earlier name of the api key; metadata records have no key."""
    return None if check.format_name == METADATA else api_key


def _versions(reader: Reader) -> str:
    first, last = reader.versions.first, reader.versions.last
    return f"version {first}" if first == last else f"versions {first} to {last}"
