"""The check of backups in two levels, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.backup.backup_folder import BackupFolder, checksums
from kraftlog.backup.file_list import ROWS_AT_ONCE, log_files
from kraftlog.backup.stored_segment import windows
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.backup_files import FILES, OBJECT
from kraftlog.disk.in_order import in_order
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.topics import TopicPartition

MISSING_OBJECT = "missing_object"
WRONG_SIZE = "wrong_size"
WRONG_CHECKSUM = "wrong_checksum"
BAD_MANIFEST = "bad_manifest"
_OF_OBJECT = ("name", "size", "sha256", "crc32c", "base_offset")
_NO_OBJECTS = pa.schema(
    [*(OBJECT.field(name) for name in _OF_OBJECT), FILES.field("topic"), FILES.field("partition")]
).empty_table()


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
    objects = _objects(repository, repository.names() if names is None else names, faults)
    sizes = _sizes(repository, objects.column("name"))
    is_sound = np.zeros(objects.num_rows, bool)
    for at, one in enumerate(_rows(objects)):
        size, stored_size = int(sizes[at]), repository.stored_size(one)
        if size < 0:
            faults.append(_fault(one, MISSING_OBJECT, f"expected an object of {one['size']} bytes, found none"))
        elif size != stored_size:
            faults.append(_fault(one, WRONG_SIZE, f"expected {stored_size} bytes, found {size}"))
        else:
            is_sound[at] = True
    if data:
        sound = _rows(objects.filter(pa.array(is_sound)))
        for found in in_order(lambda one: _object_faults(repository, one), sound, workers):
            faults += found
            if on_progress is not None:
                on_progress(1)
    return faults


def _objects(repository: BackupFolder, names: Iterable[str], faults: list[Fault]) -> pa.Table:
    """Return the objects of backups by name, each once; a list that cannot be read is a fault."""
    tables = [_NO_OBJECTS]
    for name in names:
        try:
            files = repository.files(name, ["topic", "partition", "objects"])
        except (OSError, CorruptRecordError) as error:
            faults.append(Fault(BAD_MANIFEST, f"{name}: {error}"))
            continue
        objects = files.column("objects").combine_chunks()
        columns = pa.Table.from_struct_array(pc.list_flatten(objects)).select(_OF_OBJECT).columns
        columns += files.select(["topic", "partition"]).take(pc.list_parent_indices(objects)).columns
        table = pa.Table.from_arrays(columns, schema=_NO_OBJECTS.schema)
        known = pa.chunked_array([chunk for one in tables for chunk in one.column("name").chunks], pa.string())
        tables.append(table.filter(pc.invert(pc.is_in(table.column("name"), known.combine_chunks()))))
        del files, objects, columns, table, known
        pa.default_memory_pool().release_unused()  # the pool keeps what a list took, of which little stays
    found = pa.concat_tables(tables).sort_by("name")
    each = found.column("name").combine_chunks()
    is_first = np.ones(len(each), bool)
    is_first[1:] = pc.not_equal(each[1:], each[:-1]).to_numpy(zero_copy_only=False)  # of files with the same content
    return found if is_first.all() else found.filter(pa.array(is_first))


def _sizes(repository: BackupFolder, names: pa.ChunkedArray) -> np.ndarray:
    """Return the sizes of objects in a listing; -1 for those that are not there."""
    listing, there, sizes = repository.listing(), list[pa.Array](), [np.empty(0, np.int64)]
    while some := list(islice(listing, ROWS_AT_ONCE)):
        there.append(pa.array([name for name, _ in some], pa.string()))
        sizes.append(np.array([-1 if entry.size is None else entry.size for _, entry in some], np.int64))
    places = pc.index_in(names, pa.chunked_array(there, pa.string()).combine_chunks()).fill_null(-1).to_numpy()
    return np.asarray(np.append(np.concatenate(sizes), -1)[places])


def _rows(objects: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in objects.to_batches(max_chunksize=ROWS_AT_ONCE):
        yield from batch.to_pylist()


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
        for row in log_files(repository.files(name, ["topic", "partition", "topic_id", "size", "objects"])):
            of = TopicPartition(row["topic"], row["partition"])
            sizes[of] = row["topic_id"], sizes.get(of, (None, 0))[1] + row["size"]
        each.append((ends, sizes))
    (ends_a, sizes_a), (ends_b, sizes_b) = each
    found = []
    for of in sorted({*sizes_a, *sizes_b}):
        (id_a, size_a), (id_b, size_b) = sizes_a.get(of, (None, 0)), sizes_b.get(of, (None, 0))
        one = Difference(*of, (id_a, id_b), (ends_a.get(of), ends_b.get(of)), (size_a, size_b))
        if id_a != id_b or one.ends[0] != one.ends[1] or size_a != size_b:
            found.append(one)
    return found
