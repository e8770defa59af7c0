"""Where the code asks for a sync."""

from __future__ import annotations

import linecache
import sys
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import kraftlog

_PACKAGE = f"{Path(kraftlog.__file__).parent}/"
_STEPS = "disk/writing.py"
NOT_IN_KRAFTLOG = "a test"
_TOGETHER = "disk/durable.py"
_FOR_OTHERS = {  # which wait for the disk for many callers, each for a reason of its own
    "write/active_segment.py ActiveSegment.sync",
    "write/partition_log.py PartitionLog._sync",
    "write/partition_log.py PartitionLog.sync",
    "write/partition_log.py PartitionLog._finish_segment",
    "log_store/partition.py Partition.sync",
    "log_store/transaction_coordinator.py TransactionCoordinator._sync",
}


def call_site() -> str:
    """Return which line of kraftlog asked for the step that the disk is asked for.

    Of a helper in ``disk/durable.py`` it is the helper's own line and the one that called it, since each use is there
    for a reason of its own. Methods that wait for the disk for others are passed over.
    """
    inner = passed = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_PACKAGE):
            name = name.removeprefix(_PACKAGE)
            if name == _TOGETHER:
                inner = inner or f"{_label(frame.f_code, frame.f_lineno)} < "
            elif not inner and f"{name} {frame.f_code.co_qualname}" in _FOR_OTHERS:
                passed = passed or _label(frame.f_code, frame.f_lineno)
            elif name != _STEPS:
                return inner + _label(frame.f_code, frame.f_lineno)
        frame = frame.f_back
    return inner + (passed or NOT_IN_KRAFTLOG)


@cache
def _label(code: CodeType, line: int) -> str:
    """Return file, function and text of a line, with a number where the function has others that read the same."""
    lines = [_text(code.co_filename, each) for each in range(code.co_firstlineno, line + 1)]
    same = lines.count(lines[-1])
    where = code.co_filename.removeprefix(_PACKAGE)
    return f"{where} {code.co_qualname}: {lines[-1]}{f' ({same})' if same > 1 else ''}"


def _text(file: str, line: int) -> str:
    return linecache.getline(file, line).partition("  #")[0].strip()
