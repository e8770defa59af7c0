"""Directories and files of the tree of a metadata image; children are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial


@dataclass(frozen=True)
class File:
    """A file.

    Attributes
    ----------
    read : callable
        Returns its text, one line as a rule, without a line break at its end.
    """

    read: Callable[[], str]


class Directory:
    """A directory.

    Parameters
    ----------
    make : callable
        Returns its children by name; called once, when they are first asked for.
    """

    def __init__(self, make: Callable[[], Mapping[str, Node]]) -> None:
        self._make = make

    @cached_property
    def _children(self) -> Mapping[str, Node]:
        return self._make()

    @cached_property
    def names(self) -> list[str]:
        """The names of the children, in Kafka's order."""
        return sorted(self._children, key=kafka_order)

    def child(self, name: str) -> Node | None:
        """Return a child; None where there is none of that name."""
        return self._children.get(name)


Node = File | Directory


def kafka_order(name: str) -> bytes:
    """Return a key that sorts names as Java compares strings: by UTF-16 units."""
    return name.encode("utf-16-be", "surrogatepass")


def text_file(text: str) -> File:
    """Return a file whose text is known."""
    return File(partial(str, text))


def directory_of(children: Mapping[str, Node]) -> Directory:
    """Return a directory whose children are known."""
    return Directory(lambda: children)
