"""Faults of metadata logs and their snapshots that reading their records does not show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.metadata_log.batches import Batches
from kraftlog.read.log_pass import Progress
from kraftlog.read.metadata_decisions import SNAPSHOT
from kraftlog.read.metadata_scan import MetadataScan
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.read.segment_reader import located

UNFINISHED = "incomplete_snapshot"


def metadata_faults(segments: Iterable[Segment], on_progress: Progress | None = None) -> Iterator[Fault]:
    """Return misplaced markers, missing offsets and unfinished snapshots of the metadata logs among segments."""
    for group in by_partition(segments):
        if is_metadata(group[0]):
            faults: list[Fault] = []
            batches = Batches()
            for _ in MetadataScan(group, faults, observe=batches.see, on_progress=on_progress).found():
                yield from faults
                faults.clear()
            if group[0].state == SNAPSHOT:
                yield from unfinished(group[0], batches)


def unfinished(snapshot: Segment, batches: Batches) -> list[Fault]:
    """Return a fault for a snapshot that does not begin with its header and end with its footer."""
    if batches.are_whole_snapshot:
        return []
    message = "it does not begin with a snapshot's header and end with its footer: a part is missing"
    return [located(snapshot, Fault(UNFINISHED, message))]
