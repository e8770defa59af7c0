"""Maps, bars and lanes as SVG; they contain only numbers, and no text of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kraftlog.log_report.fault_counts import BINS
from kraftlog.log_report.partition_facts import PartitionFacts, SegmentFacts
from kraftlog.log_report.transaction_sums import TimeBins, Transaction

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH = BINS
HEIGHT = 9
_GAP = 1.5
SEGMENTS_DRAWN = 100
COLUMNS = 120
LEAST = 1.5  # width of the view box
Box = tuple[float, float]
"""Start and width of a box."""


def svg(paths: Iterable[tuple[str, Sequence[Box]]], label: str, style: str = "strip") -> Markup:
    """Return a drawing of one height: boxes by the class of their colour.

    Parameters
    ----------
    paths : iterable of tuple
    label : str
        Description for screen readers; no text of a log.
    style : str
        CSS class.
    """
    from markupsafe import Markup

    drawn = "".join(f'<path class={name} d="{_path(boxes)}"/>' for name, boxes in paths if boxes)
    view = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none"'
    return Markup(f'<svg class="{style}" role="img" aria-label="{label}" {view}>{drawn}</svg>')


def _path(boxes: Sequence[Box]) -> str:
    return "".join(f"M{_short(at)} 0h{_short(width)}v{HEIGHT}h-{_short(width)}z" for at, width in boxes)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def partition_map(partition: PartitionFacts) -> Markup:
    """Return the segments of a partition, in proportion to file size, with damaged stretches."""
    segments = partition.segments[-SEGMENTS_DRAWN:]
    whole = sum(segment.size for segment in segments) or 1
    room = WIDTH - _GAP * (len(segments) - 1)
    sound: list[Box] = []
    gone: list[Box] = []
    bad: list[Box] = []
    torn: list[Box] = []
    at = 0.0
    for segment in segments:
        width = room * segment.size / whole
        is_gone = (segment.next_offset or 0) <= partition.log_start_offset and partition.log_start_offset > 0
        (gone if is_gone else sound).append((at, width))
        bad += [(at + width * first / BINS, max(width * count / BINS, LEAST)) for first, count in _damaged(segment)]
        torn += _torn(segment, at, width) if partition.torn_bytes else []
        at += width + _GAP
    label = f"{len(partition.segments)} segments, {partition.faults.count} errors"
    return svg((("s", sound), ("g", gone), ("x", bad), ("t", torn)), label)


def segment_map(segment: SegmentFacts) -> Markup:
    """Return the damaged stretches of a segment's file."""
    bad = [(float(first), max(float(count), LEAST)) for first, count in _damaged(segment)]
    whole = [(0.0, float(WIDTH))]
    return svg((("s", whole), ("x", bad), ("t", _torn(segment, 0, WIDTH))), "where it is damaged", "strip large")


def _damaged(segment: SegmentFacts) -> list[tuple[int, int]]:
    return segment.damage.stretches() if segment.damage is not None else []


def _torn(segment: SegmentFacts, at: float, width: float) -> list[Box]:
    if not segment.torn_bytes:
        return []
    wide = max(width * segment.torn_bytes / segment.size, LEAST)
    return [(at + width - wide, wide)]


@dataclass(frozen=True)
class Lane:
    """A transaction as a bar in time; ``state`` is hanging if that is known."""

    one: Transaction
    state: str
    svg: Markup


@dataclass(frozen=True)
class Lanes:
    """Transactions as bars in time.

    Attributes
    ----------
    start, end : int
        Start and end of the visible time, in milliseconds.
    """

    rows: list[Lane]
    start: int
    end: int


def lanes(some: Sequence[tuple[Transaction, str]]) -> Lanes:
    """Return bars for transactions and their states; an open one reaches to the end."""
    known = [one for one, _ in some if one.start_timestamp >= 0]
    start = min((one.start_timestamp for one in known), default=0)
    end = max((max(one.end_timestamp, one.start_timestamp) for one in known), default=0)
    scale = WIDTH / max(end - start, 1)
    rows = []
    for one, state in sorted(some, key=lambda item: item[0].start_timestamp):
        boxes = []
        if one.start_timestamp >= 0:
            first = (one.start_timestamp - start) * scale
            last = WIDTH if one.state == "open" else (one.end_timestamp - start) * scale
            wide = max(last - first, LEAST)
            boxes = [(min(first, WIDTH - wide), wide)]
        rows.append(Lane(one, state, svg(((state, boxes),), f"{state} transaction", "")))
    return Lanes(rows, start, end)


@dataclass(frozen=True)
class Columns:
    """Counts of ended transactions by time.

    Attributes
    ----------
    width : int
        Milliseconds of a column.
    start, end : int
        Start and end of the visible time, in milliseconds.
    counts : list of tuple
        Committed and aborted ones of each column.
    """

    svg: Markup
    width: int
    start: int
    end: int
    counts: list[tuple[int, int]]


def columns(bins: TimeBins) -> Columns | None:
    """Return the counts of transactions by time as columns, aborted ones on top; None if none ended."""
    if not bins.counts:
        return None
    first, last = min(bins.counts), max(bins.counts)
    by = max(1, -(-(last + 1 - first) // COLUMNS))
    count = (last - first) // by + 1
    sums = [(0, 0)] * count
    for at, (committed, aborted) in bins.counts.items():
        one, other = sums[(at - first) // by]
        sums[(at - first) // by] = one + committed, other + aborted
    most, wide = max(map(sum, sums)), WIDTH / count
    parts = []
    for name, which in (("committed", 0), ("aborted", 1)):
        path = ""
        for number, pair in enumerate(sums):
            below = sum(pair[:which]) / most * 40
            tall = max(pair[which] / most * 40, 1.0 if pair[which] else 0)
            if tall:
                x, y = number * wide, 42 - below - tall
                path += f"M{_short(x)} {_short(y)}h{_short(max(wide - 0.6, 0.4))}v{_short(tall)}H{_short(x)}z"
        parts.append(f'<path class={name} d="{path}"/>' if path else "")
    from markupsafe import Markup

    label = "transactions that ended, by time"
    view = f'viewBox="0 0 {WIDTH} 42" preserveAspectRatio="none"'
    drawn = Markup(f'<svg class="columns" role="img" aria-label="{label}" {view}>{"".join(parts)}</svg>')
    width = by * bins.width
    return Columns(drawn, width, first * bins.width, (last + 1) * bins.width, sums)


@dataclass(frozen=True)
class Bar:
    """Counts of batches by size."""

    label: str
    count: int
    svg: Markup


def bars(counts: Sequence[int], label_of: Sequence[str]) -> list[Bar]:
    """Return a bar for each size, from the first that occurs to the last."""
    there = [at for at, count in enumerate(counts) if count]
    if not there:
        return []
    most = max(counts)
    return [
        Bar(
            label_of[at],
            counts[at],
            svg((("k", [(0.0, WIDTH * counts[at] / most)] if counts[at] else []),), "share", ""),
        )
        for at in range(there[0], there[-1] + 1)
    ]
