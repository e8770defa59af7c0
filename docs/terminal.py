"""Draws docs/terminal.svg: what the tasks of the README look like in a terminal, from real output."""

from __future__ import annotations

import io
import os
import pty
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).parent / "terminal.svg"
COLUMNS = 100
COMMANDS = (
    "kraftlog sample sample",
    "kraftlog topics sample/broker --columns topic,partitions,records,size_in_bytes,health",
    "kraftlog records sample/codecs -t codec-lz4 -c 3",
    "kraftlog verify sample/damaged --columns position,size_in_bytes,error",
    "kraftlog why sample/broker -t orders",
)
_FORMAT = """<svg viewBox="0 0 {terminal_width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, monospace; line-height: {line_height}px; }}
{styles}
</style>
<defs>{lines}</defs>
<rect fill="#1b1b1b" width="{terminal_width}" height="{height}" rx="8"/>
<g transform="translate(9, 9)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def outputs() -> list[tuple[str, str]]:
    """Return each command with what it prints on a terminal, but for the progress bar of a slow machine."""
    program = Path(sys.executable).parent / "kraftlog"
    with tempfile.TemporaryDirectory() as folder:
        return [(command, _printed([str(program), *_arguments(command)], folder)) for command in COMMANDS]


def _arguments(command: str) -> list[str]:
    _, name, *arguments = shlex.split(command)
    return [name, *arguments, *(["--no-progress"] if name != "sample" else [])]


def _printed(arguments: list[str], folder: str) -> str:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "PAGER": "", "KRAFTLOG_PAGER": ""}
    process = subprocess.Popen(arguments, cwd=folder, env=environment, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    found = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # Linux says so when the other side is closed
            break
        if not piece:
            break
        found += piece
    os.close(ours)
    process.wait()
    return found.decode().replace("\r\n", "\n")


def picture() -> str:
    """Return the picture."""
    console = Console(record=True, width=COLUMNS + 4, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for command, printed in outputs():
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text.from_ansi(printed.rstrip()))
        console.print()
    return console.export_svg(title="", theme=MONOKAI, code_format=_FORMAT, unique_id="kraftlog")


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
