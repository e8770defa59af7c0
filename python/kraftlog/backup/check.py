"""The check of backups in two levels, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kraftlog.backup.backup_folder import BackupFolder, checksums
from kraftlog.backup.stored_segment import windows
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.in_order import in_order
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.topics import TopicPartition

MISSING_OBJECT = "missing_object"
WRONG_SIZE = "wrong_size"
WRONG_CHECKSUM = "wrong_checksum"
BAD_MANIFEST = "bad_manifest"


def verify_backups(
    repository: BackupFolder,
    names: Iterable[str] | None = None,
    *,
    data: bool = False,
    workers: int = 2,
    on_progress: Callable[[int], None] | None = None,
) -> list[Fault]:
    """Compare backups with the objects in the repository.

    Parameters
    ----------
    repository : BackupFolder
    names : iterable of str, optional
        Names of backups; by default all.
    data : bool
        Read every object: its checksums and those of its batches. Otherwise only sizes in a listing are compared.
    workers : int
        Threads that read objects.
    on_progress : callable, optional
        Called with numbers of bytes that were read.

    Returns
    -------
    list of Fault
    """
    faults: list[Fault] = []
    objects: dict[str, dict[str, Any]] = {}
    for name in repository.names() if names is None else names:
        try:
            rows = repository.files(name).select(["topic", "partition", "objects"]).to_pylist()
        except (OSError, CorruptRecordError) as error:
            faults.append(Fault(BAD_MANIFEST, f"{name}: {error}"))
            continue
        for row in rows:
            for one in row["objects"] or ():
                objects[one["name"]] = {**one, "topic": row["topic"], "partition": row["partition"]}
    listing = repository.listing()
    sound = []
    for name, one in sorted(objects.items()):
        entry = listing.get(name)
        if entry is None:
            faults.append(_fault(one, MISSING_OBJECT, f"expected an object of {one['size']} bytes, found none"))
        elif entry.size != (stored_size := repository.stored_size(one)):
            faults.append(_fault(one, WRONG_SIZE, f"expected {stored_size} bytes, found {entry.size}"))
        else:
            sound.append(one)
    if data:
        for found in in_order(lambda one: _object_faults(repository, one), sound, workers):
            faults += found
            if on_progress is not None:
                on_progress(1)
    return faults


def _fault(one: dict[str, Any], error: str, message: str) -> Fault:
    return Fault(
        error,
        f"{one['name']}: {message}",
        size_in_bytes=one["size"],
        topic=one["topic"],
        partition=one["partition"],
        base_offset=one["base_offset"],
    )


def _object_faults(repository: BackupFolder, one: dict[str, Any]) -> list[Fault]:
    try:
        with repository.open_object(one) as file:
            size, sha256, crc = checksums(windows(file, 0, file.size))
            if (size, sha256, crc) != (one["size"], one["sha256"], one["crc32c"]):
                where = _damage(file)
                return [_fault(one, WRONG_CHECKSUM, f"expected sha256 {one['sha256']}, found {sha256}{where}")]
    except OSError as error:
        return [_fault(one, "unreadable_file", error.strerror or str(error))]
    return []


def _damage(file: Any) -> str:
    """Return which batches of an object are damaged."""
    scan = HeaderScan(file, check_crc=True)
    for _ in scan.headers():
        pass
    return f"; {scan.faults[0].message}" if scan.faults else ""


class Difference(NamedTuple):
    """What differs between two backups in one partition; None where one of them does not have it.

    Attributes
    ----------
    topic, partition : str, int
    topic_ids : tuple of (str or None, str or None)
    ends : tuple of (int or None, int or None)
        Ends at the cuts.
    sizes : tuple of (int, int)
        Bytes of the log files.
    """

    topic: str
    partition: int
    topic_ids: tuple[str | None, str | None]
    ends: tuple[int | None, int | None]
    sizes: tuple[int, int]


def differences(repository: BackupFolder, before: str, after: str) -> list[Difference]:
    """Return the partitions that differ between two backups, by topic and number."""
    each = []
    for name in (before, after):
        ends = repository.manifest(name).ends
        sizes: dict[TopicPartition, tuple[str | None, int]] = {}
        for row in repository.files(name).select(["topic", "partition", "topic_id", "size", "objects"]).to_pylist():
            if row["topic"] is not None:
                of = TopicPartition(row["topic"], row["partition"])
                size = row["size"] if row["objects"] is not None else 0
                sizes[of] = row["topic_id"], sizes.get(of, (None, 0))[1] + size
        each.append((ends, sizes))
    (ends_a, sizes_a), (ends_b, sizes_b) = each
    found = []
    for of in sorted({*sizes_a, *sizes_b}):
        (id_a, size_a), (id_b, size_b) = sizes_a.get(of, (None, 0)), sizes_b.get(of, (None, 0))
        one = Difference(*of, (id_a, id_b), (ends_a.get(of), ends_b.get(of)), (size_a, size_b))
        if id_a != id_b or one.ends[0] != one.ends[1] or size_a != size_b:
            found.append(one)
    return found
