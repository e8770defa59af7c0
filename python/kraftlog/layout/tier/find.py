"""From the objects of a remote tier to its segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from kraftlog.codec.header_scan import HeaderScan, indexed_batch
from kraftlog.codec.headers import last_offsets
from kraftlog.disk.disk import disk
from kraftlog.disk.entries import Entry
from kraftlog.disk.in_order import SEGMENTS_AT_ONCE, in_order
from kraftlog.disk.part_path import Chunks, PartPath
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.listing import IsWanted
from kraftlog.layout.tier.data_key import KeyRing
from kraftlog.layout.tier.manifest import GROWTH_BYTES, Manifest, ManifestError, WrongKeyError, read_manifest
from kraftlog.layout.tier.object_names import AIVEN_KINDS, LOCAL_KINDS, StoredPartition, parse_file, parse_folder
from kraftlog.layout.tier.stored_segment import StoredSegment, epochs_within
from kraftlog.layout.unread import TIER_ORPHAN, Unread
from kraftlog.topics import TopicPartition

UNREADABLE_TIER = "unreadable_tier"
MOST_KNOWN = 20_000

_INDEXES = ("index", "timeindex", "txnindex", "snapshot")
_KNOWN: dict[object, StoredSegment] = {}  # objects never change: a follower reads each manifest once


@dataclass(frozen=True)
class _Objects:
    """The objects of one segment, by kind, from a listing."""

    of: StoredPartition
    folder: LogPath
    base_offset: int
    segment_id: str
    sizes: dict[str, int]

    def path(self, kind: str) -> LogPath:
        return self.folder / f"{self.base_offset:020d}-{self.segment_id}.{kind}"

    def unread(self, kind: str, reason: str, error: str = UNREADABLE_TIER) -> Unread:
        size = self.sizes.get(kind if error == TIER_ORPHAN else "log", 0)
        return Unread(self.path(kind), size, reason, self.of.topic, self.of.partition, self.base_offset, error)


_Found = tuple[StoredSegment | None, list[Unread]]


class Stored(NamedTuple):
    """The content of a remote tier: segments, other or unreadable objects, and skipped partitions."""

    segments: list[StoredSegment]
    unread: list[Unread]
    not_wanted: list[TopicPartition]


def stored_segments(location: LogPath, keys: KeyRing, is_wanted: IsWanted | None) -> Stored:
    """Return the content of a remote tier.

    Parameters
    ----------
    location : Path or RemotePath
        The tier, which is listed with all folders below it.
    keys : KeyRing
    is_wanted : callable or None
        Whether to read a partition, by topic and number; None for all.

    Raises
    ------
    FileNotFoundError
        When there is no such folder.
    OSError
        When it cannot be listed.
    ValueError
        When it has no segments in a known layout.
    """
    stored = Stored([], [], [])
    all_objects = list(_objects(location))
    if not all_objects:
        raise ValueError(
            f"{location}: no remote tier: expected segments in the layout of Aiven's plugin or of LocalTieredStorage,"
            " found none"
        )
    chosen = [objects for objects in all_objects if _is_wanted(objects.of, is_wanted)]
    all_partitions, wanted_ones = ({objects.of.topic_partition for objects in some} for some in (all_objects, chosen))
    stored.not_wanted.extend(sorted(all_partitions - wanted_ones))
    for segment, odd in in_order(lambda objects: _read(objects, keys), chosen, SEGMENTS_AT_ONCE):
        stored.unread.extend(odd)
        if segment is not None:
            stored.segments.append(segment)
    return stored


def _objects(location: LogPath) -> Iterator[_Objects]:
    """Return the objects of each segment."""
    tree: Mapping[Any, list[Entry]]
    tree = disk().tree(location) if isinstance(location, RemotePath) else _local_tree(location)
    for folder, entries in sorted(tree.items(), key=lambda item: str(item[0])):
        of = parse_folder(folder)
        if of is None:
            continue
        kinds = AIVEN_KINDS if of.is_aiven else LOCAL_KINDS
        sizes_of: dict[tuple[int, str], dict[str, int]] = {}
        for entry in entries:
            name = parse_file(entry.name) if entry.is_file else None
            if name is not None and name.kind in kinds and (size := entry.size) is not None:
                sizes_of.setdefault((name.base_offset, name.segment_id), {})[name.kind] = size
        for (base_offset, segment_id), sizes in sizes_of.items():
            yield _Objects(of, folder, base_offset, segment_id, sizes)


def _is_wanted(of: StoredPartition, is_wanted: IsWanted | None) -> bool:
    """Whether a partition is selected; in Aiven's layout a prefix without a slash may precede the topic."""
    starts = range(len(of.topic)) if of.is_aiven else (0,)
    return is_wanted is None or any(is_wanted(of.topic[start:], of.partition) for start in starts)


