"""Kafka's own readers of internal topics: a Java process for each piece of work, that stays alive between the rounds.

Maven compiles ``java/`` into ``build/bench/java`` when it is first needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from rounds import Contender

SOURCE = Path(__file__).resolve().parent / "java"
TARGET = SOURCE.parent.parent / "build" / "bench" / "java"
OPTIONS = ["-XX:+UseSerialGC", "-Xms2g", "-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
WARM_UPS = 10
METADATA_VALUES, METADATA, REPLAY = "metadata-values", "metadata", "replay"
COMMIT_VALUES, COMMITS = "commit-values", "commits"


def missing() -> str | None:
    """Say what Java needs that is not on this machine."""
    return next((f"{tool} is not on the PATH" for tool in ("mvn", "java", "javac") if shutil.which(tool) is None), None)


class Java:
    """Processes that wait for their turns; ended with ``close``."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []

    def contender(self, name: str, work: str, folder: Path, records: int, digest: int | None = None) -> Contender:
        """Return a contender that does a piece of work on a segment; it must find ``digest``, if given."""
        segment = folder / f"{0:020d}.log"
        command = ["java", *OPTIONS, "-cp", _class_path(), "InternalTopics", work, str(segment), str(WARM_UPS)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._processes.append(process)
        assert process.stdin
        assert process.stdout
        given, answers = process.stdin, process.stdout
        if answers.readline() != "ready\n":
            raise RuntimeError(f"Java ended before it was ready to do {work}")

        def run() -> int:
            given.write("\n")
            given.flush()
            count, found = (int(word) for word in answers.readline().split())
            assert digest in (None, found), f"{name}: {found}, not {digest}"
            return count

        return Contender(name, run, records, segment.stat().st_size)

    def close(self) -> None:
        """End all of them."""
        for process in self._processes:
            process.communicate()
        self._processes.clear()


@cache
def _class_path() -> str:
    maven = ["mvn", "-q", "-B", "-f", str(SOURCE / "pom.xml"), f"-Dtarget={TARGET}", "compile"]
    built = subprocess.run(maven, check=False, capture_output=True, text=True)
    if built.returncode:
        raise RuntimeError(f"Maven failed:\n{built.stdout}{built.stderr}")
    return f"{TARGET / 'classes'}{os.pathsep}{(TARGET / 'classpath').read_text()}"
