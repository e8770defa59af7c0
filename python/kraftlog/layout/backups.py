"""Backups in a repository: their names, their manifests, and the paths that name them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from kraftlog.disk.backup_key import BackupKey, key_of, opened
from kraftlog.disk.backup_path import BACKUPS, MARKER, BackupPath
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath, RemotePath, StorageOptions, log_path
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.segment import Segment
from kraftlog.times import milliseconds, text_of
from kraftlog.topics import CLUSTER_METADATA, TopicPartition

FORMAT, VERSION, ENCRYPTED_VERSION = "kraftlog-backup", 1, 2

_OFFSETS = ("ends", "stored_ends", "open_from")  # by partition
_NAME = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{3}Z")


def backup_name(moment: int) -> str:
    """Return the name of a backup that was taken at a time in milliseconds.

    Examples
    --------
    >>> backup_name(1795489200512)
    '20261124T030000.512Z'
    """
    text = text_of(moment).removesuffix("Z").replace("-", "").replace(":", "")
    return f"{text}{'' if '.' in text else '.000'}Z"


@dataclass(frozen=True)
class SourceDirectory:
    """A log directory that was backed up.

    Attributes
    ----------
    path : str
    node_id : int or None
    directory_id : str or None
    is_clean : bool
        Whether its broker was shut down cleanly.
    """

    path: str
    node_id: int | None = None
    directory_id: str | None = None
    is_clean: bool = False


@dataclass(frozen=True)
class Manifest:
    """What a backup contains, beside the list of its files.

    Attributes
    ----------
    name : str
    taken_ms, finished_ms : int
        Times in milliseconds: before the first file was listed, and after the last one was stored.
    kraftlog : str
        Version of this package.
    cluster_id : str or None
    metadata_version : int or None
        Level of ``metadata.version`` at the end of the metadata log, if it is part of the backup.
    sources : tuple of SourceDirectory
    files, segments : int
        Number of files, and of log files among them.
    size : int
        Bytes of all files.
    stored_size : int
        Bytes of the objects that this backup added to the repository.
    files_sha256 : str
        Digest of the list of files.
    ends : mapping of TopicPartition to int
        The cut: the offset at which each partition ends, so that no transaction is torn.
    stored_ends : mapping of TopicPartition to int
        The end of the stored log of each partition.
    open_from : mapping of TopicPartition to int
        The first offset of transactions that are open at the cut, of partitions that have some.
    topics : tuple of str or None
        The topics that were asked for; None for all.
    excluded_keys_sha256 : str or None
        Of the keys whose records are left out.
    notes : tuple of str
        Notes on the choice of replicas, on torn tails, and on what the cut cannot know.
    faults : tuple of Fault
        What could not be read.
    """

    name: str
    taken_ms: int
    finished_ms: int
    kraftlog: str
    cluster_id: str | None
    metadata_version: int | None
    sources: tuple[SourceDirectory, ...]
    files: int
    segments: int
    size: int
    stored_size: int
    files_sha256: str
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    stored_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    open_from: Mapping[TopicPartition, int] = field(default_factory=dict)
    topics: tuple[str, ...] | None = None
    excluded_keys_sha256: str | None = None
    notes: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()

    def to_json(self) -> bytes:
        """Return the manifest as JSON that has its own checksum."""
        rows = {each.name: getattr(self, each.name) for each in fields(self)}
        rows |= {name: _by_topic(rows[name]) for name in _OFFSETS}
        rows |= {name: [asdict(one) for one in rows[name]] for name in ("sources", "faults")}
        content = {"format": FORMAT, "version": VERSION, **rows}
        return json.dumps({**content, "sha256": _digest(content)}, indent=1).encode()

    @classmethod
    def of_json(cls, data: bytes, path: LogPath) -> Manifest:
        """Read a manifest.

        Raises
        ------
        CorruptRecordError
            When it is not JSON, has another checksum, or belongs to a version that is not known.
        """
        try:
            content = json.loads(data)
            checksum = content.pop("sha256")
            if content.pop("format") != FORMAT:
                raise ValueError(f"expected the format {FORMAT}")
            version = content.pop("version")
            if version != VERSION:
                raise ValueError(f"expected version {VERSION}, found {version}; a newer release reads it")
            if _digest({"format": FORMAT, "version": version, **content}) != checksum:
                raise ValueError("its checksum does not match")
            ends = {name: _partitions(content.pop(name)) for name in _OFFSETS}
            sources = tuple(SourceDirectory(**one) for one in content.pop("sources"))
            faults = tuple(Fault(**one) for one in content.pop("faults"))
            content["topics"] = None if content["topics"] is None else tuple(content["topics"])
            return cls(**{**content, **ends, "sources": sources, "faults": faults, "notes": tuple(content["notes"])})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptRecordError(f"{path}: expected the manifest of a backup, found: {error}") from None


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _by_topic(ends: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), end in sorted(ends.items()):
        found.setdefault(topic, {})[str(partition)] = end
    return found


def _partitions(ends: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(number)): end for topic, numbers in ends.items() for number, end in numbers.items()
    }


def manifest_path(repository: LogPath, name: str) -> LogPath:
    """Return the path of the manifest of a backup."""
    return repository / BACKUPS / f"{name}.json"


def read_manifest(repository: LogPath, name: str, key: BackupKey | None = None) -> Manifest:
    """Return the manifest of a backup.

    Parameters
    ----------
    repository : Path or RemotePath
    name : str
    key : BackupKey, optional
        That of an encrypted repository.

    Raises
    ------
    OSError
        When it cannot be read; FileNotFoundError if there is no such backup.
    CorruptRecordError
        When it is damaged.
    """
    path = manifest_path(repository, name)
    return Manifest.of_json(opened(key, path, disk().read_bytes(path)), path)


def is_repository(path: LogPath) -> bool:
    """Whether a folder is a repository of backups."""
    return disk().entry(path / MARKER) is not None


def marker_of(encryption: Mapping[str, Any] | None) -> bytes:
    """Return the content of the marker of a repository."""
    version = VERSION if encryption is None else ENCRYPTED_VERSION
    return json.dumps(
        {"format": FORMAT, "version": version} | ({"encryption": encryption} if encryption else {})
    ).encode()


def repository_key(repository: LogPath) -> BackupKey | None:
    """Return the key of a repository; None if it is not encrypted.

    Raises
    ------
    CorruptRecordError
        When its marker is not one, or that of a newer release.
    BackupKeyError
        When the key is missing.
    """
    marker = repository / MARKER
    try:
        content = json.loads(disk().read_bytes(marker))
        version = content["version"] if content["format"] == FORMAT else None
        encryption = content["encryption"] if version == ENCRYPTED_VERSION else None
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptRecordError(f"{marker}: expected the mark of a repository, found: {error}") from None
    if version not in (VERSION, ENCRYPTED_VERSION):
        raise CorruptRecordError(f"{marker}: expected version {VERSION} of {FORMAT}, found {version}")
    return key_of(encryption, repository)


def backup_names(repository: LogPath) -> list[str]:
    """Return the names of the backups in a repository, the oldest first. A backup without a manifest is not one."""
    try:
        entries = disk().entries(repository / BACKUPS)
    except FileNotFoundError:
        return []
    names = (entry.name.removesuffix(".json") for entry in entries if entry.is_file and entry.name.endswith(".json"))
    return sorted(name for name in names if _NAME.fullmatch(name))


def backup_path(path: object, storage_options: StorageOptions | None = None) -> BackupPath | None:
    """Return the backup that a path of a user names; None for a path of another kind.

    Parameters
    ----------
    path : object
        ``REPOSITORY@NAME``; or ``REPOSITORY@TIME``, which is the first
        backup taken at or after the time, read up to the time. A folder or file in the backup can follow.
    storage_options : mapping, optional

    Raises
    ------
    ValueError
        When the repository has no such backup.
    """
    if isinstance(path, BackupPath):
        return path
    text = str(path)
    for found in re.finditer("@", text) if isinstance(path, str | Path) else ():  # a folder's name may have one, too
        name, _, key = text[found.end() :].partition("/")
        repository = log_path(text[: found.start()], storage_options) if found.start() else None
        if name and repository is not None and not _is_above(repository) and is_repository(repository):
            return _backup_at(repository, name, key)
    return None


def newest_backup(repository: LogPath) -> BackupPath:
    """Return the newest backup in a repository.

    Raises
    ------
    ValueError
        When it has none.
    """
    names = backup_names(repository)
    if not names:
        raise ValueError(f"{repository}: the repository has no backup yet")
    return BackupPath.of(repository, names[-1], backup_key=repository_key(repository))


def resolved(path: object) -> LogPath:
    """Return the path that a user names: of a backup, where it names a repository, or as it is."""
    where = backup_path(path) or log_path(path)
    return newest_backup(where) if not isinstance(where, BackupPath) and is_repository(where) else where


def _is_above(path: LogPath) -> bool:
    """Whether a path is that of a user in a URI, such as ``s3://key`` of ``s3://key:secret@bucket``."""
    return isinstance(path, RemotePath) and not path.key


