"""The command line, run as a user runs it, but within this process."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraftlog.cli import main


@dataclass
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def run_command(*arguments: object, cwd: Path | None = None, given: str = "") -> Done:
    """Run ``kraftlog`` with arguments and a text as its input."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    before = Path.cwd()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["kraftlog", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        os.chdir(cwd or before)
        try:
            main()
            code: object = 0
        except SystemExit as end:
            code = end.code
        finally:
            os.chdir(before)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return Done(int(code or 0), *texts)  # type: ignore[call-overload]


@pytest.fixture
def kraftlog_command() -> Callable[..., Done]:
    """Return what runs ``kraftlog`` with arguments; it returns code, output and errors."""
    return run_command
