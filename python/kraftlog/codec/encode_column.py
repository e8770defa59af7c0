"""A column of lists of records, each encoded as record batches, in one pass over the columns of their fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.codec.encode import EncodedLists, Encoder, encode
from kraftlog.codec.list_column import binary_of, by_chunk, list_items


@by_chunk
def encode_column(column: pa.Array, **options: Any) -> pa.Array:
    """Return the record batches of each list of records as ``encode`` returns them.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray of list of struct
        Fields are columns as in ``Encoder.write``.
    **options
        As for ``encode``.

    Returns
    -------
    pyarrow.BinaryArray
        Null for null, empty for an empty list.

    Raises
    ------
    ValueError
        For the first list that cannot be encoded; the message has the index of the record in that list.
    """

    def encode_all(records: pa.Array, ends: npt.NDArray[np.int64]) -> EncodedLists | None:
        return Encoder(**options).encode_lists(pa.RecordBatch.from_struct_array(records), ends)

    return encoded_lists(column, encode_all, lambda _, records: _encode_one(records, **options))


def encoded_lists(
    column: pa.Array,
    encode_all: Callable[[pa.Array, npt.NDArray[np.int64]], EncodedLists | None],
    encode_one: Callable[[int, pa.Array], object],
) -> pa.Array:
    """Return the batches of each list, as a binary column.

    Parameters
    ----------
    column : pyarrow.Array of list
    encode_all : callable
        Encodes the items of all lists that are not null, given the end of each list.
    encode_one : callable
        Encodes one list, given its number and its items. If ``encode_all`` raises ValueError or returns None, this
        raises the error of the first bad list, with indexes that count from the start of that list.
    """
    is_valid = np.asarray(column.is_valid())
    items, ends = list_items(column.drop_null())
    try:
        encoded = None if items.null_count else encode_all(items, ends)
    except ValueError:
        encoded = None
    if encoded is None:
        for number, records in enumerate(column):
            if records.is_valid:
                encode_one(number, records.values)
        raise AssertionError("each list can be encoded, and all lists together cannot")
    return binary_of(*encoded, is_valid)


def _encode_one(records: pa.Array, **options: Any) -> pa.Buffer | None:
    if not len(records):
        return None
    if records.null_count:
        place = records.is_null().index(True).as_py()
        raise ValueError(f"record {place} of {len(records)} is null; a null key or value is a field of a record")
    return encode(pa.RecordBatch.from_struct_array(records), **options)
