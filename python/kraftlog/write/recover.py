"""Repair of log directories: what Kafka's recovery after an unclean shutdown does, and nothing that loses records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa

from kraftlog import schema
from kraftlog.disk import durable
from kraftlog.disk.lock import lock_log_directories
from kraftlog.layout import names
from kraftlog.layout.discover import Segment, discover
from kraftlog.read.partitions import by_partition
from kraftlog.write.recovery_action import Action, RecoverOptions
from kraftlog.write.recovery_plan import RecoveryPlan


def recover(segments: list[Segment], options: RecoverOptions) -> Iterator[tuple[Segment, Action]]:
    """Cut torn tails and rebuild index files and producer snapshots, or say what there is to do.

    Parameters
    ----------
    segments : list of Segment
        Live segments, all of each partition, in their order.
    options : RecoverOptions
        Unless they say ``write``, nothing is written and nothing locked.

    Returns
    -------
    iterator of (Segment, Action)
        The first segment of the partition, and what is done with a file; with ``write`` it has been done. Removed files
        are renamed to ``.deleted``, as Kafka does; it deletes them when it starts.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another writer holds the lock of a log directory; nothing has been written then.
    """
    with ExitStack() as locks:
        if options.write:
            folders = sorted({segment.local_path.parent for segment in segments if not segment.state})
            locks.enter_context(lock_log_directories(folders))
            segments = discover(folders).segments if folders else []  # as they are now that nobody else writes
        for group in by_partition(segment for segment in segments if not segment.state):
            for action in RecoveryPlan(group, options).actions():
                if options.write:
                    _do(action)
                yield group[0], replace(action, data=b"")  # whoever collects actions need not hold files


def _do(action: Action) -> None:
    if action.action == "write":
        durable.write_file(action.path, action.data)
    elif action.action == "cut":
        durable.cut_file(action.path, action.size_after or 0)
    elif action.action == "remove" and action.path.name.endswith(durable.UNFINISHED):
        durable.delete_file(action.path)
    elif action.action == "remove":
        durable.set_aside(action.path)


def file_of(action: Action) -> str:
    """Return folder and file name of what an action is about."""
    return names.printable(f"{action.path.parent.name}/{action.path.name}")


def recovery_table(done: Iterable[tuple[Segment, Action]]) -> pa.Table:
    """Return actions as rows of the table ``recovery``."""
    rows = [
        {
            "topic": segment.topic,
            "partition": segment.partition,
            "file": file_of(action),
            "action": action.action,
            "size_before": action.size_before,
            "size_after": action.size_after,
            "reason": action.reason,
        }
        for segment, action in done
    ]
    return pa.Table.from_pylist(rows, schema=schema.RECOVERY.select())
