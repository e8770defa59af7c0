"""Whether a metadata log ends inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kraftlog.codec.metadata_markers import BEGIN_TRANSACTION
from kraftlog.codec.options import NO_BOUND
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault


def ends_inside_transaction(segments: Sequence[Path], end: int) -> bool:
    """Whether the last marker of a metadata log is a Begin; misplaced markers do not count.

    Parameters
    ----------
    segments : sequence of Path
        The log files, in order; they are read backwards from the last one until a marker is found.
    end : int
        Byte position after the sound batches of the last one.

    Raises
    ------
    RecordError
        When a batch cannot be read.
    """
    if not segments:
        return False
    from kraftlog.codec.markers import api_key, scan_markers

    faults: list[Fault] = []
    for path in reversed(segments):
        last = None
        for block in scan_markers(disk().open(path), faults, end=end, strict=True):
            last = block.values[-1] if block.values else last
        if last is not None:
            return api_key(last) == BEGIN_TRANSACTION
        end = NO_BOUND
    return False
