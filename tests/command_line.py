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


@pytest.fixture
def kraftlog_command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run ``kraftlog`` with arguments; returns code, output and errors."""

    def run(*arguments: object, cwd: Path | None = None) -> Done:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        before = Path.cwd()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["kraftlog", *map(str, arguments)])
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

    return run
