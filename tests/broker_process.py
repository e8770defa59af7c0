"""``kraftlog broker`` as a process of its own, which can be killed and started again at the same address."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Self

LIMIT = 60


class BrokerProcess:
    """A process that runs inside ``with``, and is killed at the end unless it was closed.

    Parameters
    ----------
    path : Path
        The log directory.
    *words : str
        Options of the command.

    Attributes
    ----------
    bootstrap_servers : str
    errors : str
        What processes that have ended wrote to standard error.
    """

    def __init__(self, path: Path, *words: str) -> None:
        self._path = path
        self._words = words
        self._ready_file = path.with_name(f"{path.name}.ready")
        self._process: subprocess.Popen[str] | None = None
        self.bootstrap_servers = "127.0.0.1:0"
        self.errors = ""

    def start(self) -> None:
        """Start the process, and wait until clients can connect."""
        self._ready_file.unlink(missing_ok=True)
        port = self.bootstrap_servers.rpartition(":")[2]
        command = [sys.executable, "-m", "kraftlog", "broker", str(self._path), "--port", port]
        command += ["--ready-file", str(self._ready_file), *self._words]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until = monotonic() + LIMIT
        while not self._ready_file.exists():
            assert self._process.poll() is None, self._process.communicate()
            assert monotonic() < until
            sleep(0.02)
        self.bootstrap_servers = self._ready_file.read_text().strip()

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End the process at once, by SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None and not self._process.stderr.closed:
            self.errors += self._process.communicate()[1]

    def close(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """End the process in order, by a signal; return its code, output and errors."""
        assert self._process is not None
        self._process.send_signal(number)
        output, errors = self._process.communicate(timeout=LIMIT)
        self.errors += errors
        return self._process.returncode, output, errors

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
