"""Counts of a partition's messages by features that an older release may not read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kraftlog.coordinator.present_tags import present_tags
from kraftlog.coordinator.record_counts import RecordCounts, TagKind
from kraftlog.messages.frames import UNKNOWN_TYPE
from kraftlog.messages.reader import Messages
from kraftlog.messages.record_type import RecordFormat, RecordType

Offsets = npt.NDArray[np.int64]


def count_messages(counts: RecordCounts, record_format: RecordFormat, messages: Messages, offsets: Offsets) -> None:
    """Add messages to the counts of their partition.

    Parameters
    ----------
    counts : RecordCounts
    record_format : RecordFormat
        Record format of the log.
    messages : Messages
        Messages with UUIDs as text. All are decoded, to see damage and tagged fields.
    offsets : numpy.ndarray
        Offsets of the records.
    """
    is_unreadable = np.zeros(len(offsets), bool)
    versions = messages.value_versions
    for name, of_name in _types_there(record_format, messages).items():
        typed = messages.typed(name)
        is_of_type = np.isin(messages.types, [one.api_key for one in of_name])
        is_unreadable |= is_of_type & (_has_known_version(of_name[-1], messages) | messages.is_tombstone)
        is_unreadable[typed.rows] = False
        for tag in present_tags(of_name[-1], typed.fields):
            rows = typed.rows[tag.rows]
            for api_key, version in sorted(
                set(zip(messages.types[rows].tolist(), versions[rows].tolist(), strict=True))
            ):
                chosen = rows[(messages.types[rows] == api_key) & (versions[rows] == version)]
                counts.add_tag(TagKind(api_key, version, tag.structs, tag.tag, tag.name), offsets[chosen])
    counts.add(
        messages.types,
        versions,
        messages.is_tombstone,
        offsets,
        unknown_type=UNKNOWN_TYPE,
        is_unreadable=is_unreadable,
    )


def _types_there(record_format: RecordFormat, messages: Messages) -> dict[str, list[RecordType]]:
    """Return the known types of records by name: two types share a number."""
    there = set(np.unique(messages.types).tolist())
    named: dict[str, list[RecordType]] = {}
    for one in record_format.types.values():
        if one.value is not None:
            named.setdefault(one.name, []).append(one)
    return {name: types for name, types in named.items() if there.intersection(one.api_key for one in types)}


def _has_known_version(record_type: RecordType, messages: Messages) -> npt.NDArray[np.bool_]:
    assert record_type.value is not None
    versions = record_type.value.versions
    return (messages.value_versions >= versions.first) & (messages.value_versions <= versions.last)
