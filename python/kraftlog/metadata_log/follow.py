"""Follows a metadata log that is written: what happens in the cluster, as it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraftlog.errors import Fault
from kraftlog.metadata.diff.change_filter import ChangeFilter
from kraftlog.metadata.timeline.happenings import Happening
from kraftlog.metadata_log.changes import ChangeReader
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.timeline import At, timeline_behind

TRUNCATED, DELETED = "truncated", "deleted"


def follow(
    open_log: Callable[[], MetadataLog],
    before: ImageAt,
    faults: list[Fault],
    wait: Callable[[], bool],
    where: ChangeFilter | None = None,
) -> Iterator[At]:
    """Return what happens behind an image, and go on when the log has more.

    Segments may be rolled and deleted, and the log may be truncated, as a new leader lets its followers do: what was
    told of the offsets that are gone did not happen, which a line says; it goes on with what stands there now.

    Parameters
    ----------
    open_log : callable
        Lists the files of the log as they are.
    before : ImageAt
    faults : list of Fault
        Receives what could not be read, each once.
    wait : callable
        Is called when all was told; returns whether to look again.
    where : ChangeFilter, optional
        Only what happened to these topics and brokers.
    """
    log, reader = open_log(), ChangeReader(before)
    found: list[Fault] = []
    yield from timeline_behind(log, reader, log.known_start(before.offset + 1), None, found, where)
    while True:
        faults += [fault for fault in found if fault not in faults]
        if not wait():
            return
        found = []
        seen, log = _files(log), open_log()
        if _files(log) == seen:
            continue
        kept = kept_offset(log, reader)
        if kept < reader.offset or log.start_offset > reader.start:
            message = f"the log was cut back to offset {kept + 1}: what was told of later offsets did not happen"
            what, at = TRUNCATED, kept + 1
            if log.start_offset > reader.start:
                message = f"the log begins at offset {log.start_offset} now: what changed before it is not told"
                what, at, kept = DELETED, log.start_offset, log.start_offset - 1
            yield At(-1, Happening(at, at, what, message))
            before = image_at(log, kept, found)
            reader = ChangeReader(before)
            yield from timeline_behind(log, reader, log.known_start(before.offset + 1), None, found, where)
        else:
            yield from timeline_behind(log, reader, reader.start, None, found, where)


def _files(log: MetadataLog) -> list[tuple[str, int]]:
    return [(segment.path.name, segment.size) for segment in log.segments]


def kept_offset(log: MetadataLog, reader: ChangeReader) -> int:
    """Return the last offset of those that a reader has read that the log still has as they were.

    A leader epoch has one leader, which writes each offset once: offsets are as they were up to the last one that the
    log has of the epoch that was read last, or of an earlier one.
    """
    if reader.offset < log.start_offset:
        return reader.offset
    batch = log.batch_at(reader.offset)
    if batch is not None and batch["partition_leader_epoch"][0] == reader.epoch:
        return reader.offset
    return min(reader.offset, log.last_offset_of(reader.epoch))
