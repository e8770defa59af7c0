"""Queries for the least or the greatest offsets, which the ends of a log answer.

The answer of such a query needs the rows of few offsets, if these are enough rows: the query runs within a bound at one
end of the log, and within wider ones until it has all its rows. Only what is within the bound is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.layout.segment import Segment
from kraftlog.read.end_offset import end_offset
from kraftlog.read.partitions import by_partition, log_start_offset

Bounds = tuple[int, int]

NO_BOUNDS = (-NO_BOUND, NO_BOUND)
FIRST_SPAN, WIDER = 1024, 16  # offsets, and times as many within the next bound
LEAST_PARTS = 4  # a bound that leaves out little saves little, and its rows are read twice if they are too few
# at most 9,999 rows, which are kept in memory
_FORM = re.compile(
    r"\s*select\s+(?P<columns>.+?)\s+from\s+(?:topics\.)?(?P<table>\w+|\"[^\"]+\")"
    r"(?:\s+where\s+(?P<where>.+?))?"
    r"(?:\s+order\s+by\s+\"offset\"(?:\s+(?P<direction>asc|desc))?\s+limit\s+(?P<limit>[1-9][0-9]{0,3}))?\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_EXTREME = re.compile(r"(?P<function>min|max)\s*\(\s*\"offset\"\s*\)(?:\s+(?:as\s+)?\w+)?", re.IGNORECASE)
# a row of the answer could depend on several rows of the table, or be of another one
_OTHER = re.compile(
    r"--|/\*|\b(?:select|from|join|group|having|order|limit|over|window|qualify|distinct|union|intersect|except|exclude|"
    r"replace|sample|tablesample|with|pivot|unpivot|min|max)\b",
    re.IGNORECASE,
)
_OFFSET_COLUMN = re.compile(r"(?:^|,)\s*\"offset\"\s*(?=,|$)")
_OFFSET = re.compile(r"\boffset\b", re.IGNORECASE)  # another column could have this name, and order the rows


@dataclass(frozen=True)
class EndQuery:
    """A query for the rows of the least or the greatest offsets of one table.

    Attributes
    ----------
    table : str
        A topic, or a table of records.
    is_last : bool
        Whether it is for the greatest offsets.
    rows : int
        The number of rows that it has if the table has enough.
    is_extreme : bool
        Whether it is for the offset alone, as an aggregate: null without rows.

    Examples
    --------
    >>> from kraftlog.query.end_query import EndQuery
    >>> EndQuery.of('select key from orders where partition = 1 order by "offset" desc limit 3')
    EndQuery(table='orders', is_last=True, rows=3, is_extreme=False)
    >>> EndQuery.of('select key from orders order by key limit 3')
    """

    table: str
    is_last: bool
    rows: int
    is_extreme: bool = False

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return what a statement asks for; None for a statement of another form."""
        found = _FORM.fullmatch(text)
        if found is None or _OTHER.search(found["where"] or ""):
            return None
        table = found["table"].strip('"')
        if found["limit"] is None:
            extreme = _EXTREME.fullmatch(found["columns"])
            return None if extreme is None else cls(table, extreme["function"].lower() == "max", 1, is_extreme=True)
        if _OTHER.search(found["columns"]) or _OFFSET.search(_OFFSET_COLUMN.sub("", found["columns"])):
            return None
        return cls(table, (found["direction"] or "asc").lower() == "desc", int(found["limit"]))

    def bounds(self, segments: list[Segment]) -> Iterator[Bounds]:
        """Return ranges of offsets, each wider than the one before; the widest has a quarter of the offsets at most."""
        partitions = by_partition(segments)
        first = min((log_start_offset(each, ReadOptions()) for each in partitions), default=0)
        end = max((end_offset(each[-1], [], check_crc=True) for each in partitions), default=0)
        span = max(FIRST_SPAN, self.rows)
        while span <= (end - first) // LEAST_PARTS:
            yield (end - span, NO_BOUND) if self.is_last else (-NO_BOUND, first + span)
            span *= WIDER

    def is_answered(self, rows: pa.Table) -> bool:
        """Whether rows of a part of the log are those of all of it."""
        return not rows.column(0).null_count if self.is_extreme else bool(rows.num_rows == self.rows)
