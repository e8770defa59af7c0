"""State of groups at a server: in the log of a store, or outside of a log which is only read."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Protocol

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.log_store.store import LogStore
from kraftlog.topics import TopicPartition


class CommittedOffsets(Protocol):
    """Offsets and records of groups; its methods may wait for a disk, and run in several threads at once."""

    @property
    def groups(self) -> list[str]:
        """The groups with offsets."""

    def of(self, group_id: str) -> Mapping[tuple[str, int], OffsetAndMetadata]:
        """Return the offsets of a group."""

    def unstable(self, group_id: str) -> Collection[tuple[str, int]]:
        """Return the partitions whose offsets an open transaction may change."""

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Take offsets of a group.

        Raises
        ------
        StoreError, OSError
            When they cannot be committed; nothing is.
        """

    def forget(self, group_id: str, partitions: Collection[TopicPartition]) -> None:
        """Remove offsets of a group.

        Raises
        ------
        StoreError, OSError
            When they cannot be removed.
        """

    @property
    def records(self) -> Mapping[bytes, bytes]:
        """The records of groups and their members that outlive the server, by key."""

    def write_records(self, group_id: str, records: Sequence[KeyAndValue]) -> None:
        """Write records of a group.

        Raises
        ------
        StoreError, OSError
            When they cannot be written.
        """


class StoredOffsets:
    """Offsets in ``__consumer_offsets`` of a store.

    Parameters
    ----------
    store : LogStore
    """

    def __init__(self, store: LogStore) -> None:
        self._coordinator = store.parts.groups

    @property
    def groups(self) -> list[str]:
        """The groups with offsets."""
        return self._coordinator.groups()

    def of(self, group_id: str) -> Mapping[tuple[str, int], OffsetAndMetadata]:
        """Return the offsets of a group."""
        return self._coordinator.committed(group_id)

    def unstable(self, group_id: str) -> Collection[tuple[str, int]]:
        """Return the partitions whose offsets an open transaction may change."""
        return self._coordinator.fetch(group_id)[1]

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Write offsets of a group, and wait for the disk."""
        by_key = {(key.topic, key.partition): one for key, one in offsets.items()}
        self._coordinator.commit(GroupMetadata(group_id), by_key)

    def forget(self, group_id: str, partitions: Collection[TopicPartition]) -> None:
        """Write that a group has no offsets of some partitions."""
        self._coordinator.forget(group_id, sorted(partitions))

    @property
    def records(self) -> Mapping[bytes, bytes]:
        """The records of groups and their members, by key."""
        return self._coordinator.records

    def write_records(self, group_id: str, records: Sequence[KeyAndValue]) -> None:
        """Write records of a group, and wait for the disk."""
        self._coordinator.write_records(group_id, records)


class OffsetsOutsideLog:
    """Offsets by group, in memory, and in a file of the user's if one is named.

    Parameters
    ----------
    path : Path, optional
        A JSON file; created by the first commit, and replaced by each.
    earlier : mapping of str to offsets, optional
        Offsets with which groups begin that the file does not have.

    Raises
    ------
    ValueError
        When the file is not one that a server has written.
    """

    def __init__(
        self, path: Path | None = None, earlier: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]] | None = None
    ) -> None:
        self._path = path
        self._lock = Lock()
        self._groups: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        if path is not None and disk().entry(path) is not None:
            try:
                self._take(json.loads(disk().read_bytes(path)))
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(f"{path} is not a file of committed offsets: {error!r}") from error
        for group_id, offsets in (earlier or {}).items():
            self._groups.setdefault(group_id, dict(offsets))

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

    def of(self, group_id: str) -> Mapping[tuple[str, int], OffsetAndMetadata]:
        """Return the offsets of a group."""
        return {(key.topic, key.partition): one for key, one in self._groups.get(group_id, {}).items()}

    def unstable(self, _: str) -> Collection[tuple[str, int]]:
        """Return no partitions: there are no transactions."""
        return ()

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Take offsets of a group.

        Raises
        ------
        OSError
            When the file cannot be written; nothing is committed.
        """
        with self._lock:
            self._replace(group_id, self._groups.get(group_id, {}) | dict(offsets))

    def forget(self, group_id: str, partitions: Collection[TopicPartition]) -> None:
        """Remove offsets of a group.

        Raises
        ------
        OSError
            When the file cannot be written; nothing is removed.
        """
        with self._lock:
            offsets = self._groups.get(group_id, {})
            self._replace(group_id, {key: one for key, one in offsets.items() if key not in partitions})

    @property
    def records(self) -> Mapping[bytes, bytes]:
        """No records: groups end with the server."""
        return {}

    def write_records(self, group_id: str, records: Sequence[KeyAndValue]) -> None:
        """Write nothing."""

    def _replace(self, group_id: str, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        groups = {name: some for name, some in (self._groups | {group_id: offsets}).items() if some}
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
