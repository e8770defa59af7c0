"""The tables that Python, the command line and Spark show: names, types and order of their columns.

The modules of this package are the only place where a table's columns are listed; readers, the command line, Spark and
tests follow it.
"""

from __future__ import annotations

from kraftlog.schema.answers import (
    FINDINGS,
    KEY_STATS,
    LAG,
    LAST_STABLE_OFFSETS,
    MATCHES,
    PARTITION_OFFSETS,
    RECOVERY,
    SPACE,
    STATS,
    TOP_KEYS,
    VERDICTS,
    WRITES,
)
from kraftlog.schema.groups import GROUPS, OFFSETS
from kraftlog.schema.logs import BATCHES, ERRORS, INDEX_ENTRIES, MESSAGES, RECORDS, REPLICAS, SEGMENTS, TOPIC_SUMMARY
from kraftlog.schema.metadata import METADATA_CHANGES, METADATA_TRANSACTIONS
from kraftlog.schema.registry import SCHEMAS
from kraftlog.schema.table import HEADERS, IS_JSON, TIMESTAMP, TableSchema
from kraftlog.schema.transactions import (
    HANGING_TRANSACTIONS,
    PARTITION_TRANSACTIONS,
    PRODUCERS,
    TRANSACTIONAL_IDS,
    TRANSACTIONS,
    WAITS,
)

__all__ = [
    "BATCHES",
    "ERRORS",
    "FINDINGS",
    "GROUPS",
    "HANGING_TRANSACTIONS",
    "HEADERS",
    "INDEX_ENTRIES",
    "IS_JSON",
    "KEY_STATS",
    "LAG",
    "LAST_STABLE_OFFSETS",
    "MATCHES",
    "MESSAGES",
    "METADATA_CHANGES",
    "METADATA_TRANSACTIONS",
    "OFFSETS",
    "PARTITION_OFFSETS",
    "PARTITION_TRANSACTIONS",
    "PRODUCERS",
    "RECORDS",
    "RECOVERY",
    "REPLICAS",
    "SCHEMAS",
    "SEGMENTS",
    "SPACE",
    "STATS",
    "TIMESTAMP",
    "TOPIC_SUMMARY",
    "TOP_KEYS",
    "TRANSACTIONAL_IDS",
    "TRANSACTIONS",
    "VERDICTS",
    "WAITS",
    "WRITES",
    "TableSchema",
]
