"""Offsets that groups commit at a server of a log which is only read."""

from __future__ import annotations

import json
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.topics import TopicPartition


class CommittedOffsets:
    """Offsets by group, in memory, and in a file of the user's if one is named.

    Parameters
    ----------
    path : Path, optional
        A JSON file; created by the first commit, and replaced by each.

    Raises
    ------
    ValueError
        When the file is not one that a server has written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._groups: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        if path is not None and disk().entry(path) is not None:
            try:
                self._take(json.loads(disk().read_bytes(path)))
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(f"{path} is not a file of committed offsets: {error!r}") from error

    def _take(self, groups: dict[str, list[dict[str, object]]]) -> None:
        for group_id, rows in groups.items():
            offsets = self._groups.setdefault(str(group_id), {})
            for row in rows:
                key = TopicPartition(str(row["topic"]), int(str(row["partition"])))
                offset, leader_epoch = int(str(row["offset"])), int(str(row["leader_epoch"]))
                offsets[key] = OffsetAndMetadata(offset, str(row["metadata"]), leader_epoch)

    @property
    def groups(self) -> list[str]:
        """The groups with offsets."""
        return list(self._groups)

    def of(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets of a group."""
        return self._groups.get(group_id, {})

    def commit(self, group_id: str, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Take offsets of a group.

        Raises
        ------
        OSError
            When the file cannot be written; nothing is committed.
        """
        before = self._groups.get(group_id, {})
        groups = self._groups | {group_id: before | offsets}
        if self._path is not None:
            write_file(self._path, json.dumps({name: _rows(some) for name, some in groups.items()}, indent=1).encode())
        self._groups = groups


def _rows(offsets: dict[TopicPartition, OffsetAndMetadata]) -> list[dict[str, object]]:
    return [
        {
            "topic": key.topic,
            "partition": key.partition,
            "offset": one.offset,
            "leader_epoch": one.leader_epoch,
            "metadata": one.metadata,
        }
        for key, one in sorted(offsets.items())
    ]
