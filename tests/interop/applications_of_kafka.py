"""Kafka Streams and MirrorMaker 2, each as a process."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jvm import QUICK_TO_START
from make import TOOL, class_path

HERE = Path(__file__).parent / "applications"
LIMIT = 60.0
LONGEST_WAIT = 120.0


@contextmanager
def running(artifact: str, main: str, *arguments: str, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a main class, or a source file, of an artifact of Kafka; a process that still runs is stopped at the end."""
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    command = ["java", *QUICK_TO_START, logging, "-cp", class_path(TOOL, artifact), main, *arguments]
    with (
        output.open("ab") as file,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file, stderr=file) as process,
    ):
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(LIMIT)
                except subprocess.TimeoutExpired:
                    process.kill()


def wait_until(is_done: Callable[[], bool]) -> None:
    """Wait for what the processes do."""
    deadline = time.monotonic() + LONGEST_WAIT
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.2)
