"""What functions over a buffer return: rows, and how far in the buffer they go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from kraftlog.errors import Fault
from kraftlog.stream import Produce, Stream

NO_OFFSET = -1
NOTHING = (0, NO_OFFSET)


class Decoding(Protocol):
    """One pass over a buffer."""

    @property
    def reached(self) -> tuple[int, int]:
        """Byte behind the last whole batch that the pass is done with, and the offset behind it.

        The offset is ``NO_OFFSET`` before there was one.
        """

    def batches(self, faults: list[Fault]) -> Iterator[pa.RecordBatch]:
        """Return the rows; what cannot be read is appended to ``faults``."""


class Progress:
    """How far the rows go that a pass has handed out."""

    reached = NOTHING

    def follow(self, decoding: Decoding, faults: list[Fault]) -> Iterator[pa.RecordBatch]:
        """Hand out the rows of a pass, and note after each chunk where it ends."""
        self.reached = NOTHING
        for rows in decoding.batches(faults):
            self.reached = decoding.reached
            yield rows
        self.reached = decoding.reached


class BufferStream(Stream):
    """Rows of a buffer, and how far they go: what a client needs to ask for more.

    Parameters
    ----------
    arrow_schema : pyarrow.Schema
        Of every record batch.
    produce : callable
        Starts one pass; is given the list that it must append faults to.
    progress : Progress
        Of the last pass that was started.
    produce_whole : callable, optional
        As ``produce``, in few record batches, for ``to_table``.

    Examples
    --------
    A fetch response may end with a part of a batch. What follows the whole ones is kept for more bytes to come:

    >>> import pyarrow as pa, kraftlog
    >>> first = kraftlog.encode(pa.table({"value": [b"a", b"b"]}), base_offset=7)
    >>> second = kraftlog.encode(pa.table({"value": [b"c"]}), base_offset=9)
    >>> fetched = first.to_pybytes() + second.to_pybytes()[:20]
    >>> stream = kraftlog.decode(fetched)
    >>> stream.to_table().num_rows
    2
    >>> stream.consumed == len(first), stream.next_offset, stream.faults
    (True, 9, [])

    A consumer moves on from a batch without records that it shows, too:

    >>> marker = kraftlog.encode_marker("COMMIT", producer_id=1, producer_epoch=0, base_offset=9)
    >>> stream = kraftlog.decode(marker)
    >>> stream.to_table().num_rows, stream.next_offset
    (0, 10)
    """

    def __init__(
        self, arrow_schema: pa.Schema, produce: Produce, progress: Progress, produce_whole: Produce | None = None
    ) -> None:
        super().__init__(arrow_schema, produce, produce_whole)
        self._progress = progress

    @property
    def consumed(self) -> int:
        """Bytes of the buffer that whole batches took, as far as the last pass has handed out rows.

        A batch that is cut off at the end of the buffer is not counted: a client keeps the bytes from here on. What
        was left out with a fault is counted. With ``strict``, the chunk in which the fault was found is not.
        """
        return self._progress.reached[0]

    @property
    def next_offset(self) -> int | None:
        """The offset behind the last batch that the last pass is done with, or None when there was none.

        Control batches, batches that compaction emptied, and batches without a row within the bounds count as well.
        A batch whose checksum does not match does not: nobody knows which offsets it had.
        """
        next_offset = self._progress.reached[1]
        return None if next_offset == NO_OFFSET else next_offset
