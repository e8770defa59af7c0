"""Values of Kafka's own serializers: numbers, text, UUIDs; and bytes as text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog._native import cell_text
from kraftlog.codec.arrow_arrays import array_of
from kraftlog.codec.value_hashes import lent_values
from kraftlog.values.bad_value import BadValue
from kraftlog.values.places import places_of

Converted = tuple[pa.Array, list[BadValue]]
_FEW = 32
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def _numbers(kind: pa.DataType, values: pa.Array) -> Converted:
    """Return big-endian numbers, which take as many bytes as their type has."""
    dtype = np.dtype(kind.to_pandas_dtype())
    sizes = pc.fill_null(pc.binary_length(values), -1)
    is_good = pc.equal(sizes, dtype.itemsize)
    data, starts, _ = places_of(pc.filter(values, is_good))
    first = int(starts[0]) if len(starts) else 0
    found = np.frombuffer(memoryview(data)[first : first + len(starts) * dtype.itemsize], dtype.newbyteorder(">"))
    good = np.asarray(is_good).astype(bool)
    made = np.zeros(len(values), dtype)
    made[good] = found
    rows = np.flatnonzero(~good & np.asarray(values.is_valid()).astype(bool))
    bad = [BadValue(int(row), f"expected {dtype.itemsize} bytes, found {sizes[int(row)]}") for row in rows]
    return array_of(made, kind, ~good), bad


def text_of(values: pa.Array) -> Converted:
    """Return bytes that are UTF-8 as text."""
    try:
        return values.cast(pa.string()), []
    except pa.ArrowInvalid:
        pass
    if len(values) > _FEW:
        half = len(values) // 2
        (first, bad), (second, more) = text_of(values[:half]), text_of(values[half:])
        return pa.concat_arrays([first, second]), bad + [BadValue(one.row + half, one.reason) for one in more]
    texts: list[str | None] = []
    bad = []
    for row, value in enumerate(values.to_pylist()):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError as error:
            texts.append(None)
            bad.append(BadValue(row, f"byte {error.start}: expected UTF-8"))
    return pa.array(texts, pa.string()), bad


def _uuids(values: pa.Array) -> Converted:
    """Return the text of UUIDs, which is what Kafka's serializer writes."""
    texts, bad = text_of(values)
    is_uuid = pc.fill_null(pc.match_substring_regex(texts, _UUID), True)
    if pc.all(is_uuid).as_py() is not False:
        return pc.utf8_lower(texts), bad
    for row in np.flatnonzero(~np.asarray(is_uuid).astype(bool)):
        bad.append(BadValue(int(row), f"expected a UUID, found {texts[int(row)].as_py()[:40]!r}"))
    return pc.utf8_lower(pc.if_else(is_uuid, texts, pa.nulls(len(texts), pa.string()))), bad


def _encoded(form: int, values: pa.Array) -> Converted:
    ends, text = cell_text.cell_texts(form, lent_values(values))
    made = pa.Array.from_buffers(pa.large_string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(text)])
    return pc.if_else(values.is_valid(), made.cast(pa.string()), pa.nulls(len(values), pa.string())), []


def _as_they_are(values: pa.Array) -> Converted:
    return values, []


SCALARS: dict[str, tuple[pa.DataType, Callable[[pa.Array], Converted]]] = {
    "bytes": (pa.binary(), _as_they_are),
    "string": (pa.string(), text_of),
    "uuid": (pa.string(), _uuids),
    "hex": (pa.string(), partial(_encoded, cell_text.HEX)),
    "base64": (pa.string(), partial(_encoded, cell_text.BASE64)),
    **{
        name: (kind, partial(_numbers, kind))
        for name, kind in {
            "short": pa.int16(),
            "integer": pa.int32(),
            "long": pa.int64(),
            "float": pa.float32(),
            "double": pa.float64(),
        }.items()
    },
}
