"""What the coordinators knew when a store was closed, in a file: the next store need not read their topics again.

``__transaction_state`` and ``__consumer_offsets`` grow with each transaction. The file holds what they add up to, and
the offsets at which they ended. It is taken only while they end there, and when the log directory was closed in order:
a broker that wrote to them meanwhile has moved their recovery points. It can be removed at any time.
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

_VERSION = 1

GroupsOffsets = Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]
Ends = Mapping[TopicPartition, tuple[str, int]]
"""Of each partition its topic id, as text, and the offset at which it ends."""


@dataclass(frozen=True)
class Known:
    """What the coordinators know."""

    transactions: list[TransactionState]
    groups: GroupsOffsets


def write_known(log_directory: Path, ends: Ends, known: Known) -> None:
    """Write the file, unless it says the same already."""
    rows = {
        "version": _VERSION,
        "ends": [[*key, *end] for key, end in sorted(ends.items())],
        "transactions": [{**asdict(each), "partitions": sorted(each.partitions)} for each in known.transactions],
        "offsets": [
            [group, *key, asdict(offset)]
            for group, offsets in sorted(known.groups.items())
            for key, offset in sorted(offsets.items())
        ],
    }
    path, data = log_directory / COORDINATORS_FILE, json.dumps(rows).encode()
    if disk().entry(path) is None or disk().read_bytes(path) != data:
        write_file(path, data)


def read_known(log_directory: Path, ends: Ends | None = None) -> Known | None:
    """Return what the file says; None when there is no such file, or none of this form.

    Parameters
    ----------
    log_directory : Path
    ends : mapping of (str, int) to (str, int), optional
        Where the topics of the coordinators end; None is returned unless the file was written when they ended there.
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
        return Known(states, groups)
    except (OSError, ValueError, KeyError, TypeError):
        return None
