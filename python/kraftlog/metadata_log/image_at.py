"""What a metadata log says at one of its records."""

from __future__ import annotations

from dataclasses import dataclass

from kraftlog.errors import Fault
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.batches import QuorumRecords


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
        The control records that say who the voters of a dynamic quorum are, type and value.
    log_end_offset : int or None
        Behind the last record of the log, when that ends before the snapshot that the image is of; else None.
    faults : tuple of Fault
        What could not be read or applied; ``Log.image`` notes it here.
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
