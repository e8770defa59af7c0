"""``spark.readStream.format("kraftlog")``: micro-batches of growing logs. Options and offsets are the Kafka source's.

A query begins at the latest offset unless ``startingOffsets`` sets another. Partitions and topics that appear
later are read from their first offset on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from kraftlog.layout.checkpoints import HIGH_WATERMARKS
from kraftlog.read.log_ends import LogBounds
from kraftlog.spark.arrow_schema import arrow_schema_of
from kraftlog.spark.follow import LogFollower, begun, reached
from kraftlog.spark.offsets import LATEST, Partition
from kraftlog.spark.packed_parts import packed
from kraftlog.spark.part_partition import PartPartition
from kraftlog.spark.quarantine import begin_quarantine, make_quarantine
from kraftlog.spark.rate_limit import TriggerDelay, rate_limited
from kraftlog.spark.request import Request
from kraftlog.spark.still_there import read_what_is_there
from kraftlog.spark.stream_offsets import OffsetsByTopic, as_json, from_json
from kraftlog.spark.worker import settle

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows, SupportsTriggerAvailableNow

    HAS_READ_LIMITS = True
except ImportError:  # PySpark 4.1, which always asks for everything
    HAS_READ_LIMITS = False
    SupportsTriggerAvailableNow = object

_log = logging.getLogger("kraftlog.spark")


class KraftlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads micro-batches of one request.

    Parameters
    ----------
    request : Request
    schema : StructType
        The columns of the request.

    Raises
    ------
    ValueError
        For a table that cannot be followed, and for rate limits that this PySpark does not support.
    """

    def __init__(self, request: Request, schema: StructType) -> None:
        limit, least = request.max_offsets_per_trigger, request.min_offsets_per_trigger
        if (limit or least) and not HAS_READ_LIMITS:
            raise ValueError("options maxOffsetsPerTrigger and minOffsetsPerTrigger need PySpark 4.2 or later")
        self._request = request
        self._schema = schema
        self._follower = LogFollower(request)
        self._delay = None if least is None else TriggerDelay(least, request.max_trigger_delay_ms)
        self._target: dict[Partition, LogBounds] | None = None
        self._latest: OffsetsByTopic = {}
        self._initial: OffsetsByTopic | None = None  # set for a query that starts with this reader
        self._has_said_why_empty = False

    def initialOffset(self) -> OffsetsByTopic:  # noqa: N802  (Spark's names, here and below)
        """Return where a new query begins."""
        if self._request.quarantine is not None:
            begin_quarantine(self._request.quarantine)
        self._initial = as_json(self._follower.starting())
        return self._initial

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return the limit that the options set."""
        limit, least = self._request.max_offsets_per_trigger, self._request.min_offsets_per_trigger
        if limit is not None:
            return ReadMaxRows(limit)
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the whole query at the current end."""
        self._target = self._follower.bounds()
        for (topic, partition), bounds in self._target.items():
            if bounds.readable_offset < bounds.last_stable_offset:
                _log.warning(
                    "%s-%d: availableNow ends at the high watermark %d in %s, and the log at %d; a broker may truncate"
                    " the records between; option highWatermark=false reads them",
                    topic,
                    partition,
                    bounds.high_watermark,
                    HIGH_WATERMARKS,
                    bounds.log_end_offset,
                )

    def latestOffset(self, start: OffsetsByTopic | None = None, limit: Any = None) -> OffsetsByTopic:  # noqa: N802
        """Return where the next micro-batch ends; PySpark 4.1 does not pass where it begins."""
        bounds = self._follower.bounds() if self._target is None else self._target
        given = from_json(start or {})
        latest = reached(given, bounds)
        self._latest = as_json(latest)
        if self._target is not None and self._latest == self._initial:
            self._say_that_it_starts_at_the_end()
        if limit is None or isinstance(limit, ReadAllAvailable):
            return self._latest
        begin = begun(given, bounds)
        if self._delay and self._target is None and self._delay.passes_over(begin, latest):
            return start or {}
        if self._request.max_offsets_per_trigger is not None:
            latest = rate_limited(self._request.max_offsets_per_trigger, begin, latest)
        return as_json(latest)

    def _say_that_it_starts_at_the_end(self) -> None:
        """Log once why a new query that ends at the current end has no rows."""
        if self._request.interval.starting.mentions(LATEST) and not self._has_said_why_empty:
            self._has_said_why_empty = True
            _log.warning(
                "this new query starts at the latest offsets, and availableNow ends there: it has no rows; the next run"
                " with its checkpoint reads what is written until then, startingOffsets=earliest what is there now"
            )

    def reportLatestOffset(self) -> OffsetsByTopic | None:  # noqa: N802
        """Return the log end at the last listing; Spark derives the lag from it."""
        return self._latest or None

    def partitions(self, start: OffsetsByTopic, end: OffsetsByTopic) -> list[InputPartition]:
        """Return what the tasks of a micro-batch read; the same offsets always give the same rows."""
        if self._request.quarantine is not None:
            make_quarantine(self._request.quarantine)  # a resumed query may start with none
        parts = self._follower.parts(from_json(start), from_json(end))
        return [PartPartition(of_task) for of_task in packed(self._request, parts)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Return the rows of one partition."""
        settle()
        if not isinstance(partition, PartPartition):  # None: Spark's stand-in for an empty list
            return
        arrow_schema = arrow_schema_of(self._schema)
        for part in partition.parts:
            for batch in read_what_is_there(self._request, part):
                yield pa.RecordBatch.from_arrays(batch.columns, schema=arrow_schema)