def _local_tree(folder: Path) -> dict[LogPath, list[Entry]]:
    """Return the entries of a folder and of all folders below it."""
    tree: dict[LogPath, list[Entry]] = {folder: disk().entries(folder)}
    for entry in tree[folder]:
        if entry.is_dir:
            tree |= _local_tree(folder / entry.name)
    return tree


def _read(objects: _Objects, keys: KeyRing) -> _Found:
    identity = objects.folder, objects.base_offset, objects.segment_id, tuple(sorted(objects.sizes.items())), keys.files
    if identity in _KNOWN:
        return _KNOWN[identity], []
    segment, odd = _read_now(objects, keys)
    if segment is not None and not odd:
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[identity] = segment
    return segment, odd


def _read_now(objects: _Objects, keys: KeyRing) -> _Found:
    try:
        return _read_aiven(objects, keys) if objects.of.is_aiven else _read_local(objects)
    except OSError as error:
        kind = "rsm-manifest" if objects.of.is_aiven else "log"
        return None, [objects.unread(kind, str(error.strerror or error), "unreadable_file")]


def _read_aiven(objects: _Objects, keys: KeyRing) -> _Found:
    if "rsm-manifest" not in objects.sizes:
        why = "no manifest: its copy was not finished, or it is being deleted"
        return None, [objects.unread(kind, why, TIER_ORPHAN) for kind in objects.sizes]
    try:
        manifest = read_manifest(disk().read_bytes(objects.path("rsm-manifest")), keys)
        files = _index_parts(objects, manifest)
    except (ManifestError, WrongKeyError) as error:
        return None, [objects.unread("rsm-manifest", str(error))]
    odd = [objects.unread(kind, why) for kind, why in _odd_sizes(objects, manifest)]
    if "log" not in objects.sizes:
        return None, odd
    log = objects.path("log")
    size = manifest.chunks.file_size
    files["log"] = log if manifest.is_plain else PartPath.of(log, end=size, chunks=manifest.chunks)
    leader_epochs = files.pop("leader_epochs", None)
    topic = objects.of.topic
    if manifest.topic is not None and topic.endswith(manifest.topic):  # after a prefix without a slash
        topic = manifest.topic
    end_offset, epochs = manifest.end_offset, manifest.epochs
    segment = StoredSegment(
        topic,
        objects.of.partition,
        objects.of.topic_id,
        objects.segment_id,
        objects.base_offset,
        objects.base_offset - 1 if end_offset is None else end_offset,
        epochs,
        manifest.event_timestamp_ms,
        size,
        objects.folder,
        log.name,
        files,
        leader_epochs,
    )
    if end_offset is None or not epochs:
        return _looked_into(objects, segment, odd)
    if end_offset < objects.base_offset:
        why = f"remoteLogSegmentMetadata.endOffset: expected {objects.base_offset} or more, found {end_offset}"
        return None, [*odd, objects.unread("rsm-manifest", why)]
    return segment, odd


