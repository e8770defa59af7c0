"""Replays a metadata log to an image: from a snapshot or the start, transactions applied as KIP-868 has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import Segment
from kraftlog.messages.arrow_types import UUID_BINARY
from kraftlog.messages.reader import Typed
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.files import MetadataLog, snapshot_of
from kraftlog.metadata_log.gaps import find_gaps, unfinished
from kraftlog.metadata_log.quorum_records import QuorumRecords, quorum_records
from kraftlog.read.messages import typed_chunks
from kraftlog.read.metadata_boundaries import scan_boundaries
from kraftlog.read.records import Progress, located
from kraftlog.transactions.producer import OPEN

INCOMPLETE = "incomplete_image"
HEADER = "SnapshotHeaderRecord"


@dataclass(frozen=True)
class ImageAt:
    """An image, and the last record that it stands for.

    Attributes
    ----------
    image : Image
    offset : int
        Of that record; -1 when there is none.
    epoch : int
        The leader epoch of its batch.
    timestamp : int
        When its batch was appended, in milliseconds; -1 where that is not known.
    is_offset_batch_aligned : bool
        Whether it is the last one of its batch.
    open_since : int or None
        The offset of the Begin of the transaction that is open there; nothing of it is in the image.
    quorum : tuple of tuple
        The control records that say who the voters of a dynamic quorum are, type and value; images that ``image_steps``
        returns come without them.
    """

    image: Image
    offset: int
    epoch: int
    timestamp: int
    is_offset_batch_aligned: bool = True
    open_since: int | None = None
    quorum: QuorumRecords = ()


def image_at(
    log: MetadataLog | Sequence[Segment],
    offset: int | None,
    faults: list[Fault],
    *,
    use_snapshots: bool = True,
    on_progress: Progress | None = None,
) -> ImageAt:
    """Return the image at an offset.

    Parameters
    ----------
    log : MetadataLog or sequence of Segment
        A metadata log, or one snapshot.
    offset : int or None
        The last one whose record counts; None for the end of the log. Of a transaction whose End lies behind it nothing
        is in the image.
    faults : list of Fault
        Receives what could not be read or applied.
    use_snapshots : bool
        Start from the latest snapshot that is not behind the offset, else from the first record of the log.
    on_progress : callable, optional

    Returns
    -------
    ImageAt
    """
    log = log if isinstance(log, MetadataLog) else MetadataLog(log)
    if log.is_snapshot:
        return _of_snapshot(log, faults, on_progress)
    end = NO_BOUND if offset is None else offset + 1
    until = min(end, log.end_offset)  # a snapshot of later records is no image of this log
    start, image = _start(log, until, faults, use_snapshots=use_snapshots)
    gaps = find_gaps(log, start, end)
    faults += gaps.faults
    for records in _visible(log, start, end, faults, on_progress):
        image.apply(records.tables((records.visible_at < end) & ~gaps.hides(records.offsets)))
    at = _at(log, image, end, faults)
    return replace(at, open_since=_open_since(log, at.offset), quorum=quorum_records(log, until))


def image_steps(log: MetadataLog, before: ImageAt, offset: int | None, faults: list[Fault]) -> Iterator[ImageAt]:
    """Return the images that Kafka publishes one after the other: after each batch, and transactions whole.

    Parameters
    ----------
    log : MetadataLog
        Not a snapshot.
    before : ImageAt
        The image from which to go on.
    offset : int or None
        The last one whose record counts; None for the end of the log.
    faults : list of Fault
    """
    image = before.image.copy()
    end = NO_BOUND if offset is None else offset + 1
    start = before.offset + 1 if before.open_since is None else before.open_since
    gaps = find_gaps(log, start, end)
    faults += gaps.faults
    for records in _visible(log, start, end, faults):
        batches = np.searchsorted(log.headers["base_offset"], records.visible_at, "right") - 1
        published = log.last_offsets[batches]
        is_shown = (records.visible_at < end) & ~gaps.hides(records.offsets)
        for step in np.unique(published[is_shown]).tolist():
            image.apply(records.tables((published == step) & is_shown))
            yield _at(log, image.copy(), min(step + 1, end), faults)


def _open_since(log: MetadataLog, offset: int) -> int | None:
    """Return where the transaction began that is open behind an offset; None when there is none."""
    for scanned in scan_boundaries(log.segments, []):
        begins, ends = scanned.transactions["begin_offset"], scanned.transactions["end_offset"]
        is_open = (begins <= offset) & ((ends > offset) | (scanned.transactions["state"] == OPEN))
        if is_open.any():
            return int(begins[is_open][0])
    return None


def _start(log: MetadataLog, end: int, faults: list[Fault], *, use_snapshots: bool) -> tuple[int, Image]:
    """Return the offset from which to replay, and the image before it."""
    for snapshot in log.snapshots if use_snapshots or log.start_offset > 0 else []:
        if snapshot.end_offset > end:
            continue
        if snapshot.end_offset < log.start_offset:
            break
        found: list[Fault] = []
        image = _of_snapshot(MetadataLog([snapshot.segment]), found, None).image
        if not found:
            return snapshot.end_offset, image
        faults += found
    if log.start_offset > 0:
        message = f"the log starts at offset {log.start_offset}, and no snapshot can be read that tells what was before"
        faults.append(located(log.segments[0], Fault(INCOMPLETE, message)))
    return log.start_offset, Image.empty()


def _of_snapshot(log: MetadataLog, faults: list[Fault], on_progress: Progress | None) -> ImageAt:
    image = Image.empty()
    for records in _visible(log, -NO_BOUND, NO_BOUND, faults, on_progress):
        image.apply(records.tables(np.ones(len(records.offsets), bool)))
    faults += [*unfinished(log), *(located(log.segments[0], fault) for fault in image.faults)]
    image.faults.clear()
    snapshot = snapshot_of(log.segments[0])
    image.offset = snapshot.end_offset - 1
    quorum = quorum_records(log, NO_BOUND)
    return ImageAt(image, image.offset, snapshot.epoch, _last_contained_timestamp(log), quorum=quorum)


def _last_contained_timestamp(log: MetadataLog) -> int:
    """Return what the snapshot's header says of when the last record that it stands for was appended."""
    options = ReadOptions(include_control=True, end_offset=1)
    for chunk in typed_chunks(log.segments, [], options, [], uuid=UUID_BINARY):
        if HEADER in chunk.messages.types_there:
            stamps = chunk.messages.typed(HEADER).fields.column("last_contained_log_timestamp")
            return int(stamps[0].as_py()) if len(stamps) else -1
    return -1


