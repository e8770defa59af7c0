"""Which schema a value was written by: an id before the value, or in its headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.types import Buffer
from kraftlog.values.bad_value import BadValue
from kraftlog.values.places import Numbers, places_of

Side = Literal["key", "value"]
SchemaKey = int | bytes | None  # an id; a guid, and what follows it in a header; None is the reader's own schema
FRAMINGS = ("confluent", "apicurio", "none")
_ID_BYTES = {"confluent": 4, "apicurio": 8}
_NAMES = {
    "confluent": "expected a byte 0 and a schema id of four bytes before the {side}, found {found}",
    "apicurio": "expected a byte 0 and a global id of eight bytes before the {side}, found {found}",
}
NO_SCHEMA = -1


@dataclass(frozen=True)
class Framed:
    """Where values lie without what stands before them, and by which schemas they were written.

    Attributes
    ----------
    data : buffer
    starts, ends : numpy.ndarray
        Where each value lies in it.
    schemas : list
        Ids and guids, each once.
    numbers : numpy.ndarray
        For each value which of ``schemas`` it was written by; ``NO_SCHEMA`` of null, and of what is in ``bad``.
    bad : list of BadValue
        Values that do not say their schema.
    """

    data: Buffer
    starts: Numbers
    ends: Numbers
    schemas: list[SchemaKey]
    numbers: Numbers
    bad: list[BadValue]


def header_names(side: Side) -> tuple[str, ...]:
    """Return the headers that may name a schema."""
    return (f"__{side}_schema_id", f"apicurio.{side}.globalId", f"apicurio.{side}.contentId")


def unframed(values: pa.Array, headers: pa.Array | None, framing: str, side: Side) -> Framed:
    """Find the schema of each value.

    Parameters
    ----------
    values : pyarrow.BinaryArray
    headers : pyarrow.ListArray or None
        A header that names a schema counts before what stands before the value.
    framing : {"confluent", "apicurio", "none"}
        What stands before values: a byte 0 and an id of four or of eight bytes, or nothing, where all were written by
        the reader's schema.
    side : {"key", "value"}
    """
    data, starts, ends = places_of(values)
    waiting = np.asarray(values.is_valid()).astype(bool)
    numbers = np.full(len(values), NO_SCHEMA, np.int64)
    schemas: list[SchemaKey] = []
    bad: list[BadValue] = []
    if headers is not None:
        _in_headers(headers, side, waiting, schemas, numbers, bad)
    if framing == "none":
        if waiting.any():
            schemas.append(None)
            numbers[waiting] = len(schemas) - 1
        return Framed(data, starts, ends, schemas, numbers, bad)
    starts = starts.copy()
    _before_values(framing, side, data, starts, ends, waiting, schemas, numbers, bad)
    return Framed(data, starts, ends, schemas, numbers, bad)


def _before_values(
    framing: str,
    side: Side,
    data: Buffer,
    starts: Numbers,
    ends: Numbers,
    waiting: np.ndarray[Any, np.dtype[np.bool_]],
    schemas: list[SchemaKey],
    numbers: Numbers,
    bad: list[BadValue],
) -> None:
    width = _ID_BYTES[framing]
    content = np.frombuffer(memoryview(data), np.uint8)
    is_framed = waiting & (ends - starts > width)
    is_framed[is_framed] = content[starts[is_framed]] == 0
    for row in np.flatnonzero(waiting & ~is_framed):
        first, size = int(starts[row]), int(ends[row] - starts[row])
        found = (
            f"{size} bytes that begin with {bytes(content[first : first + width + 1]).hex(' ')}" if size else "nothing"
        )
        bad.append(BadValue(int(row), _NAMES[framing].format(side=side, found=found)))
    rows = np.flatnonzero(is_framed)
    if not len(rows):
        return
    ids = np.zeros(len(rows), np.int64)
    for at in range(1, width + 1):
        ids = ids << 8 | content[starts[rows] + at]
    starts[rows] += width + 1
    if (ids == ids[0]).all():
        distinct, inverse = ids[:1], np.zeros(len(rows), np.int64)
    else:
        distinct, inverse = np.unique(ids, return_inverse=True)
    numbers[rows] = len(schemas) + inverse
    schemas.extend(int(one) for one in distinct)


def _in_headers(
    headers: pa.Array,
    side: Side,
    waiting: np.ndarray[Any, np.dtype[np.bool_]],
    schemas: list[SchemaKey],
    numbers: Numbers,
    bad: list[BadValue],
) -> None:
    """Take the rows whose headers name a schema; of several headers of a name the last one counts."""
    pairs = headers.flatten()
    names = pairs.field("key")
    reasons: dict[int, str] = {}
    for name in header_names(side):
        is_named = pc.equal(names, name)
        if not pc.any(is_named).as_py():
            continue
        rows = np.asarray(pc.list_parent_indices(headers).filter(is_named))
        given = pairs.field("value").filter(is_named).fill_null(b"").dictionary_encode()
        for at, content in enumerate(given.dictionary.to_pylist(), len(schemas)):
            key, reason = _schema_of(name, content)
            schemas.append(key)
            if reason:
                reasons[at] = reason
        first = len(schemas) - len(given.dictionary)
        codes = np.asarray(given.indices).astype(np.int64) + first
        codes[~waiting[rows]] = NO_SCHEMA
        numbers[rows] = codes
    if reasons:
        for row in np.flatnonzero(np.isin(numbers, list(reasons))):
            bad.append(BadValue(int(row), reasons[int(numbers[row])]))
            numbers[row] = NO_SCHEMA
            waiting[row] = False
    waiting &= numbers == NO_SCHEMA


def _schema_of(name: str, content: bytes) -> tuple[SchemaKey, str]:
    if name.startswith("apicurio.") and len(content) == 8:
        return int.from_bytes(content, "big", signed=True), ""
    if name.startswith("__") and len(content) >= 17 and content[0] == 1:
        return content[1:], ""
    if name.startswith("__") and len(content) == 5 and content[0] == 0:
        return int.from_bytes(content[1:], "big", signed=True), ""
    expected = "eight bytes" if name.startswith("apicurio.") else "a byte 1 and a guid of 16 bytes"
    return None, f"header {name}: expected {expected}, found {content[:20].hex(' ') or 'nothing'}"
