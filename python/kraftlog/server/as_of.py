"""The moment as of which a log is served: its records up to a cut, and the topics that existed then."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.errors import Fault
from kraftlog.metadata.image import Image
from kraftlog.metadata.uuids import uuid_text
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.tables.lines import line_segments
from kraftlog.tables.log import Log
from kraftlog.topics import TopicPartition
from kraftlog.transactions.cut import CutTime, Side

AsOf = int | str | datetime | CutTime
"""An offset of the metadata log, a time, or a cut in the syntax of ``kraftlog.open``."""

_SIDES = tuple(side.value for side in Side)


class ExistingTopics:
    """The topics and partitions of a metadata image.

    Parameters
    ----------
    image : Image
    """

    def __init__(self, image: Image) -> None:
        tables = image.tables(["TopicRecord", "PartitionRecord"])
        rows = tables["TopicRecord"].select(["topic_id", "name"]).to_pylist()
        self._ids = {row["name"]: uuid_text(row["topic_id"]) for row in rows}
        rows = tables["PartitionRecord"].select(["topic_id", "partition_id"]).to_pylist()
        self._partitions = {(uuid_text(row["topic_id"]), row["partition_id"]) for row in rows}

    @property
    def names(self) -> list[str]:
        """The names of the topics."""
        return sorted(self._ids)

    def __contains__(self, partition: tuple[TopicPartition, str | None]) -> bool:
        """Whether a partition existed; a topic with another id is not the same one, if the id is known."""
        of, topic_id = partition
        known = self._ids.get(of.topic)
        return known is not None and topic_id in (None, known) and (known, of.partition) in self._partitions


@dataclass(frozen=True)
class LogAsOf:
    """A log as of a moment.

    Attributes
    ----------
    log : Log
        At the cut.
    topics : ExistingTopics or None
        None if no metadata log among the files has them.
    timestamp : int or None
        In milliseconds; None at the end of the log.
    notes : list of str
    """

    log: Log
    topics: ExistingTopics | None = None
    timestamp: int | None = None
    notes: list[str] = field(default_factory=list)


class _Moment(NamedTuple):
    cut: CutTime
    offset: int | None  # of the metadata log; None: the one at the time of the cut


def log_as_of(log: Log, moment: AsOf) -> LogAsOf:
    """Return a log as of a moment.

    Parameters
    ----------
    log : Log
    moment : int, str, datetime or CutTime
        A time stands for the greatest cut before it, and an offset of the metadata log for that before its time.

    Raises
    ------
    ValueError
        When it is no moment, or the metadata log does not have the offset; when there is no such cut.
    """
    notes: list[str] = []
    segments = log.found.metadata_log
    metadata = MetadataLog(line_segments(replace(log.found, segments=segments), [], heals=True)) if segments else None
    at = _moment(moment, metadata)
    topics = None if metadata is None else _topics_at(metadata, at, notes)
    return LogAsOf(log.cut_at(at.cut), topics, None if at.cut.side is Side.END else at.cut.timestamp, notes)


def _moment(moment: AsOf, metadata: MetadataLog | None) -> _Moment:
    if isinstance(moment, CutTime):
        return _Moment(moment, None)
    if isinstance(moment, str) and moment.partition(":")[0] in _SIDES:
        return _Moment(CutTime.of(moment), None)
    if isinstance(moment, datetime) or (isinstance(moment, str) and not moment.isdecimal()):
        return _Moment(CutTime.at(Side.AT_OR_BEFORE, moment), None)
    offset = int(moment)
    if metadata is None:
        raise ValueError(f"as of offset {offset}: an offset of the metadata log, which is not among the files")
    batch = metadata.batch_at(offset)
    if batch is None:
        ends = f"the metadata log has offsets {metadata.start_offset} to {metadata.end_offset - 1}"
        raise ValueError(f"as of offset {offset}: {ends}")
    timestamp = int(batch["max_timestamp"][0])
    if timestamp == NO_TIMESTAMP:
        raise ValueError(f"as of offset {offset}: the time of this offset of the metadata log is unknown")
    return _Moment(CutTime(Side.AT_OR_BEFORE, timestamp), offset)


def _topics_at(metadata: MetadataLog, at: _Moment, notes: list[str]) -> ExistingTopics | None:
    """Return the topics of the image at a moment; note if the metadata log does not have it for certain."""
    faults: list[Fault] = []
    try:
        is_end = at.offset is None and at.cut.side is Side.END
        offset = metadata.offset_at(at.cut.timestamp) if at.offset is None and not is_end else at.offset
        image = image_at(metadata, offset, faults).image
    except ValueError as error:
        notes.append(f"all topics are served, since the metadata of that moment is unknown: {error}")
        return None
    if faults:
        notes.append(f"all topics are served, since the metadata of that moment is unknown: {faults[0].message}")
        return None
    return ExistingTopics(image)
