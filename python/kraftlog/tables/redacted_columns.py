"""Redaction of whole columns, with the results of ``Redaction.record`` and without Python code per value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.arrow_arrays import array_of
from kraftlog.codec.value_hashes import lent_values
from kraftlog.tables.digests import Digests
from kraftlog.tables.json_path import Step
from kraftlog.tables.redaction_rule import HASH, MASK, NULL, Rule

if TYPE_CHECKING:
    from kraftlog._native.json_redact import JsonRedactor

_MOST_ITEMS = 1 << 31  # more are in no document of the size that a record can have


def masked(values: pa.Array, text: bytes) -> pa.Array:
    """Return the mask for each value that is not null."""
    return pc.if_else(values.is_valid(), pa.array([text], values.type)[0], pa.nulls(1, values.type)[0])


def hashed(values: pa.Array, digests: Digests) -> pa.Array:
    """Return the hash of each value; equal values are hashed once."""
    distinct = values.dictionary_encode()
    return pa.array(digests.of(distinct.dictionary.to_pylist()), values.type).take(distinct.indices)


def headers_of(
    headers: pa.Array, names: Sequence[str | None], changed: Sequence[Callable[[pa.Array], pa.Array]]
) -> pa.Array:
    """Return headers with new values: the first matching entry of ``names`` applies; None matches any name."""
    each = headers.flatten()
    header_names, contents = each.field("key"), each.field("value")
    left = array_of(np.ones(len(each), bool))
    for name, change in zip(names, changed, strict=True):
        fits = left if name is None else pc.and_(left, pc.equal(header_names, name))
        left = pc.and_not(left, fits)
        if fits.true_count:
            contents = pc.replace_with_mask(contents, fits, change(contents.filter(fits)))
    made = pa.StructArray.from_arrays([header_names, contents], fields=list(headers.type.value_type))
    ends = np.zeros(len(headers) + 1, np.int32)
    ends[1:] = pc.cumulative_sum(pc.list_value_length(headers).fill_null(0))
    return pa.ListArray.from_arrays(array_of(ends), made, headers.type, mask=headers.is_null())


class Documents:
    """Redacts paths in a column of JSON documents.

    Parameters
    ----------
    rules : sequence of Rule
        Rules with JSON paths.
    mask : str
    digests : Digests
    """

    def __init__(self, rules: Sequence[Rule], mask: str, digests: Digests) -> None:
        self._redactor = _redactor(rules, mask)
        self._digests = digests

    def change(self, values: pa.Array, one: Callable[[bytes], bytes | None]) -> pa.Array:
        """Return the redacted documents; ``one`` redacts documents that are not plain."""
        if self._redactor is None:
            return pa.array([None if data is None else one(data) for data in values.to_pylist()], values.type)
        column = values.cast(pa.large_binary())
        ends, data, is_plain, places = self._redactor.column(lent_values(column))
        if len(places):
            self._put_digests(column, data, places)
        made = pa.Array.from_buffers(column.type, len(column), [None, pa.py_buffer(ends), pa.py_buffer(data)])
        is_there = column.is_valid()
        is_odd = pc.and_(array_of(~is_plain), is_there)
        if is_odd.true_count:
            odd = pa.array([one(data) for data in column.filter(is_odd).to_pylist()], column.type)
            made = pc.replace_with_mask(made, is_odd, odd)
        return (pc.if_else(is_there, made, pa.nulls(1, made.type)[0]) if column.null_count else made).cast(values.type)

    def _put_digests(self, values: pa.Array, data: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]) -> None:
        source, target = memoryview(values.buffers()[2]), data.data
        known: dict[bytes, bytes] = {}
        for at, start, size in places.tolist():
            text = bytes(source[start : start + size])
            digits = known.get(text)
            if digits is None:
                digits = known[text] = self._digests.one(text).encode()
            target[at : at + len(digits)] = digits


def _redactor(rules: Sequence[Rule], mask: str) -> JsonRedactor | None:
    """Return the redactor of plain documents; None if the rules require a full parser."""
    from kraftlog._native import json_redact as native

    items = [step for rule in rules for step in rule.steps if isinstance(step, int)]
    if len(rules) > native.MOST_RULES or not all(0 <= item < _MOST_ITEMS for item in items):
        return None
    become = {NULL: native.TO_NULL, MASK: native.TO_MASK, HASH: native.TO_HASH}
    paths = [([_native_step(step) for step in rule.steps], become[rule.how]) for rule in rules]
    return native.JsonRedactor(paths, json.dumps(mask).encode())


def _native_step(step: Step) -> bytes | int | None:
    if isinstance(step, str):
        return step.encode("utf-8", "surrogatepass")
    return step if isinstance(step, int) else None
