"""Every walk over a log comes to the batches that the rules name: decoder, headers with and without crc, cuts.

The oracle is the walk in plain Python (``walk_twin``), over Kafka's files and over damaged ones. Batches inside of
values are never taken for batches of the log.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walk_twin import Walk, walk

import kraftlog
from golden_files import GOLDEN
from kraftlog._native.scanner import CHECK_LENGTH, Scanner
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.local_file import LocalFile

FILES = sorted(path for path in GOLDEN.rglob("*.log") if "aiven_tier" not in path.parts)  # those are in chunks
GIVEN_UP = "are not read, salvage searches them"


def values_of(rows: int, value: bytes, base_offset: int) -> bytes:
    return bytes(kraftlog.encode(pa.table({"value": [value] * rows}), base_offset=base_offset))


def check(data: bytes, path: Path | None = None) -> Walk:
    """Compare every walk over some bytes, and over a file that holds them, with the plain one."""
    expected = walk(data)
    for source in (data, None if path is None else LocalFile(path, len(data))):
        if source is None:
            continue
        scan = HeaderScan(source, check_crc=True)
        rows = [header for headers in scan.headers() for header in headers]
        assert [int(row["position"]) for row in rows if row["crc_ok"]] == expected.sound
        assert scan.torn_at == (-1 if expected.torn_at is None else expected.torn_at)
        given_up = [fault.position for fault in scan.faults if GIVEN_UP in fault.message]
        assert given_up == ([] if expected.gives_up_at is None else [expected.gives_up_at])

        unchecked = HeaderScan(source)
        positions = [int(position) for headers in unchecked.headers() for position in headers["position"]]
        assert set(positions) >= set(expected.sound)
        assert set(positions) <= {*expected.sound, *expected.bad}
        assert unchecked.torn_at == scan.torn_at
        assert [fault.position for fault in unchecked.faults if GIVEN_UP in fault.message] == given_up

        cuts, at = Scanner(source, 0, len(data), CHECK_LENGTH), -1
        while (cut := cuts.skip(at + 1)) is not None:
            at = cut
            assert at in positions
        decoded = kraftlog.decode(data, columns=["position", "offset"], include_control=True)
        assert set(decoded.to_table()["position"].to_pylist()) <= set(expected.sound)
        assert [fault.position for fault in decoded.faults if GIVEN_UP in fault.message] == given_up
    return expected


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_golden_and_damaged(path: Path):
    data = path.read_bytes()
    expected = check(data, path)
    assert expected.gives_up_at is None or "damaged" in path.parts


CUT = st.tuples(st.floats(0, 1), st.binary(max_size=70), st.integers(0, 70))
SAMPLES = [
    GOLDEN / name / "00000000000000000000.log"
    for name in ("damaged/good/log/t-0", "codecs/log/codec-mixed-0", "legacy/log/mixed-0", "transactions/log/orders-2")
]


@settings(max_examples=300, deadline=None)
@given(path=st.sampled_from(SAMPLES), cuts=st.lists(CUT, max_size=3), zeros=st.integers(0, 90), keep=st.floats(0, 1))
def test_mutated(path: Path, cuts: list[tuple[float, bytes, int]], zeros: int, keep: float):
    data = path.read_bytes()[:20_000]
    for where, new, removed in cuts:
        at = int(where * len(data))
        data = data[:at] + new + data[at + removed :]
    check(data[: int(keep * len(data))] + bytes(zeros))


@settings(max_examples=150, deadline=None)
@given(
    path=st.sampled_from(SAMPLES[:3]),
    offsets=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    cuts=st.lists(CUT, max_size=2),
    keep=st.floats(0, 1),
)
def test_batches_in_values(path: Path, offsets: list[int], cuts: list[tuple[float, bytes, int]], keep: float):
    """A log whose values are whole logs: damage never brings their records out, unless a damaged length leads there."""
    inner = path.read_bytes()[:3000]
    data, base = b"", 0
    for offset in offsets:
        data += values_of(1 + offset % 3, inner[offset:], base)
        base += 1 + offset % 3
    batches = walk(data).sound
    for where, new, removed in cuts:
        at = int(where * len(data))
        removed = min(len(new), removed)
        data = data[:at] + new[:removed] + data[at + removed :]  # bytes are changed, none moves
    data = data[: int(keep * len(data))]
    found = check(data)
    lengths = [int.from_bytes(data[at + 8 : at + 12]) + 12 for at in batches if at + 12 <= len(data)]
    ends = [*batches[1:], 10**9]
    if all(at + length == end for at, length, end in zip(batches, lengths, ends, strict=False)):
        assert set(found.sound) <= set(batches)


def test_a_partial_batch_ends_a_fetch():
    inner = values_of(1, b"never written to this partition", 1_000_000)
    log = values_of(1, b"real", 0) + values_of(3, inner, 1)
    for cut in range(len(values_of(1, b"real", 0)) + 1, len(log)):
        stream = kraftlog.decode(log[:cut], columns=["offset", "value"], strict=True)
        assert stream.to_table().to_pylist() == [{"offset": 0, "value": b"real"}]
        assert stream.faults == []


def test_a_flipped_bit_brings_no_record_out():
    """Not from the last batch of a log, and not from one in the middle."""
    inner = values_of(1, b"forged", 1)
    first, outer, last = values_of(1, b"real", 0), values_of(1, inner, 1), values_of(1, b"real, too", 2)
    for behind in (b"", last):
        for at in range(8 * len(outer)):
            damaged = bytearray(outer)
            damaged[at // 8] ^= 1 << at % 8
            stream = kraftlog.decode(first + bytes(damaged) + behind, columns=["value"])
            assert b"forged" not in stream.to_table()["value"].to_pylist()


def test_a_zero_tail_is_not_searched():
    """Its cost is one look at each byte: no header is read in it. Asserted by what is found, not by time."""
    data = values_of(1, b"real", 0)
    scan = HeaderScan(data + bytes(64 << 20))
    assert sum(len(headers) for headers in scan.headers()) == 1
    assert scan.torn_at == len(data)