def _index_parts(objects: _Objects, manifest: Manifest) -> dict[str, LogPath]:
    """Return the paths of the index files: parts of the object with suffix ``.indexes``."""
    if "indexes" not in objects.sizes:
        return {}
    path, chunks = objects.path("indexes"), manifest.chunks
    parts: dict[str, LogPath] = {}
    for kind, (position, size) in manifest.index_ranges.items():
        if kind == "snapshot" and not size:
            continue
        if chunks.data_key is None or not size:
            parts[kind] = PartPath.of(path, position, end=size)
        elif size < GROWTH_BYTES:
            raise ManifestError(f"segmentIndexes: expected {GROWTH_BYTES} bytes of {kind} or more, found {size}")
        else:
            plain = size - GROWTH_BYTES
            whole = Chunks(max(plain, 1), plain, (size,), data_key=chunks.data_key, aad=chunks.aad)
            parts[kind] = PartPath.of(path, position, end=plain, chunks=whole)
    return parts


def _odd_sizes(objects: _Objects, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Return the objects whose size differs from the manifest, and their size."""
    end_of_indexes = max((position + size for position, size in manifest.index_ranges.values()), default=0)
    for kind, expected in (("log", manifest.stored_bytes), ("indexes", end_of_indexes)):
        size = objects.sizes.get(kind)
        if size is None and (expected or kind == "log"):
            yield kind, f"expected {expected} bytes by the manifest, found no such object"
        elif size is not None and size != expected:
            yield kind, f"expected {expected} bytes by the manifest, found {size}"


def _read_local(objects: _Objects) -> _Found:
    if "log" not in objects.sizes:
        return None, [
            objects.unread(kind, "expected a log file next to it, found none", TIER_ORPHAN) for kind in objects.sizes
        ]
    files = {kind: objects.path(kind) for kind in ("log", *_INDEXES) if kind in objects.sizes}
    has_epochs = "leader_epoch_checkpoint" in objects.sizes
    segment = StoredSegment(
        *objects.of[:3],
        objects.segment_id,
        objects.base_offset,
        objects.base_offset - 1,
        (),
        -1,
        objects.sizes["log"],
        objects.folder,
        objects.path("log").name,
        files,
        objects.path("leader_epoch_checkpoint") if has_epochs else None,
    )
    return _looked_into(objects, segment, [])


def _looked_into(objects: _Objects, segment: StoredSegment, odd: list[Unread]) -> _Found:
    """Return a segment that is stored without metadata, which follow from its headers and leader epochs."""
    if segment.leader_epochs is None:
        return None, [
            *odd,
            objects.unread("leader_epoch_checkpoint", "expected leader epochs of the segment, found none"),
        ]
    try:
        history = segment.history()
    except CorruptRecordError as error:
        return None, [*odd, objects.unread("leader_epoch_checkpoint", str(error))]
    end_offset = max(segment.end_offset, _last_offset(segment))
    epochs = epochs_within(history, segment.base_offset, end_offset)
    if not epochs:
        why = f"expected a leader epoch of offset {segment.base_offset}, found none"
        return None, [*odd, objects.unread("leader_epoch_checkpoint", why)]
    return replace(segment, end_offset=end_offset, epochs=epochs), odd


def _last_offset(segment: StoredSegment) -> int:
    """Return the last offset of a segment, from the headers after the last entry of its index."""
    entries = segment.index_entries()
    last, start = segment.base_offset - 1, 0
    file = disk().open(segment.path, segment.size)
    try:
        if entries is not None and len(entries["offset"]):
            is_there = (
                indexed_batch(file, entries["offset"], entries["position"], len(entries["offset"]) - 1) is not None
            )
            start = int(entries["position"][-1]) if is_there else 0
        for headers in HeaderScan(file, start).headers():
            last = max(last, int(last_offsets(headers).max()))
    finally:
        file.close()
    return last
