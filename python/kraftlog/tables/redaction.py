"""Redaction: keys, values, headers and JSON fields that are removed, hashed or masked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftlog.codec.filtered_batch import Fields
from kraftlog.stream import rows_of
from kraftlog.tables.digests import Digests
from kraftlog.tables.json_path import EVERY, Step
from kraftlog.tables.redaction_rule import HASH, HEADER, KEY, MASK, NULL, VALUE, Rule
from kraftlog.topics import names

if TYPE_CHECKING:
    from kraftlog.tables.redacted_columns import Documents

MASKED = "***"
LEAST_KEY_BYTES = 16


class Redaction:
    """Redacts records by rules.

    Parameters
    ----------
    rules : iterable of str
        Rules in the syntax of ``redaction_rule.Rule.parse``. All of them apply; rules for a whole value or key precede
        rules for its fields.
    key : bytes, optional
        HMAC key (SHA-256) for ``hash``, whose results are hexadecimal digits: equal keys, values and headers have equal
        hashes, and nobody without the key can find a value by guessing.

    Attributes
    ----------
    not_json : int
        Number of keys and values that were redacted as a whole, because they are not JSON and a rule has a path.

    Raises
    ------
    ValueError
        When a rule is invalid, or a key is missing or too short.

    Examples
    --------
    >>> redaction = Redaction(["value.email=mask", "header.user=null"])
    >>> redaction.record((b"k", b'{"id": 1.50, "email": "a@b.c"}', [(b"user", b"me")]))
    (b'k', b'{"id":1.50,"email":"***"}', [(b'user', None)])
    """

    def __init__(self, rules: Iterable[str], key: bytes | None = None) -> None:
        self._texts = names(rules) or []
        self._rules = [Rule.parse(text) for text in self._texts]
        if any(rule.how == HASH for rule in self._rules):
            if key is None:
                raise ValueError("redact: hash needs a key, so that nobody can find values by trying")
            if len(key) < LEAST_KEY_BYTES:
                raise ValueError(f"redact: expected a key of {LEAST_KEY_BYTES} bytes or more, found {len(key)}")
        self._key = key or b""
        self._digests = Digests(self._key)
        self._documents: dict[str, Documents] = {}
        self._of_keys, self._of_values = (self._side(column) for column in (KEY, VALUE))
        self._of_headers = [rule for rule in self._rules if rule.column == HEADER]
        self.not_json = 0

    def _side(self, column: str) -> Callable[[bytes | None], bytes | None]:
        """Return the change of keys, or of values."""
        rules = [rule for rule in self._rules if rule.column == column]
        whole = next((rule for rule in rules if not rule.steps), None)

        def side(data: bytes | None) -> bytes | None:
            if data is None or not rules:
                return data
            if whole is not None:
                return self._bytes(data, whole.how)
            return self._document(data, rules)

        return side

    def _change_of(self, column: str) -> Callable[[pa.Array], pa.Array] | None:
        """Return the change of a column of keys or values; None if there is none."""
        rules = [rule for rule in self._rules if rule.column == column]
        whole = next((rule for rule in rules if not rule.steps), None)
        if whole is not None:
            return partial(self._whole, how=whole.how)
        if not rules:
            return None
        if column not in self._documents:
            from kraftlog.tables.redacted_columns import Documents

            self._documents[column] = Documents(rules, MASKED, self._digests)
        return partial(self._documents[column].change, one=lambda data: self._document(data, rules))

    def _whole(self, values: pa.Array, how: str) -> pa.Array:
        if how == NULL:
            return pa.nulls(len(values), values.type)
        from kraftlog.tables.redacted_columns import hashed, masked

        return masked(values, MASKED.encode()) if how == MASK else hashed(values, self._digests)

    def __reduce__(self) -> tuple[type[Redaction], tuple[list[str], bytes | None]]:
        return Redaction, (self._texts, self._key or None)

    @classmethod
    def of(cls, rules: Iterable[str], key: bytes | None) -> Redaction | None:
        """Return the redaction for rules; None without rules.

        Raises
        ------
        ValueError
            As for the class; also when ``redact_key`` is given without redact rules.
        """
        if texts := names(rules):
            return cls(texts, key)
        if key is not None:
            raise ValueError("redact: there is a key, and no rule")
        return None

    @property
    def identity(self) -> list[str]:
        """The identity of the redaction, equal for equal results; for the key only a check value."""
        return [*self._texts, f"key {self._digest(b'kraftlog')[:8]}"]

    def record(self, fields: Fields) -> Fields:
        """Return the redacted key, value and headers of a record."""
        key, value, headers = fields
        return self._of_keys(key), self._of_values(value), self._headers(headers)

    def records(self, fields: list[Fields]) -> list[Fields]:
        """Return the redacted keys, values and headers of records; keys and values as whole columns."""
        keys, values = (self._all(name, [one[at] for one in fields]) for at, name in enumerate((KEY, VALUE)))
        return list(zip(keys, values, [self._headers(headers) for _, _, headers in fields], strict=True))

    def _all(self, column: str, contents: list[Any]) -> list[bytes | None]:
        """Return all redacted keys, or all redacted values."""
        change = self._change_of(column)
        return contents if change is None else change(pa.array(contents, pa.binary())).to_pylist()

    def _headers(self, headers: list[tuple[bytes, bytes | None]]) -> list[tuple[bytes, bytes | None]]:
        return [(name, self._header(name, content)) for name, content in headers] if self._of_headers else headers

    def rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with redacted columns ``key``, ``value`` and ``headers``, if present."""
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        for name in (KEY, VALUE):
            if name in columns and (change := self._change_of(name)) is not None:
                columns[name] = change(columns[name])
        if self._of_headers and "headers" in columns:
            from kraftlog.tables.redacted_columns import headers_of

            names = [None if rule.steps[0] is EVERY else str(rule.steps[0]) for rule in self._of_headers]
            changes = [partial(self._whole, how=rule.how) for rule in self._of_headers]
            columns["headers"] = headers_of(columns["headers"], names, changes)
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)

    def notes(self) -> list[str]:
        """Return the notes for readers of the redacted data."""
        if not self.not_json:
            return []
        many = f"{self.not_json:,} keys or values are no JSON, and were"
        what = "1 key or value is no JSON, and was" if self.not_json == 1 else many
        return [f"{what} redacted as a whole"]

    def stream(self, batches: Iterable[pa.RecordBatch], notes: list[str]) -> Iterator[pa.RecordBatch]:
        """Return redacted record batches, and add notes for readers; several streams may run at once."""
        counting = Redaction(self._texts, self._key or None)
        for batch in batches:
            yield rows_of(counting.rows(batch).columns, batch.schema, batch.num_rows)
        notes += counting.notes()

    def _header(self, name: bytes, content: bytes | None) -> bytes | None:
        for rule in self._of_headers:
            if rule.steps[0] is EVERY or str(rule.steps[0]).encode() == name:
                return None if content is None else self._bytes(content, rule.how)
        return content

    def _bytes(self, data: bytes, how: str) -> bytes | None:
        if how == NULL:
            return None
        return MASKED.encode() if how == MASK else self._digest(data).encode()

    def _digest(self, data: bytes) -> str:
        return self._digests.one(data)

    def _document(self, data: bytes, rules: list[Rule]) -> bytes | None:
        has_twins = False

        def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
            nonlocal has_twins
            made = dict(given)
            has_twins |= len(made) < len(given)  # of these only the last is looked at, so only that one may stay
            return made

        try:
            numbers = {"parse_float": _Number, "parse_int": _Number, "parse_constant": _refuse}
            document = json.loads(data.decode(), object_pairs_hook=pairs, **numbers)  # type: ignore[arg-type]
            changed = has_twins
            for rule in rules:
                document, found = self._replaced(document, rule.steps, rule.how)
                changed |= found
            return _text(document).encode() if changed else data
        except (ValueError, RecursionError):
            self.not_json += 1
            return self._bytes(data, min((rule.how for rule in rules), key=(NULL, MASK, HASH).index))

    def _replaced(self, document: Any, steps: tuple[Step, ...], how: str) -> tuple[Any, bool]:
        """Return a document with replaced values at a path, and whether the path exists."""
        if not steps:
            if document is None or how == NULL:
                return None, document is not None
            text = document if isinstance(document, str) else _text(document)
            return MASKED if how == MASK else self._digest(str(text).encode("utf-8", "surrogatepass")), True
        step, rest = steps[0], steps[1:]
        places: list[Any] = []
        if step is EVERY:
            places = list(document) if isinstance(document, dict) else []
            places = list(range(len(document))) if isinstance(document, list) else places
        elif isinstance(step, int):
            places = [step] if isinstance(document, list) and -len(document) <= step < len(document) else []
        elif isinstance(document, dict) and step in document:
            places = [step]
        changed = False
        for place in places:
            document[place], found = self._replaced(document[place], rest, how)
            changed |= found
        return document, changed


class _Number(str):
    """The original digits of a number."""


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _text(document: Any) -> str:
    """Return a document as text, with the original numbers."""
    if isinstance(document, _Number):
        return str(document)
    if isinstance(document, str):
        text = json.dumps(document, ensure_ascii=False)
        return text if text.isascii() or not any("\ud800" <= one <= "\udfff" for one in text) else json.dumps(document)
    if isinstance(document, dict):
        return "{" + ",".join(f"{_text(name)}:{_text(value)}" for name, value in document.items()) + "}"
    if isinstance(document, list):
        return "[" + ",".join(map(_text, document)) + "]"
    return json.dumps(document)
