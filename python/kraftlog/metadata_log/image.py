"""Replays a metadata log to an image: from a snapshot or the start, with transactions applied by KIP-868."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kraftlog.codec.options import NO_BOUND
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.batches import BatchAt, Batches
from kraftlog.metadata_log.faults import unfinished
from kraftlog.metadata_log.files import MetadataLog, last_contained_timestamp, snapshot_of
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_cache import ImageCache
from kraftlog.metadata_log.replay import Replay
from kraftlog.read.log_pass import Progress
from kraftlog.read.segment_reader import located

INCOMPLETE = "incomplete_image"


def image_at(
    log: MetadataLog | Sequence[Segment],
    offset: int | None,
    faults: list[Fault],
    *,
    use_snapshots: bool = True,
    cache: ImageCache | None = None,
    on_progress: Progress | None = None,
) -> ImageAt:
    """Return the image at an offset.

    Parameters
    ----------
    log : MetadataLog or sequence of Segment
        A metadata log, or one snapshot.
    offset : int or None
        Last offset to apply; None for the end of the log. A transaction whose End is after it is not in the image.
    faults : list of Fault
        Receives what could not be read or applied.
    use_snapshots : bool
        Start from the latest snapshot up to the offset, else from the first record of the log.
    cache : ImageCache, optional
        Images of earlier calls, which are used like snapshots of the log; receives this one.
    on_progress : callable, optional

    Returns
    -------
    ImageAt
    """
    log = log if isinstance(log, MetadataLog) else MetadataLog(log)
    if log.is_snapshot:
        return _of_snapshot(log, faults, on_progress)
    end, faults_count = NO_BOUND if offset is None else offset + 1, len(faults)
    before = _cached_start(log, end, cache)
    if before is None or not use_snapshots:
        before = _start(log, end, faults, use_snapshots=use_snapshots)
    start, image = max(before.offset + 1, log.start_offset), before.image
    replay = Replay(log, start, end, Batches(end, before.quorum), is_start_known=before.offset >= 0)
    _replay(replay, image, end, faults, on_progress)
    at = _at(log, image, replay.batches.last, end, faults)
    ahead = log.snapshot_ahead
    log_end = log.end_offset if ahead is not None and before.offset + 1 > log.end_offset else None
    if at is None or log_end is not None:
        image.offset = before.offset
        at = replace(before, image=image, log_end_offset=log_end)
    quorum = before.quorum if log_end is not None else replay.batches.quorum
    at = replace(at, open_since=replay.open_at(at.offset), quorum=quorum)
    if cache is not None and len(faults) == faults_count:
        cache.keep(log, at, at.offset + 1 - start)
    return at


def _cached_start(log: MetadataLog, end: int, cache: ImageCache | None) -> ImageAt | None:
    """Return the image to start from, if the cache has a later one than the log's snapshots."""
    if cache is None:
        return None
    own = max((one.end_offset for one in log.snapshots if one.end_offset <= end), default=log.start_offset)
    for snapshot in cache.snapshots(log):
        if own < snapshot.end_offset <= end:
            faults_of_start: list[Fault] = []
            at = _of_snapshot(MetadataLog([snapshot.segment]), faults_of_start, None)
            if not faults_of_start:
                return at
            cache.drop(snapshot)
    return None


def _start(log: MetadataLog, end: int, faults: list[Fault], *, use_snapshots: bool) -> ImageAt:
    """Return the image to start from."""
    empty = ImageAt(Image.empty(), -1, -1, -1)
    for snapshot in log.snapshots:
        if snapshot.end_offset > end or (snapshot.end_offset > log.end_offset and log.snapshot_ahead is None):
            continue  # the segments are not the last ones of the log: read them separately
        if snapshot.end_offset < log.start_offset:
            break
        if not use_snapshots and log.start_offset == 0 and snapshot.end_offset > 0:
            continue
        faults_of_start: list[Fault] = []
        at = _of_snapshot(MetadataLog([snapshot.segment]), faults_of_start, None)
        if not faults_of_start:
            return at if at.offset >= 0 else replace(at, epoch=-1, timestamp=-1)
        faults += faults_of_start
    if log.start_offset > 0:
        message = f"the log starts at offset {log.start_offset}, and no snapshot can be read that tells what was before"
        faults.append(located(log.segments[0], Fault(INCOMPLETE, message)))
    return empty


def _of_snapshot(log: MetadataLog, faults: list[Fault], on_progress: Progress | None) -> ImageAt:
    image = Image.empty()
    replay = Replay(log, -NO_BOUND, NO_BOUND, Batches())
    _replay(replay, image, NO_BOUND, faults, on_progress)
    segment = log.segments[0]
    faults += [*unfinished(segment, replay.batches), *(located(segment, fault) for fault in image.faults)]
    image.faults.clear()
    snapshot = snapshot_of(segment)
    image.offset = snapshot.end_offset - 1
    quorum = replay.batches.quorum
    return ImageAt(image, image.offset, snapshot.epoch, last_contained_timestamp(segment), quorum=quorum)


def _replay(replay: Replay, image: Image, end: int, faults: list[Fault], on_progress: Progress | None) -> None:
    """Apply the records that are visible before an offset; read the next ones of a large log concurrently."""
    for records in replay.visible(faults, on_progress, ahead=True):
        image.apply(records.tables(records.before(end)))


def take_faults(log: MetadataLog, image: Image, faults: list[Fault]) -> None:
    """Note records that an image rejected as faults of the log."""
    faults += [located(log.segment_of(fault.base_offset or 0), fault) for fault in image.faults]
    image.faults.clear()


def _at(log: MetadataLog, image: Image, batch: BatchAt | None, end: int, faults: list[Fault]) -> ImageAt | None:
    """Set the last record of an image and its batch; add the faults of the log."""
    take_faults(log, image, faults)
    if batch is None:
        return None
    image.offset = min(batch.last_offset, end - 1)
    return ImageAt(image, image.offset, batch.epoch, batch.timestamp, image.offset == batch.last_offset)
