"""The changes of a metadata log, step by step, at a cost in proportion to the changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kraftlog.codec.options import NO_BOUND
from kraftlog.errors import Fault
from kraftlog.metadata.changed import ChangedByType
from kraftlog.metadata.diff.images import changed_records
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.batches import Batches
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at, take_faults
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.replay import Replay
from kraftlog.read.log_pass import Progress

Ints = npt.NDArray[np.int64]
_STEP = np.dtype([("offset", "i8"), ("epoch", "i8"), ("timestamp", "i8")])
_BATCH_BYTES = 1 << 20  # bytes of log: a record may become many rows


@dataclass(frozen=True)
class Changes:
    """The changes of some steps of a log.

    Attributes
    ----------
    offsets, epochs, timestamps : int64[steps]
        The offset of each step, and leader epoch and largest timestamp, in milliseconds, of its batch.
    changed : dict of str to Changed
        Changes by type; groups are the offsets of steps.
    """

    offsets: Ints
    epochs: Ints
    timestamps: Ints
    changed: ChangedByType


class ChangeReader:
    """Reads the changes after an image, and continues where it stopped once more has been written.

    Parameters
    ----------
    before : ImageAt
        The image to start from.

    Attributes
    ----------
    offset, epoch : int
        The last offset that was read, and the leader epoch of its batch; -1 before the first.
    start : int
        Offset of the next record to read: the Begin of an open transaction.
    """

    def __init__(self, before: ImageAt) -> None:
        self._image = before.image.copy()
        self._image.begin_notes()
        self._knows_start = False
        self.offset, self.epoch = before.offset, before.epoch
        self.start = before.offset + 1 if before.open_since is None else before.open_since

    def read(
        self,
        log: MetadataLog,
        offset: int | None,
        faults: list[Fault],
        *,
        by_batch: bool = False,
        on_progress: Progress | None = None,
    ) -> Iterator[Changes]:
        """Return the changes up to an offset, as ``changes`` does; the caller must take all of them."""
        image = self._image
        end = NO_BOUND if offset is None else offset + 1
        batches_seen = Batches(end, keeps_all=True)
        replay = Replay(log, self.start, end, batches_seen, is_start_known=self._knows_start, batch_bytes=_BATCH_BYTES)
        waiting = np.empty(0, _STEP)  # the last step, which may continue
        for records in replay.visible(faults, on_progress):
            is_shown = (records.visible_at >= 0) & (records.visible_at < end)
            if is_shown.any():
                batches = replay.batches.with_offsets(records.visible_at[is_shown])
                offsets = np.full(len(is_shown), -1)
                offsets[is_shown] = (
                    np.minimum(batches["last_offset"], end - 1) if by_batch else records.visible_at[is_shown]
                )
                shown, rows = np.unique(offsets[is_shown], return_index=True)
                steps = np.empty(len(shown), _STEP)
                steps["offset"], steps["epoch"] = shown, batches["epoch"][rows]
                steps["timestamp"] = batches["timestamp"][rows]
                groups = np.column_stack((records.offsets[is_shown][rows], shown))
                is_last = offsets == shown[-1]
                if not len(waiting) or waiting["offset"][-1] != shown[-1]:
                    image.apply(records.tables(is_shown & ~is_last), groups)
                    whole = np.concatenate(
                        (waiting, steps[np.isin(steps["offset"], waiting["offset"], invert=True)][:-1])
                    )
                    yield _changes(whole, image)
                    waiting = steps[-1:]
                image.apply(records.tables(is_last), groups)
                take_faults(log, image, faults)
            replay.batches.forget(int(records.offsets.min()))
        if len(waiting):
            yield _changes(waiting, image)
        ahead = log.snapshot_ahead
        if ahead is not None and self.offset < ahead.end_offset - 1 < end:
            reported: list[Fault] = []
            after = image_at(log, None, reported)
            faults += [fault for fault in reported if fault not in faults]
            if after.offset > max(self.offset, log.end_offset - 1):
                yield self._to_snapshot(after)
                return
        if batches_seen.last is not None and batches_seen.last.last_offset >= self.offset:
            self.offset, self.epoch = min(batches_seen.last.last_offset, end - 1), batches_seen.last.epoch
            open_since = replay.open_at(self.offset)
            self.start, self._knows_start = self.offset + 1 if open_since is None else open_since, True

    def _to_snapshot(self, after: ImageAt) -> Changes:
        """Continue with a snapshot that ends after the log: all changes up to it are one step, as in Kafka."""
        changed = changed_records(self._image, after.image, after.offset)
        self._image = after.image.copy()
        self._image.begin_notes()
        self.offset, self.epoch, self.start, self._knows_start = after.offset, after.epoch, after.offset + 1, True
        return Changes(np.array([after.offset]), np.array([after.epoch]), np.array([after.timestamp]), changed)


def changes(
    log: MetadataLog,
    before: ImageAt,
    offset: int | None,
    faults: list[Fault],
    *,
    by_batch: bool = False,
    on_progress: Progress | None = None,
) -> Iterator[Changes]:
    """Return the changes after an image, in order.

    Parameters
    ----------
    log : MetadataLog
        A log, not a snapshot.
    before : ImageAt
        The image to start from.
    offset : int or None
        Last offset to apply; None for the end of the log.
    faults : list of Fault
    by_batch : bool
        Whether a step is a unit that Kafka publishes at once: a batch, or a transaction when the batch of its End is
        read; its offset is the last one of the batch. Otherwise it is each record, and each transaction at its End.
    on_progress : callable, optional

    Returns
    -------
    iterator of Changes
    """
    return ChangeReader(before).read(log, offset, faults, by_batch=by_batch, on_progress=on_progress)


def _changes(steps: npt.NDArray[np.void], image: Image) -> Changes:
    return Changes(steps["offset"], steps["epoch"], steps["timestamp"], image.take_changes())
