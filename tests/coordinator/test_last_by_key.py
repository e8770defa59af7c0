"""The last row of each key against a plain dict."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlog import last_by_key
from kraftlog.last_by_key import LastByKey, codes_of

_ROWS = st.lists(
    st.tuples(
        st.text(max_size=2) | st.none(),
        st.integers(-(2**31), 2**31 - 1) | st.integers(0, 2),
        st.integers().filter(lambda value: abs(value) < 2**63),
        st.booleans(),
    ),
    max_size=30,
)


def _batch(rows: list[tuple[str | None, int, int, bool]]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "name": pa.array([row[0] for row in rows], pa.string()),
            "partition": pa.array([row[1] for row in rows], pa.int32()),
            "value": pa.array([row[2] for row in rows], pa.int64()),
            "is_tombstone": pa.array([row[3] for row in rows], pa.bool_()),
            "of_no_use": pa.array([0] * len(rows), pa.int8()),
        }
    )


@settings(deadline=None)
@given(st.lists(_ROWS, max_size=6), st.integers(1, 50))
def test_as_a_dict(chunks: list[list[tuple[str | None, int, int, bool]]], least_rows: int) -> None:
    fold = LastByKey(["name", "partition"], ["value"])
    expected: dict[tuple[str | None, int], int] = {}
    with patch.object(last_by_key, "LEAST_ROWS", least_rows):
        for chunk in chunks:
            fold.add(_batch(chunk))
            for name, partition, value, is_tombstone in chunk:
                expected.pop((name, partition), None)
                if not is_tombstone:
                    expected[name, partition] = value
        table = fold.rows()
    rows = [] if table is None else table.to_pylist()
    assert {(row["name"], row["partition"]): row["value"] for row in rows} == expected
    assert len(rows) == len(expected)


def test_memory_follows_the_keys_and_not_the_log() -> None:
    fold = LastByKey(["name"], ["value"])
    names = [f"name {number}" for number in range(100)]
    with patch.object(last_by_key, "LEAST_ROWS", 64):
        for chunk in range(500):
            fold.add(_batch([(name, 0, chunk, False) for name in names[: 10 + chunk % 10]]))
            assert fold.held <= 3 * 64
    rows = fold.rows()
    assert rows is not None
    assert rows.column("value").to_pylist()[-1] == 499


@given(st.lists(st.tuples(st.text(max_size=1), st.text(max_size=1), st.integers(-(2**31), 2**31 - 1)), min_size=1))
def test_codes_are_equal_where_keys_are(rows: list[tuple[str, str, int]]) -> None:
    with patch.object(last_by_key, "LEAST_ROWS", 1):
        codes, count = codes_of([pa.chunked_array([[row[at] for row in rows]]) for at in range(3)], len(rows))
    assert len(set(codes.tolist())) == len(set(rows)) == len(set(zip(codes.tolist(), rows, strict=True)))
    assert all(0 <= code < count for code in codes.tolist())


@given(_ROWS, _ROWS, _ROWS)
def test_a_copy_and_its_origin_do_not_see_each_others_rows(
    before: list[tuple[str | None, int, int, bool]],
    of_copy: list[tuple[str | None, int, int, bool]],
    of_origin: list[tuple[str | None, int, int, bool]],
) -> None:
    origin = LastByKey(["name", "partition"], ["value"])
    origin.add(_batch(before))
    copied = origin.copy()
    copied.add(_batch(of_copy))
    origin.add(_batch(of_origin))
    for fold, rows in ((copied, before + of_copy), (origin, before + of_origin)):
        alone = LastByKey(["name", "partition"], ["value"])
        alone.add(_batch(rows))
        found, expected = fold.rows(), alone.rows()
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
