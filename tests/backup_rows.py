"""The rows of a backup beside those of its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import kraftlog

LEVELS = ("read_committed", "read_uncommitted")
COLUMNS = [
    *("topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers", "producer_id"),
    *("producer_epoch", "sequence", "is_transactional", "is_control", "partition_leader_epoch", "transaction_state"),
]


def rows(log: kraftlog.Log, level: str, **given: Any) -> pa.Table:
    """Return all records, and control records, by partition."""
    found = log.records(COLUMNS, isolation_level=level, include_control=True, **given).to_table()
    return found.sort_by([("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")])


def check_same(source: Path | list[Path], backup: Any, **given: Any) -> None:
    """Assert that the records of a backup are those of its source at the cut."""
    has_offsets_of_damage = "bit_flip_base_offset" in str(source)  # at which a cut would end the log in its middle
    expected = kraftlog.open(source, cut=None if has_offsets_of_damage else "end", **given)
    found = kraftlog.open(backup, **given)
    for level in LEVELS:
        assert rows(found, level).equals(rows(expected, level))
