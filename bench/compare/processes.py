"""Programs of other implementations: a process for each piece of work, that stays alive between the rounds.

They are compiled into ``build/bench`` when they are first needed, with the versions of libraries that the files beside
them say, from the registries of their languages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rounds import Contender

SOURCES = Path(__file__).resolve().parent
TARGETS = SOURCES.parent.parent / "build" / "bench"
JAVA_OPTIONS = ["-XX:+UseSerialGC", "-Xms3g", "-Xmx3g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
LARGE_BYTES, MOST_WARM_UPS = 200_000_000, 100
CPU_CLOCK_OF_PROCESS = 2  # of a process id, as clock_getcpuclockid makes it on Linux


@dataclass(frozen=True)
class Program:
    """One way to run pieces of work; ``build`` returns how it is started.

    Attributes
    ----------
    tools : tuple of str
        Commands that it needs.
    pinned : tuple of str
        Which file has the version of its library, and how.
    warm_ups : int
        How often a piece of work is done on a large file before it is timed; on a small one as often as makes as much.
    """

    name: str
    tools: tuple[str, ...]
    build: Callable[[], list[str]]
    pinned: tuple[str, str]
    warm_ups: int = 1

    def version(self) -> str:
        """Return that of the library that does the work, from the file that pins it."""
        file, pattern = self.pinned
        found = re.search(pattern, (SOURCES / file).read_text())
        assert found
        return found[1]

    def missing(self) -> str | None:
        """Say why it cannot be had."""
        absent = [tool for tool in self.tools if shutil.which(tool) is None]
        if absent:
            return f"{absent[0]} is not on the PATH"
        try:
            self.build()
        except NotBuiltError as error:
            return str(error)
        return None


class NotBuiltError(Exception):
    """A program could not be compiled."""


@cache
def _java_class_path() -> str:
    target = TARGETS / "java"
    _run(["mvn", "-q", "-B", "-f", str(SOURCES / "java" / "pom.xml"), f"-Dtarget={target}", "compile"])
    return f"{target / 'classes'}{os.pathsep}{(target / 'classpath').read_text()}"


def _java(main: str) -> list[str]:
    return ["java", *JAVA_OPTIONS, "-cp", _java_class_path(), main]


@cache
def _rust() -> list[str]:
    manifest, target = SOURCES / "rust" / "Cargo.toml", TARGETS / "rust"
    options = ["--quiet", "--release", "--locked", "--target-dir", str(target)]
    _run(["cargo", "build", *options, "--manifest-path", str(manifest)])
    return [str(target / "release" / "records")]


@cache
def _go() -> list[str]:
    target = TARGETS / "go" / "records"
    _run(["go", "build", "-buildvcs=false", "-o", str(target), "."], SOURCES / "go")
    return ["env", "GOMAXPROCS=1", str(target)]


def _run(command: list[str], folder: Path | None = None) -> None:
    built = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if built.returncode:
        said = (built.stdout + built.stderr).strip().splitlines() or [f"exit {built.returncode}"]
        raise NotBuiltError(f"{command[0]} failed: {said[-1]}")


JAVA, RUST, GO = "java", "rust", "go"
KAFKA_VERSION = ("java/pom.xml", "<kafka.version>(.*)</kafka.version>")
JAVA_TOOLS = ("mvn", "java", "javac")
RECORDS = {
    JAVA: Program("Kafka's Java", JAVA_TOOLS, lambda: _java("Records"), KAFKA_VERSION, warm_ups=10),
    RUST: Program("Rust kafka-protocol", ("cargo",), _rust, ("rust/Cargo.toml", r'kafka-protocol = .*"=([^"]*)"')),
    GO: Program("Go kmsg", ("go",), _go, ("go/go.mod", r"franz-go v(\S+)")),
}
TOPICS = Program("Kafka's Java", JAVA_TOOLS, lambda: _java("InternalTopics"), KAFKA_VERSION, warm_ups=10)
CONSUMER = Program("Kafka's consumer", JAVA_TOOLS, lambda: _java("Consumed"), KAFKA_VERSION, warm_ups=5)


def cpu_clock(process_id: int) -> Callable[[], float]:
    """Return a clock of the CPU time of all threads of a process."""
    clock = (~process_id << 3) | CPU_CLOCK_OF_PROCESS
    return lambda: time.clock_gettime(clock)


class Peers:
    """Those that were asked for and can be had; processes end with ``close``. ``are_warm`` when they warm up.

    Attributes
    ----------
    names : list of str
        Of ``NAMES``.
    left_out : dict
        Why others are not there.
    """

    NAMES = (JAVA, RUST, GO, "kafka-python", "pyarrow")

    def __init__(self, asked: Iterable[str], *, are_warm: bool = True) -> None:
        self._are_warm = are_warm
        self.left_out = {}
        for name in asked:
            if name in RECORDS and (why := RECORDS[name].missing()):
                self.left_out[RECORDS[name].name] = why
        self.names = [n for n in asked if n not in RECORDS or RECORDS[n].name not in self.left_out]
        self._processes: list[subprocess.Popen[str]] = []

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def contender(
        self,
        name: str,
        program: Program,
        work: str,
        file: Path,
        records: int,
        size: int,
        sums: Sequence[int] | None,
        times: int = 1,
    ) -> Contender:
        """Return a contender that does a piece of work on a file, and must find ``sums`` in it, if given.

        What takes a moment only is done several times in a run, so that passing the word counts for nothing.
        """
        warm_ups = min(program.warm_ups * max(1, LARGE_BYTES // size), MOST_WARM_UPS) if self._are_warm else 0
        command = [*program.build(), work, str(file), str(warm_ups)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._processes.append(process)
        assert process.stdin
        assert process.stdout
        given, answers = process.stdin, process.stdout
        if answers.readline() != "ready\n":
            raise RuntimeError(f"{name} ended before it was ready to do {work}")

        def run() -> int:
            given.write(f"{times}\n")
            given.flush()
            found = [int(word) for word in answers.readline().split()]
            if sums is not None and found != list(sums):
                raise AssertionError(f"{name}: {found}, not {list(sums)}")
            return times * found[0]

        return Contender(name, run, times * records, times * size, cpu_clock=cpu_clock(process.pid))

    def on_topic(
        self, name: str, work: str, folder: Path, records: int, sums: Sequence[int] | None = None
    ) -> Contender:
        """Return a contender of Kafka's Java on the only segment of an internal topic."""
        segment = folder / f"{0:020d}.log"
        return self.contender(name, TOPICS, work, segment, records, segment.stat().st_size, sums)

    def versions(self) -> dict[str, str]:
        """Return the versions of those that are programs."""
        return {RECORDS[name].name: RECORDS[name].version() for name in self.names if name in RECORDS}

    def close(self) -> None:
        """End the processes, before those of the next log begin."""
        for process in self._processes:
            process.communicate()
        self._processes.clear()
