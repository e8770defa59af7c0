"""The cluster in the metadata log: its image, its health, and the last events."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.metadata.health import health
from kraftlog.metadata.levels import name_of
from kraftlog.metadata.record_types import BROKERS
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.timeline import At, timeline
from kraftlog.read.partitions import by_partition, is_metadata

EVENTS = 200  # number of last events
RECENT = 100_000  # offsets before the end that are searched for events
ROWS = 12  # rows kept of each check


@dataclass
class ClusterFacts:
    """A cluster at the end of its metadata log.

    Attributes
    ----------
    offset, epoch, timestamp : int
        Offset, epoch and timestamp of the last record of the image.
    open_since : int or None
        Begin offset of a transaction that is open at the end of the metadata log.
    brokers : list of dict
        broker_id, rack, fenced and in_controlled_shutdown.
    checks : dict
        Checks of ``kraftlog health`` with findings: the number of rows, and the first ones.
    events : deque of At
        The last lines of ``kraftlog changes``.
    begin : int
        The offset after which ``events`` were searched.
    """

    folder: LogPath
    offset: int
    epoch: int
    timestamp: int
    open_since: int | None
    metadata_version: str | None
    topics: int
    partitions: int
    brokers: list[dict[str, Any]]
    checks: dict[str, tuple[int, list[dict[str, Any]]]]
    events: deque[At] = field(default_factory=lambda: deque(maxlen=EVENTS))
    begin: int = -1


def cluster_facts(segments: list[Segment], faults: list[Fault]) -> ClusterFacts | None:
    """Return the cluster in the metadata log among segments; None without one.

    Parameters
    ----------
    segments : list of Segment
    faults : list of Fault
        Receives what cannot be read or applied.
    """
    found = by_partition(one for one in segments if not one.state and one.topic is not None and is_metadata(one))
    if not found:
        return None
    log = MetadataLog(found[0])
    at = image_at(log, None, faults)
    image = at.image
    table = health(image)
    checks = {}
    for one in table.column("check").value_counts().to_pylist():
        rows = table.filter(pc.equal(table.column("check"), one["values"])).slice(0, ROWS).to_pylist()
        checks[one["values"]] = one["counts"], rows
    level = image.metadata_version
    facts = ClusterFacts(
        log.segments[0].folder,
        at.offset,
        at.epoch,
        at.timestamp,
        at.open_since,
        None if level is None else name_of(level),
        image.counts[0],
        image.partitions_count,
        _brokers(image.tables([BROKERS.name])[BROKERS.name].to_pylist()),
        checks,
    )
    facts.begin = max(log.start_offset - 1, at.offset - RECENT)
    facts.events.extend(timeline(log, image_at(log, facts.begin, []), None, []))
    return facts


def _brokers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = ("broker_id", "rack", "fenced", "in_controlled_shutdown")
    return sorted(({name: row.get(name) for name in names} for row in rows), key=lambda row: row["broker_id"])
