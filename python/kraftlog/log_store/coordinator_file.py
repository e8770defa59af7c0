"""The state of the coordinators when a store was closed, in a file: the next store need not read their topics.

``__transaction_state`` and ``__consumer_offsets`` grow with each transaction. The file holds their aggregate state and
their end offsets. It is used only while they still end there, and when the log directory was closed cleanly: a broker
that wrote to them since has moved their recovery points. It can be removed at any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.layout.names import COORDINATORS_FILE
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.transaction_state import TopicPartition, TransactionState

_VERSION = 2

GroupsOffsets = Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]
Ends = Mapping[TopicPartition, tuple[str, int]]
"""The topic id of each partition, as text, and its end offset."""


@dataclass(frozen=True)
class Known:
    """The state of the coordinators.

    Attributes
    ----------
    transactions : list of TransactionState
    groups : mapping
        The committed offsets of each group.
    group_records : mapping of bytes to bytes
        The last records of groups and their members, by key.
    """

    transactions: list[TransactionState]
    groups: GroupsOffsets
    group_records: Mapping[bytes, bytes]


def write_known(log_directory: Path, ends: Ends, known: Known) -> None:
    """Write the file, unless it has the same content already."""
    rows = {
        "version": _VERSION,
        "ends": [[*key, *end] for key, end in sorted(ends.items())],
        "transactions": [{**asdict(each), "partitions": sorted(each.partitions)} for each in known.transactions],
        "offsets": [
            [group, *key, asdict(offset)]
            for group, offsets in sorted(known.groups.items())
            for key, offset in sorted(offsets.items())
        ],
        "group_records": [[key.hex(), value.hex()] for key, value in sorted(known.group_records.items())],
    }
    path, data = log_directory / COORDINATORS_FILE, json.dumps(rows).encode()
    if disk().entry(path) is None or disk().read_bytes(path) != data:
        write_file(path, data)


def read_known(log_directory: Path, ends: Ends | None = None) -> Known | None:
    """Return the content of the file; None without a file, or with one of another form.

    Parameters
    ----------
    log_directory : Path
    ends : mapping of (str, int) to (str, int), optional
        End offsets of the coordinators' topics; the result is None unless the file has the same ones.
    """
    path = log_directory / COORDINATORS_FILE
    try:
        rows = json.loads(disk().read_bytes(path))
        if rows["version"] != _VERSION:
            return None
        if ends is not None and {(name, at): (known, end) for name, at, known, end in rows["ends"]} != dict(ends):
            return None
        states = [
            TransactionState(**{**row, "partitions": frozenset((name, at) for name, at in row["partitions"])})
            for row in rows["transactions"]
        ]
        groups: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        for group, name, at, offset in rows["offsets"]:
            groups.setdefault(group, {})[name, at] = OffsetAndMetadata(**offset)
        records = {bytes.fromhex(key): bytes.fromhex(value) for key, value in rows["group_records"]}
        return Known(states, groups, records)
    except (OSError, ValueError, KeyError, TypeError):
        return None
