"""Paths in JSON documents, and the values at these paths."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from kraftlog.errors import KraftlogError

_STEP = re.compile(
    r"""
      \.(?P<name>[^.\[\]='"<>!]+)
    | \[(?P<index>-?[0-9]+)\]
    | \['(?P<single>[^']*)'\]
    | \["(?P<double>[^"]*)"\]
    | \[(?P<every>\*)\]
    """,
    re.VERBOSE,
)
_OPERATOR = re.compile(r" *(>=|<=|!=|=|>|<) *")
_EVERY = "*"


class _Every:
    """All items of an array, or values of an object."""


EVERY = _Every()
Step = str | int | _Every


class JsonPath:
    """A path from the top of a JSON document.

    Names follow a dot; ``[3]`` and ``[-1]`` are items of an array, ``[*]`` and ``.*`` all items or values; ``['a.b']``
    is a name with any characters. A leading ``$`` is optional.

    Parameters
    ----------
    text : str

    Raises
    ------
    ValueError
        When the path is invalid.

    Examples
    --------
    >>> list(JsonPath("$.items[*].sku").values({"items": [{"sku": "a"}, {"sku": "b"}, {}]}))
    ['a', 'b']
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps, end = _steps(text)
        if end < len(text) or not self.steps:
            raise ValueError(
                f"JSON path {text!r}: expected names and indexes such as customer.id, items[0].sku, items[*].sku or"
                f" ['a.b'], found {text[end:]!r} at character {end}"
            )

    @classmethod
    def split(cls, text: str) -> tuple[JsonPath, str, str | None]:
        """Return the path before the first operator that is no part of it, the operator, and what follows.

        Operators are ``=``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``; spaces around the last five do not count. Without
        one, the operator is empty and nothing follows.

        Raises
        ------
        ValueError
            When there is no path.

        Examples
        --------
        >>> path, *rest = JsonPath.split("order.amount >= 100")
        >>> path.text, rest
        ('order.amount', ['>=', '100'])
        """
        _, end = _steps(text)
        if text[end : end + 1] == "=":
            return cls(text[:end]), "=", text[end + 1 :]
        found = _OPERATOR.match(text, len(text[:end].rstrip(" ")))
        if found and found[1] != "=":
            return cls(text[: found.start()]), found[1], text[found.end() :]
        return cls(text), "", None

    @property
    def last_name(self) -> str | None:
        """A name that every document with this path contains; None if the path has no name."""
        return next((step for step in reversed(self.steps) if isinstance(step, str)), None)

    def values(self, document: object) -> Iterator[object]:
        """Return the values at the path in a document of ``json.loads``."""
        yield from _values(document, self.steps)


def _steps(text: str) -> tuple[list[Step], int]:
    """Return the steps at the beginning of a text, and their end."""
    rest = text.removeprefix("$")
    shift = len(text) - len(rest)
    if rest and not rest.startswith((".", "[")) and not shift:
        rest, shift = "." + rest, -1
    steps: list[Step] = []
    at = 0
    while found := _STEP.match(rest, at):
        at = found.end()
        name = next((found[kind] for kind in ("name", "single", "double") if found[kind] is not None), None)
        if found["every"] or found["name"] == _EVERY:
            steps.append(EVERY)
        elif found["index"]:
            steps.append(int(found["index"]))
        else:
            steps.append(name or "")
    return steps, max(at + shift, 0)


def _values(document: object, steps: list[Step]) -> Iterator[object]:
    if not steps:
        yield document
        return
    step, rest = steps[0], steps[1:]
    found: list[object] = []
    if isinstance(step, _Every):
        found = document if isinstance(document, list) else list(document.values()) if _is_object(document) else []  # type: ignore[attr-defined]
    elif isinstance(step, int):
        if isinstance(document, list) and -len(document) <= step < len(document):
            found = [document[step]]
    elif isinstance(document, dict) and step in document:
        found = [document[step]]
    for value in found:
        yield from _values(value, rest)


def _is_object(document: object) -> bool:
    return isinstance(document, dict)


class NotJsonError(KraftlogError, ValueError):
    """A value is not a JSON document in UTF-8."""


def parse(value: bytes) -> object:
    """Return a JSON document; its numbers are ``Decimal``.

    Raises
    ------
    NotJsonError
        When it is not a JSON document.
    """
    try:
        return json.loads(value.decode(), parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse)
    except (ValueError, RecursionError, InvalidOperation) as error:
        raise NotJsonError(str(error)) from None


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def as_number(text: str) -> Decimal | None:
    """Return a JSON number from a text; None if it is not one."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and text.strip() == text and "_" not in text else None


def as_text(value: object) -> str | None:
    """Return a text unchanged, and a number, true, false or null as JSON; None for arrays and objects."""
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value) if value is None or isinstance(value, bool) else None
