"""The map of last offsets: what it knows after it was full, and how large it gets."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from kraftlog.write.offset_map import OffsetMap


def array(keys: list[bytes | None]) -> pa.BinaryArray:
    return pa.array(keys, pa.binary())


@pytest.mark.parametrize("most_bytes", [0, 1500, 1 << 20])
def test_maps_together_know_what_a_dict_knows(most_bytes: int) -> None:
    dice = random.Random(most_bytes)
    keys = [None if dice.random() < 0.1 else bytes(dice.choices(b"ab", k=dice.randrange(5))) for _ in range(500)]
    column, offsets, wanted = array(keys), np.arange(7, 507), np.array([dice.random() < 0.8 for _ in keys])
    found, taken = np.zeros(len(keys), bool), 0
    while taken < len(keys):
        one = OffsetMap(most_bytes)
        before, taken = taken, one.put(column, offsets, wanted, taken)
        assert taken > before
        found |= one.superseded(column, offsets)
    last = {key: offset for key, offset, is_wanted in zip(keys, offsets, wanted, strict=True) if is_wanted}
    assert found.tolist() == [
        key is not None and offset < last.get(key, -1) for key, offset in zip(keys, offsets, strict=True)
    ]


def test_what_fits_is_bounded_by_bytes() -> None:
    """Slots take 64 bytes and entries 16 to 32; long keys count as well."""
    keys = array([b"%020d" % number for number in range(20_000)])
    long = array([b"%01000d" % number for number in range(20_000)])
    offsets, wanted = np.arange(20_000), np.ones(20_000, bool)
    assert 1_000_000 / 116 <= OffsetMap(1_000_000).put(keys, offsets, wanted, 0) <= 1_000_000 / 100
    assert 1_000_000 / 1_096 <= OffsetMap(1_000_000).put(long, offsets, wanted, 0) <= 1_000_000 / 1_080


def test_columns_that_are_slices() -> None:
    """Rows count from where a slice begins."""
    keys = array([b"x", b"a", None, b"a", b"b"]).slice(1)
    offsets = np.arange(10, 14)
    known = OffsetMap(1 << 20)
    assert known.put(keys, offsets, np.ones(4, bool), 0) == 4
    assert known.superseded(keys, offsets).tolist() == [True, False, False, False]
    assert known.superseded(array([b"x", None]), np.array([0, 0])).tolist() == [False, False]


def test_columns_of_different_lengths_are_refused() -> None:
    known = OffsetMap(1 << 20)
    with pytest.raises(ValueError, match="row 0 of 1 keys, 2 offsets and 1 wanted rows"):
        known.put(array([b"a"]), np.arange(2), np.ones(1, bool), 0)
    with pytest.raises(ValueError, match="row 2 of 1 keys"):
        known.put(array([b"a"]), np.arange(1), np.ones(1, bool), 2)
    with pytest.raises(ValueError, match="1 keys, but 0 offsets"):
        known.superseded(array([b"a"]), np.arange(0))
