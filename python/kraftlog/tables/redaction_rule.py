"""Redaction rules: a field of a record, and its change."""

from __future__ import annotations

from dataclasses import dataclass

from kraftlog.tables.json_path import JsonPath, Step

NULL, HASH, MASK = HOW = ("null", "hash", "mask")
COLUMNS = KEY, VALUE, HEADER = ("key", "value", "header")

_EXPECTED = (
    "expected key=HOW, value=HOW, value.PATH=HOW, key.PATH=HOW or header.NAME=HOW, such as value.customer.email=hash,"
    f" with HOW one of {', '.join(HOW)}"
)


@dataclass(frozen=True)
class Rule:
    """A redaction rule.

    Attributes
    ----------
    column : {"key", "value", "header"}
    steps : tuple
        The steps of a JSON path, or the name of a header or any name. Empty for a whole key or value.
    how : {"null", "hash", "mask"}
    """

    column: str
    steps: tuple[Step, ...]
    how: str

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Return the rule of a text such as ``value.customer.email=hash``.

        Raises
        ------
        ValueError
            When it is not a rule.

        Examples
        --------
        >>> Rule.parse("value.items[0].card=mask")
        Rule(column='value', steps=('items', 0, 'card'), how='mask')
        """
        place, equals, how = text.rpartition("=")
        column = next((name for name in COLUMNS if place == name or place.startswith((f"{name}.", f"{name}["))), None)
        if not equals or column is None or how not in HOW:
            raise ValueError(f"redact {text!r}: {_EXPECTED}")
        rest = place[len(column) :]
        steps = tuple(JsonPath(rest).steps) if rest else ()
        if column == HEADER and (len(steps) != 1 or isinstance(steps[0], int)):
            raise ValueError(f"redact {text!r}: expected the name of a header, such as header.user or header['x.y']")
        return cls(column, steps, how)
