"""What Kafka's file and folder names mean."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_SEGMENT_FILE = re.compile(r"(?P<offset>\d{20})\.(?P<kind>log|index|timeindex|txnindex|snapshot)(?P<state>(\.\w+)*)")
_CHECKPOINT_FILE = re.compile(r"(bootstrap|\d{20}-\d{10})\.checkpoint(?P<state>(\.\w+)*)")
_METADATA_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_PARTITION_FOLDER = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
_PARTITION_IN_TRANSITION = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)\.[0-9a-f]{32}-(?P<state>delete|future|stray)")

# What writers of this package keep in a log directory: writes that are under way, and which batches they committed.
STORE_FOLDER = ".kraftlog"
COMMITTED_BATCHES_FILE = "kraftlog-streams.json"

# Files that stand beside segments, or in the log directory, and hold something else than records.
KNOWN_FILES = frozenset(
    {
        ".kafka_cleanshutdown",
        ".lock",
        "cleaner-offset-checkpoint",
        "leader-epoch-checkpoint",
        "log-start-offset-checkpoint",
        "meta.properties",
        "partition.metadata",
        "quorum-state",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        COMMITTED_BATCHES_FILE,
    }
)
KNOWN_FOLDERS = frozenset({"remote-log-index-cache", "remote-log-manager", STORE_FOLDER})

LARGEST_PARTITION = 2**31 - 1
LARGEST_OFFSET = 2**63 - 1

STATES = {
    ".deleted": "deleted: a segment that Kafka was about to remove",
    ".cleaned": "cleaned: unfinished output of the log cleaner",
    ".swap": "swap: output of the log cleaner that has not replaced its sources yet",
    ".part": "part: a snapshot that was not finished",
}


class SegmentFileName(NamedTuple):
    """``00000000000000000042.log`` and the like; ``state`` is "" or a suffix such as ``.deleted``."""

    base_offset: int
    kind: str
    state: str


def printable(name: str) -> str:
    """Return a file name as text: bytes that are not UTF-8 become U+FFFD."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "replace")


def parse_segment_file(name: str) -> SegmentFileName | None:
    """Return what the name of a segment's file says; None for other names."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None:
        return None
    base_offset = int(match[1])
    return SegmentFileName(base_offset, match[2], match[3]) if base_offset <= LARGEST_OFFSET else None


def parse_checkpoint_file(name: str) -> str | None:
    """Return the state suffix ("" for a finished one) of a snapshot of the metadata log; None for other names."""
    match = _CHECKPOINT_FILE.fullmatch(name)
    return match["state"] if match else None


def parse_metadata_snapshot(name: str) -> tuple[int, int] | None:
    """Return end offset and epoch of a finished snapshot of the metadata log; None for other names."""
    match = _METADATA_SNAPSHOT.fullmatch(name)
    return (int(match[1]), int(match[2])) if match and int(match[1]) <= LARGEST_OFFSET else None


def parse_partition_folder(name: str) -> tuple[str, int] | None:
    """Return topic and partition of a partition's folder; None for other names."""
    match = _PARTITION_FOLDER.fullmatch(name) or _PARTITION_IN_TRANSITION.fullmatch(name)
    if match is None or int(match["partition"]) > LARGEST_PARTITION:
        return None
    return printable(match["topic"]), int(match["partition"])


def transition_of(name: str) -> str | None:
    """Return delete, future or stray for the folder of a partition that Kafka is moving or removing."""
    match = _PARTITION_IN_TRANSITION.fullmatch(name)
    return match["state"] if match else None
