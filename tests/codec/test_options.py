"""Numbers that make no sense are refused before anything is read or written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import kraftlog

ONE = pa.table({"value": [b"a"]})
DATA = kraftlog.encode(ONE)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("batch_rows", 1, 2**31 - 2),
        ("batch_bytes", 1, 2**29),
        ("max_decompressed_bytes", 1, 2**31 - 1),
    ],
)
def test_decode_options(name: str, least: int, most: int):
    for number in (-(2**64), -(2**40), -100, -1, least - 1, most + 1, 2**40, 2**62, 2**63 - 1, 2**64):
        with pytest.raises(ValueError, match=f"{name} {number} is not between {least} and {most}"):
            kraftlog.decode(DATA, **{name: number})
    assert kraftlog.decode(DATA, **{name: least}).to_table().num_rows == 1


@pytest.mark.parametrize("read", [kraftlog.decode, kraftlog.records])
@pytest.mark.parametrize(
    ("name", "least", "most"), [("max_decompressed_bytes", 1, 2**31 - 1), ("start_offset", -(2**63), 2**63 - 1)]
)
def test_options_of_both_readers(read: Callable[..., object], name: str, least: int, most: int):
    """They are refused by the call, whether a row is read or not."""
    for number in (least - 1, most + 1, 2**64, -(2**70)):
        with pytest.raises(ValueError, match=f"{name} {number} (is not between|does not fit)"):
            read(DATA, **{name: number})
    for value in ("5", 1.0, b"5"):
        with pytest.raises(TypeError, match=f"{name} .* is not an integer"):
            read(DATA, **{name: value})
    for number in (least, most, np.int64(1)):
        read(DATA, **{name: number})


def test_unknown_column():
    with pytest.raises(ValueError, match="table records has no column 'payload'; it has key, value,"):
        kraftlog.decode(DATA, columns=["offset", "payload"])


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("base_offset", 64),
        ("producer_id", 64),
        ("base_sequence", 32),
        ("partition_leader_epoch", 32),
        ("producer_epoch", 16),
    ],
)
def test_header_fields_are_not_cut_to_their_width(name: str, bits: int):
    for number in (2 ** (bits - 1), -(2 ** (bits - 1)) - 1):
        with pytest.raises(ValueError, match=rf"^{name} {number} is not between"):
            kraftlog.encode(ONE, **{name: number})


def test_offsets_do_not_wrap():
    """The offset behind the last record must be one as well."""
    rows = pa.table({"value": [b"a", b"b"]})
    last = kraftlog.decode(kraftlog.encode(rows, base_offset=2**63 - 3), columns=["offset"]).to_table()
    assert last["offset"].to_pylist() == [2**63 - 3, 2**63 - 2]
    for base_offset in (2**63 - 2, 2**63 - 1):
        with pytest.raises(ValueError, match="base_offset"):
            kraftlog.encode(rows, base_offset=base_offset)


def test_offsets_do_not_wrap_from_batch_to_batch():
    rows = pa.table({"value": [b"a"] * 9})
    with pytest.raises(ValueError, match="base_offset"):
        kraftlog.encode(rows, base_offset=2**63 - 5, max_batch_records=2)
