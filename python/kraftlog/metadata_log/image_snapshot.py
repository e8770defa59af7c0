"""Writes metadata images as snapshots that a Kafka controller starts from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from kraftlog.codec.metadata_version import NEWEST_LEVEL, metadata_version_name
from kraftlog.errors import InvalidTransactionStateError
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.writer import encode_messages
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.snapshot_writer import snapshot_path, write_snapshot
from kraftlog.transactions.metadata_encoder import DEFAULT_BATCH_BYTES

Records = Iterable[tuple[str, int, pa.RecordBatch | pa.Table]]


def write_image(folder: Path, at: ImageAt, records: Records | None = None) -> Path:
    """Write an image as ``<end_offset>-<epoch>.checkpoint``.

    Parameters
    ----------
    folder : Path
        Created if missing.
    at : ImageAt
    records : iterable of tuple, optional
        Name of a type, version to write, and records; by default the image's at its own metadata.version.

    Returns
    -------
    Path
        The snapshot.

    Raises
    ------
    FileExistsError
        When there is such a snapshot.
    InvalidRecordError
        When a version cannot represent a value.
    ValueError
        When there is no record before the snapshot.
    InvalidTransactionStateError
        When a transaction is open at the offset, or it is inside a batch: a reader that continues there would lose
        records.
    """
    if at.offset < 0 or at.epoch < 0:
        raise ValueError("no snapshot can be made of a log before its first record")
    if at.open_since is not None:
        raise InvalidTransactionStateError(
            f"no snapshot can be made at offset {at.offset}: a transaction is open since offset {at.open_since}"
        )
    if not at.is_offset_batch_aligned:
        raise InvalidTransactionStateError(f"no snapshot can be made at offset {at.offset}: it is inside a batch")
    level = at.image.metadata_version or NEWEST_LEVEL
    if records is None and level > NEWEST_LEVEL:
        newest = metadata_version_name(NEWEST_LEVEL)
        raise ValueError(
            f"no snapshot can be made at metadata.version {level}: the newest that is known is {newest} "
            f"({NEWEST_LEVEL}), and how records are written above it is not"
        )
    values = [_values(*record) for record in (at.image.snapshot_records(level) if records is None else records)]
    folder.mkdir(parents=True, exist_ok=True)
    path = snapshot_path(folder, at.offset + 1, at.epoch)
    write_snapshot(
        path,
        values,
        epoch=at.epoch,
        last_contained_log_timestamp=at.timestamp,
        timestamp_ms=at.timestamp,
        max_batch_bytes=DEFAULT_BATCH_BYTES,
        quorum=at.quorum,
    )
    return path


def _values(name: str, version: int, rows: pa.RecordBatch | pa.Table) -> pa.BinaryArray:
    definition = BUILT_IN.messages[name]
    assert definition.api_key is not None
    return encode_messages(definition, version, rows, prefix=frame(definition.api_key, version))
