"""The shell at a terminal: lines edited and completed by readline, where Python has it.

Python on macOS often has libedit in its place, which takes other settings for completion and has its own form of
history files; the shell's history is plain text, a command a line, for both.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from kraftlog.cli.shell_commands import run_line
from kraftlog.cli.shell_completion import completions
from kraftlog.cli.shell_session import Session

WELCOME = "[ kraftlog shell ] help lists the commands, Ctrl-D leaves."
_WORDS_END_AT = " \t\n"


def interact(session: Session, history_file: Path | None) -> None:
    """Read commands and run them until the user leaves."""
    readline = _readline()
    earlier = _read_history(history_file)
    session.history += earlier
    if readline is not None:
        _set_up(readline, session, earlier)
    session.print(WELCOME)
    session.flush()
    try:
        _loop(session)
    finally:
        if history_file is not None:
            _append_history(history_file, session.history[len(earlier) :])


def _loop(session: Session) -> None:
    while not session.is_done:
        try:
            run_line(session, input(session.prompt))
        except KeyboardInterrupt:
            session.print("^C")
            session.flush()
        except EOFError:
            session.print("")
            return


def _readline() -> ModuleType | None:
    try:
        import readline
    except ImportError:  # Python can be built without it
        return None
    return readline


def _set_up(readline: ModuleType, session: Session, history: Sequence[str]) -> None:
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    readline.set_completer_delims(_WORDS_END_AT)
    readline.set_completer(_Completer(readline, session))
    readline.clear_history()
    for line in history:
        readline.add_history(line)


class _Completer:
    """Calls ``completions`` for readline, which asks for one after the other."""

    def __init__(self, readline: ModuleType, session: Session) -> None:
        self._readline = readline
        self._session = session
        self._found: list[str] = []

    def __call__(self, _: str, index: int) -> str | None:
        if index == 0:
            begin, end = self._readline.get_begidx(), self._readline.get_endidx()
            start, found = completions(self._session, self._readline.get_line_buffer()[:end])
            # readline takes what is behind the last space for the word, though it may have spaces
            self._found = [word[begin - start :] for word in found]
        return self._found[index] if index < len(self._found) else None


def _read_history(path: Path | None) -> list[str]:
    if path is None or not path.exists():
        return []
    return [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line]


def _append_history(path: Path, lines: Sequence[str]) -> None:
    """Add commands to a history file, which only its owner may read."""
    with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
        file.writelines(f"{line}\n" for line in lines)
