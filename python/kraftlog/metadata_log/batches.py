"""Facts about the batches of a metadata log, from the pass that finds transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT
from kraftlog.codec.decode import decode
from kraftlog.codec.header_scan import ends
from kraftlog.codec.headers import CONTROL_TYPES, Headers, last_offsets
from kraftlog.codec.markers import MarkerBlock
from kraftlog.codec.options import NO_BOUND
from kraftlog.types import InputFile

QUORUM_TYPES = ("KRAFT_VERSION", "KRAFT_VOTERS")
_HEADER, _FOOTER = (CONTROL_TYPES.index(name) for name in ("SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"))
_PLACE_DTYPE = np.dtype([("base_offset", "i8"), ("last_offset", "i8"), ("epoch", "i8"), ("timestamp", "i8")])

QuorumRecords = tuple[tuple[str, bytes], ...]


class BatchAt(NamedTuple):
    """A batch: its last offset, leader epoch and largest timestamp in milliseconds."""

    last_offset: int
    epoch: int
    timestamp: int


class Batches:
    """Collects facts about the batches of a metadata log in order, in bounded memory.

    Parameters
    ----------
    end : int
        Batches that begin here or later are ignored.
    quorum : tuple of tuple
        The quorum records before the first batch.
    keeps_all : bool
        Keep the bounds of batches until ``forget``, for ``last_offsets_of``.

    Attributes
    ----------
    last : BatchAt or None
        The last batch before ``end``.
    """

    def __init__(self, end: int = NO_BOUND, quorum: QuorumRecords = (), *, keeps_all: bool = False) -> None:
        self._end = end
        self._quorum = dict(quorum)
        self._keeps_all = keeps_all
        self._places = np.empty(0, _PLACE_DTYPE)
        self._types: tuple[int, int] | None = None
        self.last: BatchAt | None = None

    @property
    def quorum(self) -> QuorumRecords:
        """The last record of each of ``QUORUM_TYPES``: its type and its value.

        There is none if the voters are in the nodes' configuration.
        """
        return tuple((name, self._quorum[name]) for name in QUORUM_TYPES if name in self._quorum)

    @property
    def are_whole_snapshot(self) -> bool:
        """Whether they begin with a snapshot's header and end with its footer."""
        return self._types == (_HEADER, _FOOTER)

    def see(self, file: InputFile, block: MarkerBlock) -> None:
        """Process the next batches of a log file."""
        headers = block.headers
        types = headers["control_type"]
        self._types = (int(types[0]) if self._types is None else self._types[0], int(types[-1]))
        if self._keeps_all:
            columns = (headers["base_offset"], last_offsets(headers), *(headers[name] for name in _BATCH_AT[1:]))
            rows = np.empty(len(headers), _PLACE_DTYPE)
            for name, column in zip(_PLACE_DTYPE.names or (), columns, strict=True):
                rows[name] = column
            self._places = np.concatenate((self._places, rows))
        if headers["base_offset"][-1] >= self._end:
            headers = headers[headers["base_offset"] < self._end]
        if len(headers):
            last = headers[-1:]
            self.last = BatchAt(int(last_offsets(last)[0]), *(int(last[name][0]) for name in _BATCH_AT[1:]))
            if block.control_batches:
                self._quorum |= dict(_quorum_records(file, headers, self._end))

    def forget(self, offset: int) -> None:
        """Drop batches that end before an offset."""
        first = int(np.searchsorted(self._places["last_offset"], offset))
        self._places = self._places[first:]

    def with_offsets(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
        """Return the batch of each offset; none of these batches may have been dropped."""
        at = np.searchsorted(self._places["base_offset"], offsets, "right") - 1
        return np.asarray(self._places[at.clip(min=0)])


_BATCH_AT = ("last_offset", "partition_leader_epoch", "max_timestamp")


def _quorum_records(file: InputFile, headers: Headers, end: int) -> Iterator[tuple[str, bytes]]:
    control = headers[headers["attributes"] & CONTROL_BIT != 0]
    for start, stop in zip(control["position"].tolist(), ends(control).tolist(), strict=True):
        records = decode(file.read(start, stop), columns=["offset", "control_type", "value"], include_control=True)
        for row in records.to_table().to_pylist():
            if row["control_type"] in QUORUM_TYPES and row["offset"] < end:
                yield row["control_type"], row["value"]
