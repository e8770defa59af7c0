"""Java as the tests need it: the class path that Maven resolved once, then plain ``java`` runs with a limit each."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any, Self

from maven import run_maven

HERE = Path(__file__).parent
OLDEST_JAVA = 17
BROKER = "Node"
PROGRAMS = "Programs"
END = "\x1e"  # begins the line behind what a program prints, as Programs.java says
QUICK_TO_START = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

Line = dict[str, Any]


def missing() -> str | None:
    """Say why the tests cannot run on this machine, or None: they need Maven and a JDK, and nothing else."""
    if shutil.which("mvn") is None:
        return "mvn (Apache Maven) is not on the PATH"
    javac = _tool("javac")
    if javac is None or _tool("java") is None:
        return "no JDK: java or javac is neither in JAVA_HOME nor on the PATH"
    version = subprocess.run([javac, "-version"], check=False, capture_output=True, text=True, timeout=60)
    major = re.search(r"javac (\d+)", version.stdout + version.stderr)
    if major is None or int(major[1]) < OLDEST_JAVA:
        return f"the JDK is older than {OLDEST_JAVA}"
    return None


class Jvm:
    """Builds the clients below ``home`` and runs them, or any other main class of the class path.

    With ``kafka``, the class path of another release, all of these run with its classes. The process of ``run_client``
    ends with the block of ``with``. Processes that have the same ``home`` build once, and share what brokers load.
    """

    def __init__(self, home: Path, options: Sequence[str] = QUICK_TO_START, kafka: str | None = None) -> None:
        self.home = home
        self._options = options
        target, own = home / "target", home / "own.zip"
        with (home / "build.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            sources = [HERE / "pom.xml", *HERE.rglob("*.java")]
            if not own.exists() or own.stat().st_mtime < max(each.stat().st_mtime for each in sources):
                run_maven(HERE / "pom.xml", target, "compile")
                shutil.make_archive(str(home / "own"), "zip", target / "classes")  # no class of a folder is archived
        self._class_path = f"{own}{os.pathsep}{kafka or (target / 'classpath').read_text()}"
        self._archive = home / "classes.jsa"
        self._clients: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end_clients()

    def command(self, main: str, *arguments: str) -> list[str]:
        """Build a main class's command line: native libraries are unpacked below ``home``."""
        options = [*self._options, f"-Djava.io.tmpdir={self.home}", *self._class_data(main)]
        logging = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        return [str(_tool("java")), *options, *logging, "-cp", self._class_path, main, *arguments]

    def run(self, main: str, *arguments: str, lines: Iterable[Line] = (), limit: float = 120) -> list[str]:
        """Run a main class to its end, JSON lines in, the lines of its standard output back."""
        given = "".join(json.dumps(line) + "\n" for line in lines)
        done = subprocess.run(
            self.command(main, *arguments),
            check=False,
            input=given,
            capture_output=True,
            encoding="utf-8",
            timeout=limit,
        )
        assert done.returncode == 0, f"{main} failed:\n{done.stdout}{done.stderr}"
        return done.stdout.splitlines()

    def run_client(self, main: str, *arguments: str, lines: Iterable[Line] = (), limit: float = 120) -> list[str]:
        """Run one of the clients as ``run`` does, in a process that takes one after another."""
        clients = self._running_clients()
        request = {"main": main, "arguments": arguments, "lines": [json.dumps(line) for line in lines]}
        timer = Timer(limit, clients.kill)
        timer.start()
        try:
            assert clients.stdin is not None
            assert clients.stdout is not None
            clients.stdin.write(json.dumps(request) + "\n")
            clients.stdin.flush()
            printed = []
            for line in clients.stdout:
                if line.startswith(END):
                    error = json.loads(line.removeprefix(END)).get("error")
                    assert error is None, f"{main} failed:\n{''.join(printed)}{error}"
                    return [one.removesuffix("\n") for one in printed]
                printed.append(line)
        finally:
            timer.cancel()
        raise AssertionError(f"{main} ended, or took {limit:.0f} s:\n{''.join(printed)}{self._complaints.read_text()}")

    def _running_clients(self) -> subprocess.Popen[str]:
        if self._clients is None or self._clients.poll() is not None:
            self._end_clients()
            with self._complaints.open("w") as stderr:
                self._clients = subprocess.Popen(
                    self.command(PROGRAMS),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    encoding="utf-8",
                )
        return self._clients

    def _end_clients(self) -> None:
        if self._clients is not None:
            with self._clients as clients:
                clients.kill()
            self._clients = None

    @property
    def _complaints(self) -> Path:
        return self.home / f"clients-{os.getpid()}.err"

    @property
    def has_class_data(self) -> bool:
        """Whether a broker has left what it has loaded to all that follow: one that is killed does not.

        The header is written last: while it is missing, a JVM loads its classes itself.
        """
        return self._archive.exists()

    def _class_data(self, main: str) -> list[str]:
        """Return the options for class data sharing: the first broker leaves what it has loaded to all that follow."""
        if self.has_class_data:
            return [f"-XX:SharedArchiveFile={self._archive}", "-Xlog:cds*=off"]
        if main != BROKER:
            return []
        try:
            self._archive.with_suffix(".begun").touch(exist_ok=False)
        except FileExistsError:
            return []
        return [f"-XX:ArchiveClassesAtExit={self._archive}", "-Xlog:cds*=off"]


def _tool(name: str) -> str | None:
    """Find a JDK tool, in JAVA_HOME first, as Maven does."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(name, path=str(Path(home, "bin"))) if home else shutil.which(name)
