r"""Paths and globs in the tree of a metadata image.

Globs are those of Kafka's shell, each within one name: ``?`` is a character, ``*`` any number of them, ``{a,b}`` one of
these; ``\`` takes the meaning from what follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kraftlog.metadata.tree.nodes import Directory, Node

IMAGE = "image"


@dataclass(frozen=True)
class Place:
    """A node, and the names on the way to it from the root."""

    names: tuple[str, ...]
    node: Node

    @property
    def path(self) -> str:
        """The absolute path."""
        return "/" + "/".join(self.names)

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.names[-1] if self.names else "/"


@dataclass(frozen=True)
class Component:
    """A part of a path between slashes: a name, or a pattern when it is a glob."""

    name: str
    pattern: re.Pattern[str] | None = None

    def matches(self, name: str) -> bool:
        """Whether a name is meant."""
        return self.pattern.fullmatch(name) is not None if self.pattern else name == self.name


def places(root: Directory, working_directory: Sequence[str], path: str) -> list[Place]:
    """Return what a path, which may be a glob, names.

    A path whose first name is not in the root is looked up under ``/image``.

    Parameters
    ----------
    root : Directory
    working_directory : sequence of str
        Names on the way to it; where relative paths begin.
    path : str
        With a backslash before each character that has no meaning as a glob.
    """
    components = absolute_components(working_directory, path)
    found = list(_matches(root, components, ()))
    if found or not components or any(components[0].matches(name) for name in root.names):
        return found
    image = root.child(IMAGE)
    return list(_matches(image, components, (IMAGE,))) if image else []


def is_glob(path: str) -> bool:
    """Whether a path may name several places."""
    return any(component(part).pattern for part in path.split("/"))


def absolute_components(working_directory: Sequence[str], path: str) -> list[Component]:
    """Return the parts of a path from the root, ``.`` and ``..`` resolved."""
    components = [] if path.startswith("/") else [Component(name) for name in working_directory]
    for part in path.split("/"):
        if part == "..":
            del components[-1:]
        elif part not in ("", "."):
            components.append(component(part))
    return components


def component(glob: str) -> Component:
    """Return a part of a path; one that is malformed as a glob is a name."""
    pattern, name = "", ""
    has_meaning = is_group = False
    characters = iter(glob)
    for character in characters:
        if character == "\\":
            character = next(characters, "\\")
        elif character in "?*":
            has_meaning = True
            pattern += "." if character == "?" else ".*"
            continue
        elif character == "{" and is_group:
            return Component(glob)
        elif character == "{":
            has_meaning = is_group = True
            pattern += "(?:"
            continue
        elif character in ",}" and is_group:
            is_group = character == ","
            pattern += "|" if is_group else ")"
            continue
        pattern += re.escape(character)
        name += character
    if is_group:
        return Component(glob)
    return Component(glob, re.compile(pattern, re.DOTALL)) if has_meaning else Component(name)


def _matches(node: Node, components: Sequence[Component], names: tuple[str, ...]) -> Iterator[Place]:
    if not components:
        yield Place(names, node)
    elif not isinstance(node, Directory):
        return
    elif components[0].pattern is None:
        yield from _named(node, components, names)
    else:
        for name in node.names:
            child = node.child(name) if components[0].matches(name) else None
            if child is not None:
                yield from _matches(child, components[1:], (*names, name))


def _named(directory: Directory, components: Sequence[Component], names: tuple[str, ...]) -> Iterator[Place]:
    """Follow a name; since users and groups may have slashes in theirs, it may be more than one part of the path."""
    name = ""
    for count, part in enumerate(components, 1):
        if part.pattern is not None:
            return
        name = f"{name}/{part.name}" if name else part.name
        child = directory.child(name)
        found = list(_matches(child, components[count:], (*names, name))) if child is not None else []
        if found:
            yield from found
            return
