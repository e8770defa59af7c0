"""What a broker that starts on a log directory relies on, and does not read again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from known_reads import read_once

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import UNFINISHED
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.write.log_directory_state import LogDirectoryState
from kraftlog.write.recovery_action import Action, RecoverOptions
from kraftlog.write.recovery_plan import RecoveryPlan


def state_faults(folder: Path, *, is_closed: bool) -> list[str]:
    """Return what is wrong with the files of a partition that its recovery point says are on disk.

    Parameters
    ----------
    folder : Path
        Of the partition.
    is_closed : bool
        Whether all files are looked at, as after a close.
    """
    if disk().entry(folder) is None:
        return []
    beside = [folder.parent / entry.name for entry in disk().entries(folder.parent) if not entry.is_dir]
    read = partial(_faults, folder, is_closed=is_closed)
    return list(read_once(("state", is_closed), [folder, *beside], read))


def _faults(folder: Path, *, is_closed: bool) -> list[str]:
    state = LogDirectoryState.of(folder.parent)
    listed = PartitionFolder.of(folder)
    partition = (listed.topic or "", listed.partition or 0)
    point = state.recovery_points.get(partition, 0)
    found = []
    if listed.segments:
        plan = RecoveryPlan(listed, state, RecoverOptions(rebuild=True))
        ends = [segment.base_offset or 0 for segment in listed.segments[1:]]
        flushed = {
            (segment.base_offset or 0) for segment, end in zip(listed.segments, ends, strict=False) if end <= point
        }
        for action in plan.actions():
            stem = action.path.name.partition(".")[0]
            concerns = is_closed or (stem.isdigit() and int(stem) in flushed)
            if action.action != "keep" and concerns and not _is_harmless(action):
                found.append(f"{action.path.name}: {action.action}, {action.reason}")
    return found


def _is_harmless(action: Action) -> bool:
    """Whether it is about a file that all pass over, or a snapshot of where a segment would have begun."""
    return action.path.name.endswith(UNFINISHED) or action.reason == "has no segment"
