"""Partitions' folders in Kafka's own classes (``PartitionLogs.java``), in one JVM for many of them."""

from __future__ import annotations

import json
import select
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jvm import Jvm, Line

INDEX_INTERVAL = 150  # few bytes, so that small segments have entries
CONFIG = {
    "cleanup.policy": "compact,delete",
    "retention.ms": -1,
    "index.interval.bytes": INDEX_INTERVAL,
    "segment.index.bytes": 4096,
    "segment.bytes": 1 << 20,
    "file.delete.delay.ms": 60_000,
}
DEDUPE_BUFFER = 1 << 16  # bytes, for 2,700 keys


class PartitionLogs:
    """Kafka's ``UnifiedLog``, ``LogLoader`` and ``Cleaner``, which take steps and answer what these returned."""

    def __init__(self, java: Jvm, stderr: Path) -> None:
        self._stderr = stderr
        with stderr.open("w") as file:
            self._process = subprocess.Popen(
                java.command("PartitionLogs"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()  # type: ignore[union-attr]

    def send(self, *steps: Line) -> None:
        """Have steps done, without waiting for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"steps": steps}) + "\n")
        self._process.stdin.flush()

    def is_done(self) -> bool:
        """Whether there is an answer to what was sent."""
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def answers(self) -> list[Any]:
        """Wait for what was sent; an answer is an object with ``error`` where Kafka raised."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"PartitionLogs ended: {self._stderr.read_text()[-2000:]}"
        return list(json.loads(line))

    def do(self, *steps: Line) -> list[Any]:
        """Have steps done that Kafka must accept."""
        self.send(*steps)
        answers = self.answers()
        for step, answer in zip(steps, answers, strict=True):
            assert not (isinstance(answer, dict) and "error" in answer), (step, answer)
        return answers

    def attempt(self, *steps: Line) -> list[Any]:
        """Have steps done that Kafka may refuse."""
        self.send(*steps)
        return self.answers()


def opening(
    folder: Path, *, start: int = 0, recovery_point: int = 0, is_clean: bool = False, config: Line | None = None
) -> Line:
    """Return the step that loads a log as a broker does when it starts."""
    return {
        "do": "open",
        "folder": str(folder),
        "start": start,
        "recovery_point": recovery_point,
        "is_clean": is_clean,
        "config": CONFIG | (config or {}),
    }


def cleaning(
    folder: Path, now: int, *, dirty: int = 0, end: int | None = None, buffer: int = DEDUPE_BUFFER, load: float = 0.9
) -> Line:
    """Return the step that cleans a log up to an offset, or all of it that can be cleaned."""
    return {
        "do": "clean",
        "folder": str(folder),
        "dirty": dirty,
        "end": end,
        "now": now,
        "buffer": buffer,
        "load": load,
    }
