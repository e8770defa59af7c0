"""Arrow arrays of buffers against those that pyarrow makes of the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.codec.arrow_arrays import array_of, scalar_of, texts_of

_KINDS = ["bool", "i1", "i2", "<i4", "i8", ">i8", "u1", "f8"]


@given(st.sampled_from(_KINDS), st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=20), st.booleans())
def test_numbers(kind: str, cells: list[tuple[int, bool]], has_mask: bool) -> None:
    values = np.array([value for value, _ in cells], kind)
    mask = np.array([is_null for _, is_null in cells], bool) if has_mask else None
    found = array_of(values, None, mask)
    found.validate(full=True)
    assert found.equals(pa.array(values.astype(values.dtype.newbyteorder("=")), mask=mask))
    strided = np.repeat(values, 2)[::2]
    assert array_of(strided, mask=mask).equals(found)


def test_a_type_that_holds_all_values() -> None:
    assert array_of(np.array([1], np.int16), pa.int64()).equals(pa.array([1], pa.int64()))
    with pytest.raises(TypeError, match=r"int64.*int32"):
        array_of(np.array([1], np.int64), pa.int32())


@given(st.lists(st.text() | st.none()))
def test_texts(texts: list[str | None]) -> None:
    found = texts_of(texts)
    found.validate(full=True)
    assert found.equals(pa.array(texts, pa.string()))


@pytest.mark.parametrize(
    ("value", "kind"),
    [("ü", pa.string()), (None, pa.string()), (-1, pa.int32()), (None, pa.int64()), (True, pa.bool_())],
)
def test_scalars(value: Any, kind: pa.DataType) -> None:
    assert scalar_of(value, kind).equals(pa.scalar(value, kind))


def test_a_number_that_does_not_fit() -> None:
    with pytest.raises(OverflowError):
        scalar_of(1 << 31, pa.int32())
