"""A program in a terminal of its own: what it is typed, and what it has put on the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from codecs import getincrementaldecoder
from contextlib import suppress
from types import TracebackType
from typing import Self

LIMIT = 60.0
_COLUMNS = 200
# escape sequences and bells, which a screen does not show
_INVISIBLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x07")
# the interrupt is put back: whoever started the tests in the background may have had it ignored
_AS_LEADER = """
import fcntl, signal, sys, termios
signal.signal(signal.SIGINT, signal.default_int_handler)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
exec(sys.argv.pop(1))
"""


class PseudoTerminal:
    """Runs Python code with arguments, with a terminal as its input, output and controlling terminal."""

    def __init__(
        self, code: str, *arguments: str, environment: dict[str, str] | None = None, columns: int = _COLUMNS
    ) -> None:
        self._master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        variables = {**os.environ, "TERM": "dumb", "INPUTRC": os.devnull, **(environment or {})}
        variables.pop("COLUMNS", None)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AS_LEADER, code, *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            env=variables,
        )
        os.close(terminal)
        self._unread = ""
        self._decoder = getincrementaldecoder("utf-8")("replace")  # a read may end within a character

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait(LIMIT)
        os.close(self._master)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def wait_for(self, text: str) -> str:
        """Return what appeared on the screen up to a text, and the text; what is behind it is for the next wait."""
        deadline = time.monotonic() + LIMIT
        while text not in self._unread:
            assert self._take(deadline - time.monotonic()), f"{text!r} did not appear; there was {self._unread!r}"
        found, _, self._unread = self._unread.partition(text)
        return found + text

    def rest(self) -> str:
        """Return what appears on the screen until the program has ended."""
        deadline = time.monotonic() + LIMIT
        while self._process.poll() is None and time.monotonic() < deadline:
            self._take(0.2)
        while self._take(0.1):
            pass
        found, self._unread = self._unread, ""
        return found

    def interrupt(self, text: str) -> None:
        """Press Ctrl-C until a text appears.

        Python's readline sees a signal only while it waits for a key, and misses one that comes just before.
        """
        deadline = time.monotonic() + LIMIT
        while text not in self._unread:
            assert time.monotonic() < deadline, f"{text!r} did not appear; there was {self._unread!r}"
            self.type("\x03")
            while text not in self._unread and self._take(1):
                pass
        self.wait_for(text)

    def end(self, key: str = "") -> int:
        """Press a key until the program has ended; return its exit code."""
        deadline = time.monotonic() + LIMIT
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError):  # it has just ended
                self.type(key)
            self._take(0.2)
        return self._process.wait(LIMIT)

    def _take(self, seconds: float) -> bool:
        """Take what has been put on the screen, within a time; whether there was anything."""
        ready, _, _ = select.select([self._master], [], [], max(0, seconds))
        data = self._read() if ready else b""
        self._unread = _INVISIBLE.sub("", self._unread + self._decoder.decode(data)).replace("\r\n", "\n")
        return bool(data)

    def _read(self) -> bytes:
        try:
            return os.read(self._master, 1 << 16)
        except OSError:  # what Linux says when the other side is closed
            return b""
