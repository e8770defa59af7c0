"""Where the code asks for a sync."""

from __future__ import annotations

import linecache
import sys
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import kraftlog

_PACKAGE = f"{Path(kraftlog.__file__).parent}/"
_STEPS = f"{_PACKAGE}disk/writing.py"
NOT_IN_KRAFTLOG = "a test"
_TOGETHER = f"{_PACKAGE}disk/durable.py"


def call_site() -> str:
    """Return which line of kraftlog asked for the step that the disk is asked for.

    Of a helper in ``disk/durable.py`` it is the helper's own line and the one that called it, since each use is there
    for a reason of its own.
    """
    inner = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name == _TOGETHER:
            inner = inner or f"{_label(frame.f_code, frame.f_lineno)} < "
        elif name.startswith(_PACKAGE) and name != _STEPS:
            return inner + _label(frame.f_code, frame.f_lineno)
        frame = frame.f_back
    return inner + NOT_IN_KRAFTLOG


@cache
def _label(code: CodeType, line: int) -> str:
    text = linecache.getline(code.co_filename, line).partition("  #")[0].strip()
    return f"{code.co_filename.removeprefix(_PACKAGE)} {code.co_qualname}: {text}"
