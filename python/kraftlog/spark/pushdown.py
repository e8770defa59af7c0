"""Filters that Spark pushes down: filters on topic, partition, offset and timestamp narrow the plan.

Spark applies all of them again to the rows: a plan may hold more rows than match, never fewer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.spark.narrowing import Narrowing
from kraftlog.spark.request import Request
from kraftlog.tables.table import TaskCut

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_OF_PARTITIONS = ("group", "topic", "partition")
_EQUALS = ("EqualTo", "EqualNullSafe", "In")
_EPOCH = datetime.fromtimestamp(0, UTC)
_MODULE = "pyspark.sql.worker.data_source_pushdown_filters"


def spark_hands_filters_down() -> bool:
    """Whether Spark started this process to push filters down.

    Spark does that when ``spark.sql.python.filterPushdown.enabled`` is set. When it is not, Spark refuses a reader that
    takes filters; a reader has no other way to find out.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _MODULE in sys.modules or (main is not None and main.name == _MODULE)


def narrowed(request: Request, filters: Iterable[Filter]) -> Request:
    """Return a request that reads less; of tables whose rows are not single records only topic and partition count.

    Those that one task reads, such as lag, need not look at logs of other groups, topics and partitions.
    """
    table = request.definition
    is_whole = table.cut is TaskCut.WHOLE
    for condition in filters if table.has_log_partitions or is_whole else ():
        path: tuple[str, ...] = getattr(condition, "attribute", ())  # that a filter does not hold has none
        if len(path) != 1:
            continue
        column, kind = path[0], type(condition).__name__
        if column in _OF_PARTITIONS and kind in _EQUALS:
            values = frozenset(condition.value if kind == "In" else (condition.value,))
            if not is_whole:
                request = replace(request, narrowing=_of_names(request.narrowing, column, values))
            elif None not in values:
                before = request.narrowing
                request = replace(request, narrowing=replace(before, values=(*before.values, (column, values))))
        elif column == "offset" and table.has_records:
            request = replace(request, narrowing=_of_offset(request.narrowing, kind, condition))
        elif column == "timestamp" and table.has_records:
            request = replace(request, options=_of_timestamp(request.options, kind, condition))
    return request


def _of_names(before: Narrowing, column: str, values: frozenset[Any]) -> Narrowing:
    if column == "topic":
        return replace(before, topics=values if before.topics is None else before.topics & values)
    return replace(before, partitions=values if before.partitions is None else before.partitions & values)


def _of_offset(before: Narrowing, kind: str, condition: Any) -> Narrowing:
    values = condition.value if kind == "In" else (getattr(condition, "value", None),)
    values = [value for value in values if isinstance(value, int)]
    start, end = -NO_BOUND, NO_BOUND
    if values and kind in _EQUALS:
        start, end = min(values), max(values) + 1
    elif values and kind in ("GreaterThan", "GreaterThanOrEqual"):
        start = values[0]
    elif values and kind in ("LessThan", "LessThanOrEqual"):
        end = values[0] + 1
    return replace(before, start_offset=max(before.start_offset, start), end_offset=min(before.end_offset, end))


def _of_timestamp(before: ReadOptions, kind: str, condition: Any) -> ReadOptions:
    moment = getattr(condition, "value", None)
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        return before
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    if kind in ("EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual"):
        before = replace(before, start_timestamp=max(before.start_timestamp, milliseconds))
    if kind in ("EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual"):
        before = replace(before, end_timestamp=min(before.end_timestamp, milliseconds + 1))
    return before
