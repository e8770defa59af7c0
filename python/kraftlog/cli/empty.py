"""Why a command shows no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.times import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kraftlog.read.partitions import Partition

_SHOWN = 3


def why_empty(partitions: Sequence[Partition], rows: ReadOptions, *, picks: bool) -> str:
    """Return why no record of some partitions is shown.

    Parameters
    ----------
    partitions : sequence of Partition
    rows : ReadOptions
    picks : bool
        Whether a search or filter chooses among the records.
    """
    held = [one for one in partitions if (one.start_offset or 0) < one.end_offset]
    if not held:
        return f"no rows: {_some([f'{one.topic}-{one.partition}' for one in partitions]) or 'the log'} is empty"
    if not any(rows.start_offset < one.end_offset and (one.start_offset or 0) < rows.end_offset for one in held):
        there = _some([f"{one.topic}-{one.partition} has {one.start_offset} to {one.end_offset - 1}" for one in held])
        return f"no rows: no offset {_between(rows.start_offset, rows.end_offset, str)}; {there}"
    within = []
    if rows.bounds_offsets:
        within.append(f"an offset {_between(rows.start_offset, rows.end_offset, str)}")
    if rows.bounds_timestamps:
        within.append(f"a timestamp {_between(rows.start_timestamp, rows.end_timestamp, text_of)}")
    bounds = f" with {' and '.join(within)}" if within else ""
    if picks:
        return f"no rows: no record{bounds} matches"
    if rows.isolation_level == READ_COMMITTED:
        return f"no rows: no committed record{bounds}; read_uncommitted shows those of aborted and open transactions"
    return f"no rows: no record{bounds}" if within else "no rows: there are only markers of transactions"


def _between(start: int, end: int, shown: Callable[[int], str]) -> str:
    words = [f"from {shown(start)} on"] if start != -NO_BOUND else []
    return " and ".join([*words, *([f"before {shown(end)}"] if end != NO_BOUND else [])])


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
