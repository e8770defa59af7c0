"""What the word before the cursor may become."""

from __future__ import annotations

from kraftlog.cli.shell_commands import COMMANDS, COMMANDS_THEMSELVES, PATHS
from kraftlog.cli.shell_paths import IMAGE
from kraftlog.cli.shell_session import Session
from kraftlog.cli.shell_words import Word, escaped, split_words
from kraftlog.metadata.tree.nodes import Directory


def completions(session: Session, line: str) -> tuple[int, list[str]]:
    """Return where the last word of a line begins, and what it may become.

    Each begins with what has been typed. A word that is finished ends in a space, a directory in a slash.
    """
    words = split_words(line)
    last = words[-1]
    if last.is_escaping:
        return last.start, []
    if len(words) == 1:
        return last.start, _commands(last)
    command = COMMANDS.get(words[0].text)
    if command is None or len(words) - 1 > command.most:
        return last.start, []
    if command.takes == COMMANDS_THEMSELVES:
        return last.start, _commands(last)
    return last.start, _paths(session, last) if command.takes == PATHS else []


def _commands(word: Word) -> list[str]:
    names = [name for name in COMMANDS if name.startswith(word.text)]
    return [f"{word.raw}{name[len(word.text) :]}{word.quote} " for name in names]


def _paths(session: Session, word: Word) -> list[str]:
    directory, prefix = _directory(session, word.text)
    if directory is None:
        return []
    found = []
    for name in directory.names:
        if name.startswith(prefix):
            rest = escaped(name[len(prefix) :], word.quote)
            is_directory = isinstance(directory.child(name), Directory)
            found.append(f"{word.raw}{rest}{'/' if is_directory else f'{word.quote} '}")
    return found


def _directory(session: Session, text: str) -> tuple[Directory | None, str]:
    """Return the directory whose names may complete a path, and what has been typed of the name.

    The name may have slashes in it; and at the root, when no name there begins so, those of ``/image`` are meant.
    """
    parts = text.split("/")
    for count in range(len(parts) - 1, -1, -1):
        prefix = "/".join(parts[count:])
        above = "/".join(parts[:count]) or ("/" if count and text.startswith("/") else ".")
        for place in session.places(escaped(above)):
            directory = place.node
            if isinstance(directory, Directory) and any(name.startswith(prefix) for name in directory.names):
                return directory, prefix
            if directory is session.root:
                image = session.root.child(IMAGE)
                return image if isinstance(image, Directory) else None, prefix
    return None, ""
