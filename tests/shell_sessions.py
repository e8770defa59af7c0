"""Sessions of the shell on images of the golden log, of which Kafka says what is in them."""

from __future__ import annotations

import io

from image_tables import known_image
from kraftlog.cli.shell_commands import run_line
from kraftlog.cli.shell_session import Session


class Shell:
    """A session, and what it has printed."""

    def __init__(self, *, width: int | None = None) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.session = Session(known_image, self.out, self.err, width=lambda: width)

    def __call__(self, *lines: str) -> list[str]:
        """Run command lines, which must succeed; return the lines of their output."""
        printed = self.run(*lines)
        assert printed[1] == []
        return printed[0]

    def run(self, *lines: str) -> tuple[list[str], list[str]]:
        """Run command lines; return the lines of output and of errors."""
        for stream in (self.out, self.err):
            stream.seek(0)
            stream.truncate()
        for line in lines:
            run_line(self.session, line)
        return self.out.getvalue().splitlines(), self.err.getvalue().splitlines()
