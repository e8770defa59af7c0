"""Which bytes of the files of a backup lie before the ends of their partitions at the cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.backup.backup_folder import BackupFolder
from kraftlog.backup.file_list import BESIDE, Row
from kraftlog.backup.stored_segment import Object
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.layout.names import parse_segment_file

_OFFSET_BESIDE = rf"/(?P<offset>[0-9]{{20}})\.(?:{'|'.join(BESIDE)})$"


def with_sizes_at_cut(
    files: pa.Table, places: Sequence[tuple[int, int]], end_offsets: Sequence[int], repository: BackupFolder
) -> pa.Table:
    """Return a list of files with their sizes at a cut.

    Parameters
    ----------
    files : pyarrow.Table
        Rows that are new have their whole size, others that at the cut of an older backup.
    places : sequence of (int, int)
        Where the files of each partition are in the list.
    end_offsets : sequence of int
        The end of each partition at the cut.
    repository : BackupFolder
        Has the objects; those that the cut divides are read.
    """
    sizes = files.column("size").to_numpy()
    at_cut = files.column("size_at_cut").fill_null(-1).to_numpy().copy()
    is_log = files.column("base_offset").is_valid().to_numpy() & files.column("objects").is_valid().to_numpy()
    besides = pc.struct_field(pc.extract_regex(files.column("path"), _OFFSET_BESIDE), "offset").cast(pa.int64())
    last_offsets = np.where(
        is_log, files.column("next_offset").fill_null(-1).to_numpy(), besides.fill_null(-1).to_numpy()
    )
    for (start, end), end_offset in zip(places, end_offsets, strict=True):
        some = slice(start, end)
        if (last_offsets[some] > end_offset).any() or (at_cut[some] != sizes[some]).any():
            at_cut[some] = _sizes_at_cut(files.slice(start, end - start).to_pylist(), end_offset, repository)
    column = pa.array(at_cut, files.schema.field("size_at_cut").type, mask=at_cut < 0)
    return files.set_column(files.schema.get_field_index("size_at_cut"), files.schema.field("size_at_cut"), column)


def _sizes_at_cut(rows: list[Row], end_offset: int, repository: BackupFolder) -> list[int]:
    """Return the sizes of a partition's files; -1 for those that are not of the log at the cut."""
    sizes = []
    is_first = True
    for row in rows:
        size = row["size"]
        parsed = parse_segment_file(row["path"].rpartition("/")[2])
        if row["objects"] is not None and row["base_offset"] is not None:
            if row["next_offset"] > end_offset:
                is_after = not is_first and row["base_offset"] >= end_offset
                size = -1 if is_after else _size_until(row["objects"], end_offset, repository)
            is_first = False
        elif parsed is not None and parsed.kind in BESIDE and parsed.base_offset > end_offset:
            size = -1
        sizes.append(size)
    return sizes


def _size_until(objects: list[Object], end_offset: int, repository: BackupFolder) -> int:
    """Return the bytes of objects before the first batch at or after an offset."""
    size = 0
    for one in objects:
        if one["next_offset"] > end_offset:
            with repository.open_object(one) as file:
                for headers in HeaderScan(file).headers():
                    after = np.flatnonzero(headers["base_offset"] >= end_offset)
                    if len(after):
                        return size + int(headers["position"][after[0]])
        size += one["size"]
    return size
