"""The commands of the shell: what each does, and its page of the manual."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kraftlog.cli.shell_columns import columns
from kraftlog.cli.shell_paths import Place, is_glob
from kraftlog.cli.shell_session import Session
from kraftlog.cli.shell_words import Word, command_words
from kraftlog.errors import RecordError
from kraftlog.metadata.tree.nodes import Directory, File, Node

PATHS, COMMANDS_THEMSELVES, NOTHING = "paths", "commands", "nothing"
_END = "end"


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes
    ----------
    usage : str
    summary : str
    run : callable
        Takes the session and the words behind the command's name.
    least, most : int
        Words that it takes.
    takes : str
        What its words are: ``paths``, ``commands`` or ``nothing`` that could be completed.
    manual : str
    """

    usage: str
    summary: str
    run: Callable[[Session, Sequence[Word]], None]
    least: int = 0
    most: int = 1 << 30
    takes: str = PATHS
    manual: str = ""


def run_line(session: Session, line: str) -> None:
    """Run a command line; errors are printed by the session."""
    try:
        words = command_words(line)
    except ValueError as error:
        session.fail(f"kraftlog: {error}")
        return
    if not words:
        return
    session.history.append(line)
    name, given = words[0].text, words[1:]
    command = COMMANDS.get(name)
    if command is None:
        session.fail(f"{name}: unknown command. Type help to get a list of commands.")
    elif not command.least <= len(given) <= command.most:
        session.fail(f"{name}: too {'few' if len(given) < command.least else 'many'} arguments; usage: {command.usage}")
    else:
        try:
            command.run(session, given)
        except (RecordError, OSError, ValueError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            session.fail(f"{name}: {error}")
    session.flush()


def _cat(session: Session, words: Sequence[Word]) -> None:
    for word, place in _found(session, "cat", "No such file or directory.", words):
        if isinstance(place.node, File):
            session.print(place.node.read())
        else:
            session.fail(f"cat: {word.text}: Is a directory")


def _cd(session: Session, words: Sequence[Word]) -> None:
    if not words:
        session.working_directory = ()
        return
    for word, place in _found(session, "cd", "no such directory.", words):
        if isinstance(place.node, Directory):
            session.working_directory = place.names
        else:
            session.fail(f"cd: {word.text}: not a directory.")


def _find(session: Session, words: Sequence[Word]) -> None:
    for word, place in _found(session, "find", "no such file or directory.", words or [_here()]):
        for path in _below(place.path if is_glob(word.pattern) else word.text, place.node):
            session.print(path)


def _below(path: str, node: Node) -> Iterator[str]:
    yield path
    if isinstance(node, Directory):
        for name in node.names:
            child = node.child(name)
            if child is not None:
                yield from _below(f"{path.removesuffix('/')}/{name}", child)


def _ls(session: Session, words: Sequence[Word]) -> None:
    found = [place for _, place in _found(session, "ls", "no such file or directory.", words or [_here()])]
    files = [place.name for place in found if isinstance(place.node, File)]
    directories = [(place.name, place.node) for place in found if isinstance(place.node, Directory)]
    for line in columns(files, session.width()):
        session.print(line)
    is_first = not files
    for name, directory in directories:
        if not directory.names:
            continue
        if files or len(directories) > 1:
            session.print(f"{name}:" if is_first else f"\n{name}:")
            is_first = False
        for line in columns(directory.names, session.width()):
            session.print(line)


def _tree(session: Session, words: Sequence[Word]) -> None:
    for _, place in _found(session, "tree", "No such file or directory.", words or [_here()]):
        for line in _contents(place.node, ""):
            session.print(line)


def _contents(node: Node, indent: str) -> Iterator[str]:
    if isinstance(node, File):
        yield indent + node.read()
        return
    for name in node.names:
        yield f"{indent}{name}:"
        child = node.child(name)
        if child is not None:
            yield from _contents(child, f"{indent}  ")


def _here() -> Word:
    return Word(0, ".", ".", ".")


def _found(session: Session, name: str, missing: str, words: Sequence[Word]) -> Iterator[tuple[Word, Place]]:
    for word in words:
        places = session.places(word.pattern)
        if not places:
            session.fail(f"{name}: {word.text}: {missing}")
        yield from ((word, place) for place in places)


def _at(session: Session, words: Sequence[Word]) -> None:
    if words:
        text = words[0].text
        if text != _END and not (text.isascii() and text.isdigit()):
            raise ValueError(f"{text!r} is neither an offset nor {_END!r}")
        before = session.path
        session.go_to(None if text == _END else int(text))
        if session.path != before:
            session.fail(f"at: {before} is not there at this offset; the working directory is now {session.path}")
    session.print(session.provenance)


def _pwd(session: Session, _: Sequence[Word]) -> None:
    session.print(session.path)


def _history(session: Session, words: Sequence[Word]) -> None:
    count = len(session.history)
    if words:
        if not (words[0].text.isascii() and words[0].text.isdigit()):
            raise ValueError(f"{words[0].text!r} is not a number of commands")
        count = int(words[0].text)
    first = max(0, len(session.history) - count)
    for number, line in enumerate(session.history[first:], first + 1):
        session.print(f"{number:5d}  {line}")


def _exit(session: Session, _: Sequence[Word]) -> None:
    session.is_done = True


def _help(session: Session, _: Sequence[Word]) -> None:
    session.print("The metadata image of a Kafka cluster as directories and files. Commands:\n")
    for command in COMMANDS.values():
        session.print(f"  {command.usage:<18} {command.summary}")
    session.print("\nman COMMAND shows the help of one; TAB completes commands and paths; Ctrl-D leaves.")


def _man(session: Session, words: Sequence[Word]) -> None:
    command = COMMANDS.get(words[0].text)
    if command is None:
        raise ValueError(f"unknown command {words[0].text}. Type help to get a list of commands.")
    pages = [f"{command.usage}\n\n{command.summary}", command.manual, _PATHS_PAGE if command.takes == PATHS else ""]
    session.print("\n\n".join(page for page in pages if page))


_PATHS_PAGE = r"""Paths are those of kafka-metadata-shell: /image/topics/byName/orders/0 is partition 0 of orders. A
path whose first name is not in the root is looked up under /image: /topics is /image/topics.
Globs: * is any part of a name, ? a character, {a,b} one of these. Names with spaces or such characters are quoted,
'clientId(an app)', or have a backslash before each of them."""

COMMANDS = {
    "at": Command(
        *("at [OFFSET | end]", "Show the image at another offset.", _at, 0, 1, NOTHING),
        """Shows the cluster as it was when the record at OFFSET had been applied, and all before it; at the end of the
log with "end". Records of a metadata transaction are in the image from its end on, all at once, and never when it was
aborted: inside of one the image is that before it. Without an argument: the last record in the image that is shown.""",
    ),
    "cat": Command("cat PATH...", "Show the contents of files.", _cat, 1),
    "cd": Command("cd [PATH]", "Set the working directory; without PATH to the root.", _cd, 0, 1),
    "exit": Command("exit", "Leave the shell.", _exit, 0, 0, NOTHING),
    "find": Command("find [PATH...]", "List everything below directories.", _find),
    "help": Command("help", "List the commands.", _help, 0, 0, NOTHING),
    "history": Command("history [NUMBER]", "Show the last commands.", _history, 0, 1, NOTHING),
    "ls": Command("ls [PATH...]", "List files and the names in directories.", _ls),
    "man": Command("man COMMAND", "Show the manual of a command.", _man, 1, 1, COMMANDS_THEMSELVES),
    "pwd": Command("pwd", "Show the working directory.", _pwd, 0, 0, NOTHING),
    "quit": Command("quit", "Leave the shell.", _exit, 0, 0, NOTHING),
    "tree": Command("tree [PATH...]", "Show everything below directories, with contents.", _tree),
}
