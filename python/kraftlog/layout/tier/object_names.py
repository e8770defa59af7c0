"""The names of objects in a remote tier, in both layouts.

Topics and ids may contain the separators, so names are parsed from the right, by length.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kraftlog.disk.remote_path import LogPath
from kraftlog.topics import TopicPartition

AIVEN_KINDS = ("log", "indexes", "rsm-manifest")
LOCAL_KINDS = ("log", "index", "timeindex", "txnindex", "snapshot", "leader_epoch_checkpoint")

_ID = "[A-Za-z0-9_-]{22}"
_FILE = re.compile(rf"(?P<base_offset>[0-9]{{20}})-(?P<id>{_ID})\.(?P<kind>[a-z_-]+)")
_AIVEN_FOLDER = re.compile(rf"(?P<topic>.+)-(?P<id>{_ID})", re.DOTALL)
_LOCAL_FOLDER = re.compile(rf"(?P<topic>.+)-(?P<partition>[0-9]{{1,10}})-(?P<id>{_ID})", re.DOTALL)
_PARTITION = re.compile("[0-9]{1,10}")


class StoredPartition(NamedTuple):
    """The partition of a folder of the tier; ``is_aiven`` is its layout."""

    topic: str
    partition: int
    topic_id: str
    is_aiven: bool

    @property
    def topic_partition(self) -> TopicPartition:
        """Its name, without the id of the topic."""
        return TopicPartition(self.topic, self.partition)


class StoredFile(NamedTuple):
    """``<base offset>-<segment id>.<kind>``."""

    base_offset: int
    segment_id: str
    kind: str


def parse_folder(folder: LogPath) -> StoredPartition | None:
    """Return the partition of a folder's files; None for other folders.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kraftlog.layout.tier.object_names import parse_folder
    >>> parse_folder(Path("tier/ts/orders-lZ6vvmajTWKDBUTV6SQAtQ/7"))
    StoredPartition(topic='orders', partition=7, topic_id='lZ6vvmajTWKDBUTV6SQAtQ', is_aiven=True)
    >>> parse_folder(Path("kafka-tiered-storage/orders-7-lZ6vvmajTWKDBUTV6SQAtQ")).is_aiven
    False
    """
    if _PARTITION.fullmatch(folder.name):
        match = _AIVEN_FOLDER.fullmatch(folder.parent.name)
        return StoredPartition(match["topic"], int(folder.name), match["id"], True) if match else None
    match = _LOCAL_FOLDER.fullmatch(folder.name)
    return StoredPartition(match["topic"], int(match["partition"]), match["id"], False) if match else None


def parse_file(name: str) -> StoredFile | None:
    """Parse the name of a file in such a folder; None for other names."""
    match = _FILE.fullmatch(name)
    return StoredFile(int(match["base_offset"]), match["id"], match["kind"]) if match else None
