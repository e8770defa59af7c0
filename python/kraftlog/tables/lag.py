"""How far groups are behind: what they have committed against the ends of the logs, from the files of a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.read.records import Progress
from kraftlog.tables.coordinator_tables import offset_rows
from kraftlog.tables.partition_offsets import PartitionEnds, partitions_of

_COMMITTED = schema.OFFSETS.select(["group", "topic", "partition", "offset", "state"])


class Wanted(NamedTuple):
    """Groups and topics that are wanted; None means all of them."""

    groups: frozenset[str] | None = None
    topics: frozenset[str] | None = None

    def takes(self, group: str, topic: str) -> bool:
        """Whether a group's offset in a topic is wanted."""
        return (self.groups is None or group in self.groups) and (self.topics is None or topic in self.topics)


def lag_rows(
    segments: list[Segment],
    wanted: Wanted,
    arrow_schema: pa.Schema,
    options: ReadOptions,
    faults: list[Fault],
    on_progress: Progress | None = None,
    ends: dict[tuple[str, int], PartitionEnds] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return the table lag, a record batch for each partition of ``__consumer_offsets``.

    Offsets that wait for the end of a transaction are not committed. ``ends`` has partitions whose ends are known, and
    receives those of others.
    """
    logs = {(group[0].topic, group[0].partition): group for group in partitions_of(segments)}
    ends = {} if ends is None else ends
    known = len(faults)
    for committed in offset_rows(segments, _COMMITTED, options, faults, on_progress):
        rows = []
        for group, topic, partition, offset, state in zip(*committed.to_pydict().values(), strict=True):
            if state != "committed" or not wanted.takes(group, topic):
                continue
            row = {"group": group, "topic": topic, "partition": partition, "current_offset": offset}
            if (topic, partition) in logs and (topic, partition) not in ends:
                ends[topic, partition] = PartitionEnds(logs[topic, partition], faults)
            rows.append(row | _compared(offset, f"{topic}-{partition}", ends.get((topic, partition))))
            if options.strict and len(faults) > known:
                raise error_from_fault(faults[known])
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema)


def _compared(current: int, name: str, ends: PartitionEnds | None) -> dict[str, Any]:
    if ends is None:
        return {"reason": f"no log of {name} among the files"}
    end, stable = ends.log_end_offset, ends.last_stable_offset
    return {
        "log_start_offset": ends.log_start_offset,
        "log_end_offset": end,
        "lag": None if end is None else end - current,
        "last_stable_offset": stable,
        "read_committed_lag": None if stable is None else stable - current,
        "reason": None if end is not None and stable is not None else f"the log of {name} cannot be read to its end",
    }
