"""What a shell knows between two commands: the image that it shows, and the working directory in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TextIO

import pyarrow as pa

import kraftlog
from kraftlog.cli.shell_paths import Place, places
from kraftlog.metadata.tree.nodes import Directory
from kraftlog.metadata.tree.text import provenance_text
from kraftlog.metadata.tree.tree import image_tree

LOCAL = {"commitId": "unknown", "version": kraftlog.__version__}
_UNPRINTABLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)}


class Image(Protocol):
    """The records that a metadata image consists of."""

    def tables(self) -> dict[str, pa.Table]:
        """Return a table for each type of record."""


class ImageAt(Protocol):
    """An image, and the offset, leader epoch and timestamp of the last record in it."""

    @property
    def image(self) -> Image:
        """The image."""

    @property
    def offset(self) -> int:
        """Of the last record in the image."""

    @property
    def epoch(self) -> int:
        """Its leader epoch."""

    @property
    def timestamp(self) -> int:
        """Its time, in milliseconds."""


Load = Callable[[int | None], ImageAt]


class Session:
    """An image, a working directory, and where the output goes.

    Parameters
    ----------
    load : callable
        Returns the image at an offset; at the end of the log for None.
    out, err : text streams
    offset : int or None
        Of the image to begin with; None for the end of the log.
    show_secrets : bool
    width : callable
        Returns the columns of the terminal; None where output goes to no terminal.
    """

    def __init__(
        self,
        load: Load,
        out: TextIO,
        err: TextIO,
        *,
        offset: int | None = None,
        show_secrets: bool = False,
        width: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._load = load
        self._out = out
        self._err = err
        self._show_secrets = show_secrets
        self.width = width
        self.history: list[str] = []
        self.working_directory: tuple[str, ...] = ()
        self.failed = False
        self.is_done = False
        self.go_to(offset)

    def go_to(self, offset: int | None) -> None:
        """Show the image at an offset; at the end of the log for None.

        The working directory stays, or is the nearest one above it that the image has.
        """
        at = self._load(offset)
        self.offset = at.offset
        self.provenance = provenance_text(at.offset, at.epoch, at.timestamp)
        self.root: Directory = image_tree(
            at.image.tables(), at.offset, at.epoch, at.timestamp, local=LOCAL, show_secrets=self._show_secrets
        )
        while not self._has(self.working_directory):
            self.working_directory = self.working_directory[:-1]

    def _has(self, names: Sequence[str]) -> bool:
        node = self.root
        for name in names:
            child = node.child(name)
            if not isinstance(child, Directory):
                return False
            node = child
        return True

    @property
    def path(self) -> str:
        """The working directory's path."""
        return Place(self.working_directory, self.root).path

    @property
    def prompt(self) -> str:
        """What stands before the cursor."""
        return f"[ kraftlog @{self.offset} ] {printable(self.path)} >> "

    def places(self, pattern: str) -> list[Place]:
        """Return what a path or a glob names."""
        return places(self.root, self.working_directory, pattern)

    def print(self, text: str) -> None:
        """Print a line; on a terminal without what might be an instruction to it."""
        self._out.write(f"{printable(text) if self._out.isatty() else text}\n")

    def fail(self, message: str) -> None:
        """Say that a command, or a part of it, has failed."""
        self.failed = True
        self._out.flush()
        self._err.write(f"{printable(message)}\n")
        self._err.flush()

    def flush(self) -> None:
        """Write what has been printed."""
        self._out.flush()


def printable(text: str) -> str:
    r"""Return text with control characters, except tab and line break, escaped as in ``\x1b``."""
    return text.translate(_UNPRINTABLE)
