"""What must be known of the golden files beside their content to build the index files that Kafka wrote."""

from __future__ import annotations

from pathlib import Path

from golden_files import GOLDEN

# index.interval.bytes of the topics, where it was not Kafka's default
INTERVALS = {
    "codecs": 2048,
    "compaction": 512,
    "deleted_records": 1024,
    "transactions": 1024,
    "transactions_tv0": 1024,
    "transactions_live": 1024,
    "transactions_hanging": 512,
}
DEFAULT_INTERVAL = 4096  # also of internal topics

# A broker counts the bytes since the last entry anew when it starts, and adds the largest timestamp to the time index
# when it stops: what these have depends on when that was.
RESTARTED = {
    "metadata_dynamic/__cluster_metadata-0/00000000000000000079.timeindex",
    "transactions_hanging/__transaction_state-1/00000000000000000000.timeindex",
    "transactions_hanging/orders-late-0/00000000000000000003.index",
}

# Written before the cleaner removed batches that they know of.
CLEANED = {
    f"compaction/{name}"
    for name in (
        "cpt-fast-0/00000000000000000406.snapshot",
        "cpt-fast-0/00000000000000000425.snapshot",
        "cpt-fast-0/00000000000000000442.snapshot",
        "cpt-fast-0/00000000000000000444.snapshot",
        "cpt-horizon-0/00000000000000000205.snapshot",
        "cpt-horizon-0/00000000000000000385.snapshot",
        "cpt-horizon-0/00000000000000000422.snapshot",
        "cpt-open-0/00000000000000000104.snapshot",
        "cpt-open-0/00000000000000000104.txnindex",
    )
}


def interval_of(scenario: str, folder: str) -> int:
    """Return index.interval.bytes of a partition."""
    return DEFAULT_INTERVAL if folder.startswith("__") else INTERVALS.get(scenario, DEFAULT_INTERVAL)


def file_name(file: Path) -> str:
    """Return scenario, folder and name of a golden file."""
    return f"{file.parts[len(GOLDEN.parts)]}/{file.parent.name}/{file.name}"
