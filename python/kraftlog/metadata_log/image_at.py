"""The state of a metadata log at one of its records."""

from __future__ import annotations

from dataclasses import dataclass

from kraftlog.errors import Fault
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.batches import QuorumRecords


@dataclass(frozen=True)
class ImageAt:
    """An image, and the last record that it includes.

    Attributes
    ----------
    image : Image
    offset : int
        Offset of that record; -1 without one.
    epoch : int
        The leader epoch of its batch.
    timestamp : int
        Append time of its batch, in milliseconds; -1 if unknown.
    is_offset_batch_aligned : bool
        Whether it is the last one of its batch.
    open_since : int or None
        The offset of the Begin of an open transaction, which is not in the image.
    quorum : tuple of tuple
        The control records with the voters of a dynamic quorum, as type and value.
    log_end_offset : int or None
        The offset after the last record of the log, if the log ends before the image's snapshot; else None.
    faults : tuple of Fault
        Faults of reading or applying; ``Log.image`` sets them.
    """

    image: Image
    offset: int
    epoch: int
    timestamp: int
    is_offset_batch_aligned: bool = True
    open_since: int | None = None
    quorum: QuorumRecords = ()
    log_end_offset: int | None = None
    faults: tuple[Fault, ...] = ()
