"""Results of functions over a buffer: rows, and the position they reached."""

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
        """End of the last completed batch, in bytes, and the next offset.

        The offset is ``NO_OFFSET`` before there was one.
        """

    def batches(self, faults: list[Fault]) -> Iterator[pa.RecordBatch]:
        """Return the rows; faults are appended to ``faults``."""


class Progress:
    """The position of the rows returned by a pass."""

    reached = NOTHING

    def follow(self, decoding: Decoding, faults: list[Fault]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a pass, and record the position after each chunk."""
        self.reached = NOTHING
        for rows in decoding.batches(faults):
            self.reached = decoding.reached
            yield rows
        self.reached = decoding.reached


class BufferStream(Stream):
    """Rows of a buffer, and their position: all that a client requires to continue fetching.

    Parameters
    ----------
    arrow_schema : pyarrow.Schema
        Schema of each record batch.
    produce : callable
        Starts one pass; receives the list to which it must append faults.
    progress : Progress
        Progress of the last started pass.
    produce_whole : callable, optional
        As ``produce``, but with few large record batches, for ``to_table``.

    Examples
    --------
    A fetch response may end with a partial batch. Its bytes are kept until more arrive:

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
        """Number of bytes of complete batches, up to the rows that the last pass has returned.

        A partial batch at the end of the buffer is not included: a client keeps the bytes from here on. Skipped batches
        with faults are included. With ``strict``, the chunk with the fault is not.
        """
        return self._progress.reached[0]

    @property
    def next_offset(self) -> int | None:
        """The offset after the last batch of the last pass, or None without a batch.

        Control batches, batches emptied by compaction, and batches without a row within the bounds are included. A
        batch with a wrong checksum is not, because its offsets are unknown.
        """
        next_offset = self._progress.reached[1]
        return None if next_offset == NO_OFFSET else next_offset