@dataclass(frozen=True)
class _Visible:
    """The visible records of a chunk.

    Attributes
    ----------
    typed : dict of str to Typed
        By type.
    offsets, visible_at : numpy.ndarray of int64
        Of each record of the chunk: its own, and the one at which it became visible.
    """

    typed: dict[str, Typed]
    offsets: npt.NDArray[np.int64]
    visible_at: npt.NDArray[np.int64]

    def tables(self, wanted: npt.NDArray[np.bool_]) -> dict[str, pa.RecordBatch]:
        """Return those of the chunk's records that are wanted, as ``Image.apply`` takes them."""
        every = bool(wanted.all())
        found = {}
        for name, typed in self.typed.items():
            batch = typed.fields.add_column(0, "offset", pa.array(self.offsets[typed.rows]))
            found[name] = batch if every else batch.filter(pa.array(wanted[typed.rows]))
        return found


def _visible(
    log: MetadataLog, start: int, end: int, faults: list[Fault], on_progress: Progress | None = None
) -> Iterator[_Visible]:
    """Return the records in [start, end) that are visible to readers of a committed log."""
    options = ReadOptions(isolation_level=READ_COMMITTED, start_offset=start, end_offset=end)
    for chunk in typed_chunks(log.segments, ["visible_at"], options, faults, on_progress=on_progress, uuid=UUID_BINARY):
        typed = {name: chunk.messages.typed(name) for name in chunk.messages.types_there}
        chunk.take_faults(faults)
        offsets, visible_at = (
            chunk.records.column(name).to_numpy(zero_copy_only=False) for name in ("offset", "visible_at")
        )
        yield _Visible(typed, offsets, visible_at)


def _at(log: MetadataLog, image: Image, end: int, faults: list[Fault]) -> ImageAt:
    """Say of which record an image is the last; its faults are the log's."""
    faults += [located(log.segment_of(fault.base_offset or 0), fault) for fault in image.faults]
    image.faults.clear()
    at = log.batch_before(end - 1)
    if at < 0:
        return ImageAt(image, image.offset, -1, -1)
    header = log.headers[at]
    image.offset = min(int(log.last_offsets[at]), end - 1)
    is_aligned = image.offset == int(log.last_offsets[at])
    epoch, timestamp = int(header["partition_leader_epoch"]), int(header["max_timestamp"])
    return ImageAt(image, image.offset, epoch, timestamp, is_aligned)
