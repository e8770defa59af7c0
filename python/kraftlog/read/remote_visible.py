"""Ranges of a remote partition to read, each with what is known of the transactions of its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from kraftlog.codec.options import READ_COMMITTED, ReadOptions
from kraftlog.layout.discover import Segment
from kraftlog.layout.names import printable
from kraftlog.read.ranges import Range, plan, relevant
from kraftlog.read.remote_transactions import known_transactions
from kraftlog.transactions.offset_view import FOREVER, OffsetView


def remote_ranges(
    group: list[Segment], options: ReadOptions, range_bytes: int | None, columns: Sequence[str], notes: list[str]
) -> Iterator[Range] | None:
    """Return the ranges of a remote partition, without a look at the log files but for the last one.

    Parameters
    ----------
    group : list of Segment
        Of one partition, in order.
    options : ReadOptions
        With ``read_committed`` ranges end at the last stable offset.
    range_bytes : int, optional
    columns : sequence of str
        Of the ``records`` table.
    notes : list of str
        Receives where a read_committed reader stops, and why log files must be read for their headers.

    Returns
    -------
    iterator of Range or None
        None when the files beside the segments do not say enough.
    """
    if next(relevant(group, options), None) is None:
        return iter(())
    where = printable(group[-1].path.parent.name)
    known = None if "visible_at" in columns else known_transactions(group, options)
    if known is None:
        lacks = (
            "visible_at needs it"
            if "visible_at" in columns
            else "a file beside a segment is missing or damaged, or the last segment is"
        )
        notes.append(f"{where}: log files are read as a whole to find transactions: {lacks}")
        return None
    if options.isolation_level == READ_COMMITTED and known.first_open is not None:
        producer_id, offset = known.first_open
        if offset < options.end_offset:
            stops = f"{where}: read_committed ends at offset {offset}"
            notes.append(f"{stops}, where a transaction of producer {producer_id} is open")
    stable = min(options.end_offset, known.view.last_stable_offset)
    return _ranges(group, replace(options, end_offset=stable), range_bytes, known.view)


def _ranges(group: list[Segment], options: ReadOptions, range_bytes: int | None, view: OffsetView) -> Iterator[Range]:
    ends = [following.base_offset if following else None for _, following in zip_longest(group, group[1:])]
    views = {
        segment.path: view.within(segment.base_offset or 0, FOREVER if end is None else end)
        for segment, end in zip(group, ends, strict=True)
    }
    for part in plan(group, options, range_bytes):
        yield replace(part, transactions=views[part.segment.path])