def _backup_at(repository: LogPath, name: str, key: str) -> BackupPath:
    names, backup_key = backup_names(repository), repository_key(repository)
    if name in names:
        return BackupPath.of(repository, name, key.strip("/"), backup_key=backup_key)
    there = f"there are {', '.join(names[-10:])}" if names else "it has none"
    try:
        time = milliseconds(name)
    except ValueError:
        raise ValueError(f"{repository}: no backup {name!r}, which is no time either; {there}") from None
    first = next((one for one in names if milliseconds(one) >= time), None)
    if first is None:
        raise ValueError(f"{repository}: no backup was taken at or after {text_of(time)}; {there}")
    return BackupPath.of(repository, first, key.strip("/"), time, backup_key=backup_key)


def at_cut(segments: list[Segment]) -> list[Segment]:
    """Return segments of backups as those of a log that was cut: transactions that are open at its end are aborted.

    Segments of other paths stay as they are.
    """
    last: dict[LogPath, int] = {}
    for number, one in enumerate(segments):
        is_cut = isinstance(one.folder, BackupPath) and one.folder.until is None and one.topic != CLUSTER_METADATA
        if is_cut and not one.state:
            last[one.folder] = number
    ended = set(last.values())
    return [_ended(one) if number in ended else one for number, one in enumerate(segments)]


def _ended(segment: Segment) -> Segment:
    # its .txnindex may have entries of what lies after the cut
    beside = tuple(kind for kind in segment.kinds_beside if kind != "txnindex")
    settled = min(segment.settled_offset, segment.base_offset or 0)
    return replace(segment, kinds_beside=beside, end_offset=None, settled_offset=settled, is_cut=True)
