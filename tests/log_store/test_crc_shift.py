"""The crc that is worked out is the crc that is computed."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlog._native.checksum import crc32c
from kraftlog.log_store.crc_shift import changed_crcs


@settings(deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=80), st.binary(min_size=4, max_size=4), st.binary(max_size=3_000))))
def test_four_bytes_of_many(data: list[tuple[bytes, bytes, bytes]]):
    after = b"\x01\x80\xff\x00"
    crcs = np.array([crc32c(head + word + tail) for head, word, tail in data], np.uint32)
    changes = np.array([int.from_bytes(w, "little") ^ int.from_bytes(after, "little") for _, w, _ in data], np.uint32)
    behind = np.array([len(tail) for *_, tail in data], np.int64)
    expected = [crc32c(head + after + tail) for head, _, tail in data]
    assert changed_crcs(crcs, changes, behind).tolist() == expected


def test_far_from_the_end():
    data = bytes(5_000_011)
    changed = b"\x07\x00\x00\x01" + data[4:]
    crcs = np.array([crc32c(data)], np.uint32)
    found = changed_crcs(crcs, np.array([0x01000007], np.uint32), np.array([len(data) - 4]))
    assert found.tolist() == [crc32c(changed)]
