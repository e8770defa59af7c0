"""Kafka's file and folder names."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from kraftlog.topics import TopicPartition

_LIVE = {f".{kind}": kind for kind in ("log", "index", "timeindex", "txnindex", "snapshot")}
_SEGMENT_FILE_SUFFIX = re.compile(r"\.(log|index|timeindex|txnindex|snapshot)((?:\.\w+)*)")
_CHECKPOINT_FILE = re.compile(r"(bootstrap|[0-9]{20}-[0-9]{10})\.checkpoint(?P<state>(\.\w+)*)")
_METADATA_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_IN_TRANSITION = ("-delete", "-future", "-stray")
_PARTITION_IN_TRANSITION = re.compile(
    r"(?P<topic>.+)-(?P<partition>[0-9]+)\.[0-9a-f]{32}-(?P<state>delete|future|stray)"
)

# Files of this package in a log directory: staged writes, and the state of a store's coordinators.
STORE_FOLDER = ".kraftlog"
COORDINATORS_FILE = "kraftlog-coordinators.json"

PARTITION_METADATA = "partition.metadata"

# Files that stand beside segments, or in the log directory, and hold something else than records.
KNOWN_FILES = {
    ".kafka_cleanshutdown": "the mark of a clean shutdown",
    ".lock": "the lock of a broker",
    "cleaner-offset-checkpoint": "the checkpoint of the log cleaner",
    "leader-epoch-checkpoint": "the checkpoint of leader epochs",
    "log-start-offset-checkpoint": "the checkpoint of log start offsets",
    "meta.properties": "the identity of a log directory",
    PARTITION_METADATA: "the topic id of a partition",
    "quorum-state": "the vote of a controller",
    "recovery-point-offset-checkpoint": "the checkpoint of recovery points",
    "replication-offset-checkpoint": "the checkpoint of high watermarks",
    COORDINATORS_FILE: "what the coordinators of a store know",
}
KINDS_BESIDE = {
    "index": "an index of offsets",
    "timeindex": "an index of timestamps",
    "txnindex": "an index of aborted transactions",
    "snapshot": "a snapshot of producers",
}
KNOWN_FOLDERS = frozenset({"remote-log-index-cache", "remote-log-manager", STORE_FOLDER})

LARGEST_PARTITION = 2**31 - 1
LARGEST_OFFSET = 2**63 - 1

CLEANED, SWAP, REPLACED = ".cleaned", ".swap", ".replaced"
STATES = {
    ".deleted": "deleted: a segment that Kafka was about to remove",
    CLEANED: "cleaned: unfinished output of the log cleaner",
    SWAP: "swap: output of the log cleaner that did not finish",
    REPLACED: "replaced: a source of the log cleaner, whose output is next to it",
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
    """Parse the name of a segment's file; None for other names."""
    digits = name[:20]
    if len(digits) < 20 or not (digits.isdigit() and digits.isascii()):
        return None
    kind, state = _LIVE.get(name[20:]), ""
    if kind is None:
        match = _SEGMENT_FILE_SUFFIX.fullmatch(name, 20)
        if match is None:
            return None
        kind, state = match.groups()
    base_offset = int(digits)
    return SegmentFileName(base_offset, kind, state) if base_offset <= LARGEST_OFFSET else None


def parse_checkpoint_file(name: str) -> str | None:
    """Return the state suffix ("" for a finished one) of a snapshot of the metadata log; None for other names."""
    match = _CHECKPOINT_FILE.fullmatch(name)
    return match["state"] if match else None


def parse_metadata_snapshot(name: str) -> tuple[int, int] | None:
    """Return end offset and epoch of a finished snapshot of the metadata log; None for other names."""
    match = _METADATA_SNAPSHOT.fullmatch(name)
    return (int(match[1]), int(match[2])) if match and int(match[1]) <= LARGEST_OFFSET else None


def parse_partition_folder(name: str) -> TopicPartition | None:
    """Return topic and partition of a partition's folder; None for other names."""
    topic, _, number = name.rpartition("-")
    if not topic or not (number.isdigit() and number.isascii()):
        match = _PARTITION_IN_TRANSITION.fullmatch(name) if name.endswith(_IN_TRANSITION) else None
        if match is None:
            return None
        topic, number = match["topic"], match["partition"]
    return TopicPartition(printable(topic), int(number)) if int(number) <= LARGEST_PARTITION else None


def transition_of(name: str) -> str | None:
    """Return delete, future or stray for the folder of a partition that Kafka is moving or removing."""
    match = _PARTITION_IN_TRANSITION.fullmatch(name) if name.endswith(_IN_TRANSITION) else None
    return match["state"] if match else None
