"""Records of copies and mirrors, compared piece by piece, against plain Python over all of them at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlog.audit import compared_records
from kraftlog.audit.compared_records import CopyComparison, MirrorComparison, SomeRecords
from kraftlog.audit.contents import CONTENT
from kraftlog.disk import spilled_rows
from kraftlog.disk.spilled_rows import Rows

Record = tuple[int, int, int, bool]  # hash, key, offset, is_committed


@st.composite
def partitions(draw: st.DrawFn) -> list[Record]:
    """Return records of few contents, with gaps of offsets; a content has one key."""
    contents = draw(st.lists(st.tuples(st.integers(0, 30), st.sampled_from([True, True, True, False])), max_size=40))
    gaps = draw(st.lists(st.integers(1, 3), min_size=len(contents), max_size=len(contents)))
    offsets = np.cumsum([draw(st.integers(-1, 50)), *gaps])[1:].tolist()
    return [(one, one % 3, offset, is_committed) for (one, is_committed), offset in zip(contents, offsets, strict=True)]


def pieces(records: list[Record], size: int) -> Iterator[Rows]:
    for first in range(0, len(records), size):
        yield np.array(records[first : first + size], CONTENT)


def some(offsets: list[int]) -> SomeRecords:
    return SomeRecords(len(offsets), min(offsets), max(offsets)) if offsets else SomeRecords()


@settings(max_examples=200)
@given(partitions(), partitions(), st.integers(1, 50), st.integers(0, 60))
def test_copies(own: list[Record], other: list[Record], size: int, start: int) -> None:
    compared = CopyComparison.of(pieces(own, size), pieces(other, size + 1), start)
    both = [{offset: one for one in records for offset in [one[2]]} for records in (own, other)]
    common = both[0].keys() & both[1].keys()
    assert compared.differing == some([at for at in common if both[0][at][0] != both[1][at][0]])
    for alone, mine, theirs in ((compared.own, *both), (compared.other, *both[::-1])):
        offsets = [at for at, one in mine.items() if one[3] and at >= start and at not in theirs]
        last = max(theirs, default=-1)
        assert alone.between == some([at for at in offsets if at < last])
        assert alone.after == some([at for at in offsets if at > last])


@settings(max_examples=200)
@given(
    partitions(),
    partitions(),
    st.integers(1, 50),
    st.integers(1, 20),
    st.integers(1, 3),
    st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
def test_mirrors(
    own: list[Record], other: list[Record], size: int, in_memory: int, keys: int, translation: tuple[int, int]
) -> None:
    with (
        patch.object(spilled_rows, "ROWS_IN_MEMORY", in_memory),
        patch.object(compared_records, "ROWS_IN_MEMORY", in_memory),
        patch.object(compared_records, "_MOST_LATE_KEYS", keys),
        closing(
            MirrorComparison(pieces(own, size), pieces(other, size + 1), len(own) + len(other), [translation])
        ) as compared,
    ):
        differences, order = compared.differences(), compared.out_of_order()
    counts = Counter(one[0] for one in own)
    unique = {one[0]: one for one in own if counts[one[0]] == 1 and one[3]}
    firsts = {one[0]: one[2] for one in reversed(other)}
    lasts = {one[0]: one[2] for one in other}
    matched = sorted((firsts[content], one[2], one[1]) for content, one in unique.items() if content in firsts)
    assert compared.offsets == some([at for _, at, _ in matched])
    assert compared.mirror_offsets == some([at for at, _, _ in matched])
    first, last = compared.offsets.first, compared.offsets.last
    span = range(compared.mirror_offsets.first, compared.mirror_offsets.last)
    missing = [one[2] for content, one in unique.items() if content not in firsts and first <= one[2] < last]
    added = [one[2] for one in other if one[0] not in counts and one[2] in span]
    behind = [one[2] for one in own if one[3] and one[2] > last and one[0] not in firsts] if matched else []
    assert differences == (some(missing), some(added), some(behind))
    offset, mirror_offset = translation
    skipped = [one[2] for one in unique.values() if one[2] >= offset and lasts.get(one[0], 99_999) < mirror_offset]
    assert compared.skipped == [some(skipped)]
    sides = [next((one[0] for one in own if one[2] == offset), None)]
    sides.append(next((one[0] for one in other if one[2] == mirror_offset), None))
    assert compared.is_of_one_record(offset, mirror_offset) is (None if None in sides else sides[0] == sides[1])
    before: dict[int, tuple[int, int]] = {}
    expected = None
    for at, own_at, key in matched:
        if key in before and before[key][0] > own_at:
            expected = (*before[key], own_at, at)
            break
        before[key] = own_at, at
    assert (None if order is None else tuple(order)) == expected


def test_rows_of_a_bucket_keep_their_order_in_memory_and_in_the_file() -> None:
    with patch.object(spilled_rows, "ROWS_IN_MEMORY", 10):
        spilled = spilled_rows.SpilledRows(np.dtype([("n", "i8")]), 3)
        for first in range(0, 100, 4):
            rows = np.array([(n,) for n in range(first, first + 4)], [("n", "i8")])
            spilled.add(rows, rows["n"] % 3)
        for bucket in range(3):
            some = [rows["n"].tolist() for rows in spilled.pieces(bucket)]
            assert [n for piece in some for n in piece] == [n for n in range(100) if n % 3 == bucket]
            # however often rows were written: a piece is as large as fits into memory
            assert [len(piece) for piece in some[:-1]] == [12] * (len(some) - 1)
    spilled.close()
