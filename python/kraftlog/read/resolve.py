"""What a reader finds out about the transactions around a range, from headers alone.

To which transaction a batch belongs is told by the next marker of its producer: in the range, or behind it. The reader
goes over the headers from the start of the range on until all transactions have ended that have batches in it. Those
that stay open at the end of the log are not waited for.

Only for ``visible_at`` it must know of transactions without batches in the range as well, and starts where the segment
does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kraftlog._native.lookahead import ENDED_DTYPE, PLACE_BITS, Lookahead
from kraftlog.codec.options import NO_BOUND
from kraftlog.layout.discover import Segment
from kraftlog.read.open_transactions import map_as_listed, starts_soundly
from kraftlog.read.ranges import Range
from kraftlog.read.standalone import StandaloneRange
from kraftlog.transactions.producer import NONE, OPEN
from kraftlog.transactions.view import ProducerView
from kraftlog.types import Buffer

LOOKAHEAD_BYTES = 4 << 20

_Open = tuple[int, int, int]  # producer id, first offset, first place


def resolve(found: StandaloneRange, columns: Sequence[str]) -> Range:
    """Return a range with what is known of the transactions of its records.

    Parameters
    ----------
    found : StandaloneRange
    columns : sequence of str
        Of the ``records`` table.
    """
    try:
        buffer = map_as_listed(found.segment)
    except OSError:  # whoever reads it reports why it cannot be read
        nothing = ProducerView(np.empty(0, ENDED_DTYPE), 0)
        return Range(found.segment, found.start, found.end, found.is_first, nothing)
    view = ProducerView(_Walk(found, buffer, every="visible_at" in columns).transactions(), 0)
    return Range(found.segment, found.start, found.end, found.is_first, view, buffer)


class _Walk:
    """Goes over headers, from the start of the segment or of the range; places count from there."""

    def __init__(self, found: StandaloneRange, buffer: Buffer, *, every: bool) -> None:
        self._found = found
        self._every = every  # whether committed transactions matter as well
        self._opened = found.opened if every else frozenset()
        self._origin = 0 if every else found.start
        self._buffer = memoryview(buffer)[self._origin :]
        self._low = found.start - self._origin
        self._high = min(found.end - self._origin, self._buffer.nbytes)
        self._ahead = Lookahead(self._opened, every, False)
        self._ended = [np.empty(0, ENDED_DTYPE)]

    def transactions(self) -> npt.NDArray[np.void]:
        """Return those that reach into the range, as a ``ProducerView`` has them, by places of the segment.

        The marker of one that is neither open at the end of the log nor ended in it is lost, to damage or to
        compaction: its records stay hidden, and it holds nothing back.
        """
        self._look_ahead()
        if not all(starts_soundly(self._buffer, place) for _, _, place in self._waiting()):
            self._look_again()
        rows = [(producer_id, place, NO_BOUND, NO_BOUND, OPEN) for producer_id, _, place in self._hanging()]
        rows += [(producer_id, place, NO_BOUND, NONE, OPEN) for producer_id, _, place in self._waiting()]
        ended = np.concatenate(self._ended)
        reaching = ended[(ended["first_place"] < self._high) & (ended["marker_place"] > self._low)]
        found = np.concatenate((reaching, np.array(rows, ENDED_DTYPE)))
        for name in ("first_place", "marker_place"):
            is_here = (found[name] >= 0) & (found[name] >> PLACE_BITS == 0)
            found[name][is_here] += self._origin
        return found[np.lexsort((found["first_place"], found["producer_id"]))]

    def _waiting(self) -> list[_Open]:
        """Return the open transactions that began before the end of the range and do end in the log."""
        unstable = self._ahead.first_unstable_place
        if unstable is None or unstable >= self._high:
            return []
        return [one for one in self._ahead.open() if one[2] < self._high and one[:2] not in self._found.hanging]

    def _hanging(self) -> list[_Open]:
        return [one for one in self._ahead.open() if one[2] < self._high and one[:2] in self._found.hanging]

    def _look_ahead(self) -> None:
        """Go to the end of the range, and on until none that began before it is waiting."""
        following = iter(self._found.following)
        self._ahead.begin(self._buffer)
        goes_on, ended = self._ahead.run(self._high)
        self._ended.append(ended)
        while self._waiting():
            if not goes_on:
                segment = next(following, None)
                if segment is None:
                    return
                self._ahead.begin(_mapped(segment))
            goes_on, ended = self._ahead.run(self._ahead.position + LOOKAHEAD_BYTES)
            self._ended.append(ended)

    def _look_again(self) -> None:
        """Go over everything once more, with each crc compared: a damaged header seemed to open a transaction."""
        self._ahead = Lookahead(self._opened, self._every, True)
        self._ended = []
        for buffer in (self._buffer, *map(_mapped, self._found.following)):
            self._ahead.begin(buffer)
            self._ended.append(self._ahead.run(memoryview(buffer).nbytes)[1])


def _mapped(segment: Segment) -> Buffer:
    try:
        return map_as_listed(segment)
    except OSError:
        return b""  # whoever reads it reports why it cannot be read
