"""Search for a text in the keys, values or headers of records.

Batches are searched as bytes before anything is decoded (``codec/held_texts.py``). Records of batches that contain the
texts are decoded and matched exactly, column by column. Records of the others are only checked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog import schema
from kraftlog.codec.held_texts import HeldTexts
from kraftlog.codec.partitioner import partition_for_key
from kraftlog.layout.discover import Discovery
from kraftlog.tables.json_path import JsonPath, NotJsonError, as_number, as_text, parse
from kraftlog.tables.read import Read
from kraftlog.tables.stage import Source
from kraftlog.tables.text_match import TextMatch

Texts = str | bytes | Sequence[str | bytes]

_COMPARISONS = {"!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_ESCAPED = b"\\"  # a text in JSON that holds none stands there as it is


class Search:
    """The conditions of a search. All of them must match, each with at least one of its texts.

    Of ``json_path`` all must be found.

    Parameters
    ----------
    text : str, bytes or sequence of these
        Texts in the key, in the value or in the value of a header.
    key, value, header : str, bytes or sequence of these
        Texts in the key, the value, or the value of a header. ``NAME=TEXT`` limits the search to headers with this
        name; an empty name means any header.
    json_path : str or sequence of str
        ``PATH=TEXT``: the value is a JSON document that has at the path a text, number, true, false or null that is
        equal; ``PATH`` only: the path exists. ``PATH>100``, and ``>=``, ``<``, ``<=``, ``!=``: numbers are
        compared as numbers, texts as texts.
    key_equals : str, bytes or sequence of these
        Whole keys.
    regex : bool
        Texts, except in ``key_equals``, are RE2 regular expressions over bytes; in ``json_path`` they match anywhere in
        the text.
    ignore_case : bool
        Ignore the case of ASCII letters, except in ``key_equals``.
    invert : bool
        Records that do not match.
    any_of : bool
        Records for which one of all conditions holds.
    key_partitions : int, optional
        Number of partitions of the topic, if its producers partition by Kafka's murmur2 of the key: only the partitions
        of ``key_equals`` are read.

    Raises
    ------
    ValueError
        When there is no condition, or an expression or path is invalid.

    Examples
    --------
    >>> search = Search(value="lost", key_equals=["a", "b"])
    >>> rows = pa.record_batch({"key": [b"a", b"c", b"b"], "value": [b"is lost", b"lost", None]})
    >>> search.mask(rows).to_pylist()
    [True, False, False]
    """

    def __init__(
        self,
        *,
        text: Texts = (),
        key: Texts = (),
        value: Texts = (),
        header: Texts = (),
        json_path: str | Sequence[str] = (),
        key_equals: Texts = (),
        regex: bool = False,
        ignore_case: bool = False,
        invert: bool = False,
        any_of: bool = False,
        key_partitions: int | None = None,
    ) -> None:
        def matcher(text: bytes) -> TextMatch:
            return TextMatch(text, regex=regex, ignore_case=ignore_case)

        self._conditions: list[_Condition] = []
        self._invert = invert
        self._ignore_case = ignore_case
        self._keys = _as_bytes(key_equals)
        self._key_partitions = key_partitions
        if self._keys:
            self._conditions.append(_KeyEquals(self._keys))
        if wherever := [matcher(one) for one in _as_bytes(text)]:
            headers_of = _InHeaders([_HeaderWanted(None, one) for one in wherever])
            self._conditions.append(_Either([_InColumn("key", wherever), _InColumn("value", wherever), headers_of]))
        for column, texts in (("key", _as_bytes(key)), ("value", _as_bytes(value))):
            if texts:
                self._conditions.append(_InColumn(column, [matcher(text) for text in texts]))
        if headers := _as_bytes(header):
            self._conditions.append(_InHeaders([_header(text, matcher) for text in headers]))
        self.json_paths: list[JsonPath] = []
        if paths := [json_path] if isinstance(json_path, str) else list(json_path):
            for text_of_path in paths:
                path, operator, operand = JsonPath.split(text_of_path)
                self.json_paths.append(path)
                wanted = _JsonWanted(path, operator, operand, regex=regex, ignore_case=ignore_case)
                self._conditions.append(_InJson(wanted, ignore_case=ignore_case))
        if not self._conditions:
            raise ValueError("nothing to search for: expected text, key, key_equals, value, header or json_path")
        if any_of and len(self._conditions) > 1:
            self._conditions = [_Either(self._conditions)]
        if key_partitions is not None and (not self._keys or invert or any_of):
            raise ValueError("key_partitions requires key_equals and cannot be combined with invert or any_of")
        if key_partitions is not None and key_partitions < 1:
            raise ValueError(f"a topic has at least one partition, not {key_partitions}")

    @property
    def columns(self) -> list[str]:
        """The columns that are looked at."""
        return sorted({column for condition in self._conditions for column in condition.columns})

    @property
    def holds(self) -> HeldTexts | None:
        """Texts that batches with matching records contain; None if they are not known."""
        if self._invert:
            return None
        clauses = tuple(
            tuple(dict.fromkeys(texts))
            for condition in self._conditions
            for texts in condition.held
            if texts and all(texts)
        )
        return HeldTexts(clauses, self._ignore_case) if clauses else None

    def mask(self, rows: pa.RecordBatch) -> pa.Array:
        """Return which rows match."""
        found = None
        for condition in self._conditions:
            one = condition.of(rows)
            found = one if found is None else pc.and_(found, one)
        return pc.invert(found) if self._invert else found

    def of(self, found: Discovery) -> Discovery:
        """Return the files that can contain matching records.

        Raises
        ------
        ValueError
            When a topic has more partitions than ``key_partitions``.
        """
        if self._key_partitions is None:
            return found
        most = max((segment.partition or 0 for segment in found.segments), default=0)
        if most >= self._key_partitions:
            name = next(segment.topic for segment in found.segments if segment.partition == most)
            raise ValueError(f"key_partitions {self._key_partitions}: {name} has a partition {most}")
        wanted = set(partition_for_key(pa.array(self._keys, pa.binary()), self._key_partitions).to_pylist())
        return found.only(lambda _, partition: partition is None or partition in wanted)

    def rows(self, read: Read, source: Source) -> Iterator[pa.RecordBatch]:
        """Return the rows that match."""
        names = read.schema.names
        wanted = schema.RECORDS.select([*names, *(name for name in self.columns if name not in names)])
        options = replace(read.options, holds=self.holds)
        for batch in source(replace(read, files=self.of(read.files), options=options, schema=wanted)):
            mask = self.mask(batch)
            if mask.true_count:
                yield batch.filter(mask).select(names)


def _as_bytes(texts: Texts) -> list[bytes]:
    every = [texts] if isinstance(texts, str | bytes) else list(texts)
    return [text.encode() if isinstance(text, str) else bytes(text) for text in every]


class _Condition:
    """The condition on one column.

    Attributes
    ----------
    column : str
    held : list of list of bytes
        Lists of texts; a batch must contain one text of each list. Empty if they are not known.
    """

    column: str
    held: list[list[bytes]]

    @property
    def columns(self) -> set[str]:
        """The columns that are looked at."""
        return {self.column}

    def of(self, rows: pa.RecordBatch) -> pa.Array:
        """Return which rows match; none is null."""
        return self.mask(rows.column(self.column))

    def mask(self, column: pa.Array) -> pa.Array:
        """Return which rows match; none is null."""
        raise NotImplementedError


class _Either(_Condition):
    """One of several conditions, of several columns."""

    def __init__(self, conditions: list[_Condition]) -> None:
        self._conditions = conditions
        usable = [next((texts for texts in one.held if texts and all(texts)), []) for one in conditions]
        self.held = [[text for texts in usable for text in texts]] if all(usable) else []

    @property
    def columns(self) -> set[str]:
        return {column for one in self._conditions for column in one.columns}

    def of(self, rows: pa.RecordBatch) -> pa.Array:
        return _any(one.of(rows) for one in self._conditions)


class _KeyEquals(_Condition):
    column = "key"

    def __init__(self, keys: list[bytes]) -> None:
        self._keys = pa.array(keys, pa.binary())
        self.held = [keys]

    def mask(self, column: pa.Array) -> pa.Array:
        return pc.is_in(column, value_set=self._keys)


class _InColumn(_Condition):
    def __init__(self, column: str, texts: list[TextMatch]) -> None:
        self.column = column
        self._texts = texts
        self.held = [[text.needed for text in texts]]

    def mask(self, column: pa.Array) -> pa.Array:
        return _any(text.mask(column) for text in self._texts)


@dataclass(frozen=True)
class _HeaderWanted:
    name: str | None
    text: TextMatch


def _header(text: bytes, matcher: Callable[[bytes], TextMatch]) -> _HeaderWanted:
    name, equals, rest = text.partition(b"=")
    if not equals:
        return _HeaderWanted(None, matcher(text))
    return _HeaderWanted(name.decode() or None, matcher(rest))


class _InHeaders(_Condition):
    column = "headers"

    def __init__(self, wanted: list[_HeaderWanted]) -> None:
        self._wanted = wanted
        self.held = [[one.text.needed for one in wanted], [(one.name or "").encode() for one in wanted]]

    def mask(self, column: pa.Array) -> pa.Array:
        each, rows = column.flatten(), pc.list_parent_indices(column)
        names, values = each.field("key"), each.field("value")
        if len(each):
            is_wanted = _any(self._mask_of_one(one, names, values) for one in self._wanted)
        else:
            is_wanted = pa.array([], pa.bool_())
        found = np.zeros(len(column), bool)
        found[rows.filter(is_wanted).to_numpy(zero_copy_only=False)] = True
        return pa.array(found)

    @staticmethod
    def _mask_of_one(one: _HeaderWanted, names: pa.Array, values: pa.Array) -> pa.Array:
        mask = one.text.mask(values)
        return mask if one.name is None else pc.and_(mask, pc.equal(names, one.name))


class _JsonWanted:
    """The condition on a JSON path.

    Attributes
    ----------
    match : TextMatch or None
        An expression for the texts at the path.
    names, texts : list of bytes
        The document must contain one of each; empty means no condition.
    """

    def __init__(self, path: JsonPath, compared: str, text: str | None, *, regex: bool, ignore_case: bool) -> None:
        if compared not in ("", "=") and regex:
            raise ValueError(f"JSON path {path.text!r}: {compared} does not compare with a regular expression")
        self._path = path
        self._compare = _COMPARISONS.get(compared)
        self._text = text.lower() if text is not None and ignore_case else text
        self._ignore_case = ignore_case
        self._number = None if text is None or regex else as_number(text)
        is_matched = regex and text is not None
        self.match = TextMatch(text.encode(), regex=True, ignore_case=ignore_case) if is_matched and text else None
        needed = self.match.needed if self.match else (text or "").encode() if self._number is None else b""
        needed = b"" if self._compare else needed
        self.names, self.texts = ([one, _ESCAPED] if one else [] for one in ((path.last_name or "").encode(), needed))
        self._is_any_text = is_matched and not text

    def texts_in(self, document: object) -> list[bytes]:
        """Return the texts that an expression is compared with."""
        texts = [as_text(value) for value in self._path.values(document)]
        return [text.encode(errors="surrogatepass") for text in texts if text is not None]

    def is_in(self, document: object) -> bool:
        """Whether a document has a value that is equal."""
        return any(self._is_equal(value) for value in self._path.values(document))

    def _is_equal(self, value: object) -> bool:
        if self._text is None:
            return True
        text = as_text(value)
        if self._compare is not None:
            return self._holds(self._compare, value, text)
        if text is None or self._is_any_text:
            return text is not None
        if self._number is not None and isinstance(value, Decimal):
            return value == self._number
        return (text.lower() if self._ignore_case else text) == self._text

    def _holds(self, compare: Callable[[Any, Any], bool], value: object, text: str | None) -> bool:
        """Whether a value compares so: numbers as numbers, also in texts, and other texts as texts."""
        number = as_number(value) if isinstance(value, str) else value
        if self._number is not None and isinstance(number, Decimal):
            return compare(number, self._number)
        if compare is not operator.ne and not isinstance(value, str):
            return False
        return text is None or compare(text.lower() if self._ignore_case else text, self._text)


class _InJson(_Condition):
    column = "value"

    def __init__(self, wanted: _JsonWanted, *, ignore_case: bool) -> None:
        self._wanted = wanted
        self.held = [wanted.names, wanted.texts]
        self._hints = [
            [TextMatch(text, regex=False, ignore_case=ignore_case) for text in dict.fromkeys(texts)]
            for texts in self.held
            if texts
        ]

    def mask(self, column: pa.Array) -> pa.Array:
        candidates = pc.is_valid(column)
        for hints in self._hints:
            candidates = pc.and_(candidates, _any(hint.mask(column) for hint in hints))
        found = np.zeros(len(column), bool)
        rows = pc.indices_nonzero(candidates).to_pylist()
        documents = [_document(value) for value in column.filter(candidates).to_pylist()]
        one = self._wanted
        if one.match is None:
            for row, document in zip(rows, documents, strict=True):
                found[row] = document is not _NONE and one.is_in(document)
            return pa.array(found)
        texts = [[] if document is _NONE else one.texts_in(document) for document in documents]
        matches = iter(one.match.mask(pa.array([text for of in texts for text in of], pa.binary())).to_pylist())
        for row, of in zip(rows, texts, strict=True):
            found[row] = any([next(matches) for _ in of])  # noqa: C419  (all are taken)
        return pa.array(found)


_NONE = object()


def _document(value: bytes) -> object:
    try:
        return parse(value)
    except NotJsonError:
        return _NONE


def _any(masks: Iterator[pa.Array]) -> pa.Array:
    found = next(masks)
    for mask in masks:
        found = pc.or_(found, mask)
    return found
