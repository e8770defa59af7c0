"""Drivers that die at a chosen moment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHANGES = ("fsync", "replace", "unlink", "mkdir", "rmdir", "ftruncate")  # what alters a log directory, besides writes


class Crash(BaseException):
    """Nothing is done any more; no handler of errors gets to see it."""


class Crashes:
    """Counts changes; ``left`` of them are still allowed, all when it is None."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        for name in CHANGES:
            patch.setattr(os, name, self._counted(name, getattr(os, name)))

    def _counted(self, name: str, change: Any) -> Any:
        def counted(*arguments: Any, **options: Any) -> Any:
            if self.left == 0:
                raise Crash
            if self.left is not None:
                self.left -= 1
            return None if name == "fsync" else change(*arguments, **options)  # the test waits for no disk

        return counted

    @contextmanager
    def after(self, changes: int | None) -> Iterator[None]:
        """Die after so many changes, if the block makes as many."""
        self.left = changes
        try:
            yield
        except Crash:
            pass
        finally:
            self.left = None
