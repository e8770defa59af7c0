"""Follows a growing metadata log and reports changes in the cluster as they happen."""

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
    """Return the events after an image, and continue as the log grows.

    Segments may be rolled and deleted, and the log may be truncated, as followers of a new leader do: events at the
    removed offsets did not happen, which a line reports; then the new events follow.

    Parameters
    ----------
    open_log : callable
        Lists the current files of the log.
    before : ImageAt
    faults : list of Fault
        Receives what could not be read, each once.
    wait : callable
        Called after each round; returns whether to check again.
    where : ChangeFilter, optional
        Only events of these topics and brokers.
    """
    log, reader = open_log(), ChangeReader(before)
    of_round: list[Fault] = []
    yield from timeline_behind(log, reader, log.known_start(before.offset + 1), None, of_round, where)
    while True:
        faults += [fault for fault in of_round if fault not in faults]
        if not wait():
            return
        of_round = []
        files, log = _files(log), open_log()
        if _files(log) == files:
            continue
        unchanged_until = kept_offset(log, reader)
        if unchanged_until < reader.offset or log.start_offset > reader.start:
            message = (
                f"the log was cut back to offset {unchanged_until + 1}: what was told of later offsets did not happen"
            )
            what, at = TRUNCATED, unchanged_until + 1
            if log.start_offset > reader.start:
                message = f"the log begins at offset {log.start_offset} now: what changed before it is not told"
                what, at, unchanged_until = DELETED, log.start_offset, log.start_offset - 1
            yield At(-1, Happening(at, at, what, message))
            before = image_at(log, unchanged_until, of_round)
            reader = ChangeReader(before)
            yield from timeline_behind(log, reader, log.known_start(before.offset + 1), None, of_round, where)
        else:
            yield from timeline_behind(log, reader, reader.start, None, of_round, where)


def _files(log: MetadataLog) -> list[tuple[str, int]]:
    return [(segment.path.name, segment.size) for segment in log.segments]


def kept_offset(log: MetadataLog, reader: ChangeReader) -> int:
    """Return the last offset that a reader has read and that is unchanged in the log.

    A leader epoch has one leader, which writes each offset once: offsets are unchanged up to the last one in the log
    with the epoch that was read last, or an earlier one.
    """
    if reader.offset < log.start_offset:
        return reader.offset
    batch = log.batch_at(reader.offset)
    if batch is not None and batch["partition_leader_epoch"][0] == reader.epoch:
        return reader.offset
    return min(reader.offset, log.last_offset_of(reader.epoch))
