"""Which transactions are open where the segments of a partition start, and behind the last one.

The ``.snapshot`` beside a segment says it, and nothing is open before offset 0. Only segments in front of one without a
snapshot are gone over, and the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftlog._native.lookahead import Lookahead
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.options import NO_BOUND
from kraftlog.disk.mapping import map_file
from kraftlog.errors import Fault
from kraftlog.layout.discover import Segment
from kraftlog.read.partitions import opened_before_segment
from kraftlog.types import Buffer

Opened = frozenset[tuple[int, int]]
"""Producer id and first offset of each open transaction."""

_Open = tuple[int, int, int]  # with the first byte; -1 when that is in an earlier segment


class OpenTransactions:
    """Open transactions at the borders of a partition's segments.

    Parameters
    ----------
    segments : sequence of Segment
        Of one partition, in order. Of each file as many bytes count as it had when it was listed.
    faults : list of Fault
        Receives snapshots that could not be read; the segments in front of them are gone over.

    Examples
    --------
    >>> import kraftlog
    >>> from kraftlog.read.open_transactions import OpenTransactions
    >>> segments = kraftlog.open("tests/golden/transactions_hanging/log/orders-late-0").found.segments
    >>> at_the_end = OpenTransactions(segments, []).before(len(segments))
    >>> [first_offset for producer_id, first_offset in at_the_end]
    [21]
    """

    def __init__(self, segments: Sequence[Segment], faults: list[Fault]) -> None:
        self._segments = segments
        self._faults = faults
        self._known: dict[int, Opened] = {}
        self._behind: dict[int, list[_Open]] = {}

    def before(self, number: int) -> Opened:
        """Return the transactions that are open where a segment starts; behind the last one, at the end of the log."""
        known = number
        while (opened := self._look_up(known)) is None:
            known -= 1
        for at in range(known, number):
            opened = self._known[at + 1] = frozenset(one[:2] for one in self._open_behind(at))
        return opened

    def _open_behind(self, number: int) -> list[_Open]:
        if number not in self._behind:
            self._behind[number] = _open_behind(self._segments[number], self.before(number))
        return self._behind[number]

    def last_stable_place(self) -> tuple[int, int] | None:
        """Return the number of the segment, and the byte in it, where the earliest open transaction begins.

        It is None when none is open at the end of the log. Where the transaction began before the log it is the first
        byte, and where its first batch cannot be found in the segment, the end of that.
        """
        hanging = self.before(len(self._segments))
        if not hanging:
            return None
        number = len(self._segments) - 1
        while number > 0 and hanging & self.before(number):
            number -= 1
        places = [one[2] for one in self._open_behind(number) if one[:2] in hanging]
        return number, max(0, min(places, default=NO_BOUND))

    def _look_up(self, number: int) -> Opened | None:
        if number not in self._known and number < len(self._segments):
            told = opened_before_segment(self._segments[number], self._faults)
            if told is not None:
                columns = told["producer_id"].tolist(), told["first_offset"].tolist()
                self._known[number] = frozenset(zip(*columns, strict=True))
            elif number == 0:
                self._known[number] = frozenset()
        return self._known.get(number)


def _open_behind(segment: Segment, opened: Opened) -> list[_Open]:
    """Return what is open at the end of a segment.

    A header whose batch is damaged may seem to open a transaction. If one starts with a bad batch, all is gone over
    once more, with each crc compared.
    """
    try:
        buffer = map_as_listed(segment)
    except OSError:
        buffer = b""  # whoever reads it reports why it cannot be read
    found = _open_at_end(buffer, opened, check_all=False)
    if not all(starts_soundly(buffer, place) for _, _, place in found):
        found = _open_at_end(buffer, opened, check_all=True)
    return found


def _open_at_end(buffer: Buffer, opened: Opened, *, check_all: bool) -> list[_Open]:
    ahead = Lookahead(opened, False, check_all)
    ahead.begin(buffer)
    ahead.run(memoryview(buffer).nbytes)
    return ahead.open()


def map_as_listed(segment: Segment) -> Buffer:
    """Map a log file as it was when it was listed: what was appended since does not count.

    Raises
    ------
    OSError
        When it cannot be opened.
    """
    return memoryview(map_file(segment.path))[: segment.size]


def starts_soundly(buffer: Buffer, position: int) -> bool:
    """Whether a transaction starts with a batch whose crc matches; one from before the buffer (-1) does."""
    if position < 0:
        return True  # a snapshot says so
    headers = next(HeaderScan(buffer, position, position + 1, check_crc=True).headers(), None)
    return headers is not None and bool(headers["crc_ok"].all())
