"""Start of the command line."""

from __future__ import annotations

import start

from . import common


class Start:
    params = (list(start.COMMANDS),)
    param_names = ("command",)

    def track_cpu(self, command: str) -> float:
        """CPU seconds of a process that runs a command on a small directory."""
        return start.cpu_seconds(command, 1 + common.REPEATS)

    track_cpu.unit = "s"
