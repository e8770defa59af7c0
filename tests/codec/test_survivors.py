"""With ``salvage`` a batch whose length is damaged costs that batch alone, in any file and any number of places."""

from __future__ import annotations

import itertools

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import COLUMNS

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.header_scan import HeaderScan

NAMES = [
    "codecs/log/codec-mixed-0",
    "legacy/log/mixed-0",
    "transactions/log/orders-2",
    "metadata_txn/committed_many_batches/log/__cluster_metadata-0",
]
Batch = tuple[bytes, list[dict]]


def batches_of(name: str) -> list[Batch]:
    """Return the bytes and the rows of each batch of a file."""
    data = (GOLDEN / name / "00000000000000000000.log").read_bytes()
    headers = next(HeaderScan(data).headers())
    starts = [*headers["position"].tolist(), len(data)]
    parts = [data[start:end] for start, end in itertools.pairwise(starts)]
    return [(part, decoded(part)[0]) for part in parts]


def decoded(data: bytes) -> tuple[list[dict], list[kraftlog.Fault]]:
    stream = kraftlog.decode(data, columns=COLUMNS, include_control=True, salvage=True)
    return stream.to_table().to_pylist(), stream.faults


FILES = {name: batches_of(name) for name in NAMES}
CUT = st.tuples(st.floats(0, 1), st.floats(0, 1), st.binary(max_size=40), st.integers(0, 40))


@settings(derandomize=True, max_examples=300, deadline=None)
@given(name=st.sampled_from(NAMES), cuts=st.lists(CUT, min_size=1, max_size=3))
def test_other_batches_survive(name: str, cuts: list[tuple[float, float, bytes, int]]):
    batches = FILES[name]
    parts = [part for part, _ in batches]
    hit = set()
    for which, where, new, removed in cuts:
        number = int(which * (len(parts) - 2))  # a batch that is cut short at the end of a file is a torn tail
        position = int(where * len(parts[number]))
        parts[number] = parts[number][:position] + new + parts[number][position + removed :]
        hit.add(number)
    data = b"".join(parts)
    for number in hit:  # what is missing may be made good by the bytes that follow, which the next batch then lacks
        assume(not data[sum(map(len, parts[:number])) :].startswith(batches[number][0]))
    rows, faults = decoded(data)
    untouched = [row for number, (_, of_batch) in enumerate(batches) if number not in hit for row in of_batch]
    rest = iter(rows)
    assert all(row in rest for row in untouched)  # in their order; what is left of the others may lie between
    assert all(fault.position is not None and fault.position < len(data) for fault in faults)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(name=st.sampled_from(NAMES), garbage=st.lists(st.binary(min_size=1, max_size=90), min_size=1, max_size=4))
def test_garbage_between_batches(name: str, garbage: list[bytes]):
    """Each piece is one fault, of its own size, and no row is lost."""
    batches = FILES[name]
    data, places = b"", []
    for number, (part, _) in enumerate(batches):
        if number and number <= len(garbage):
            places.append((len(data), len(garbage[number - 1])))
            data += garbage[number - 1]
        data += part
    rows, faults = decoded(data)
    assert rows == [row for _, of_batch in batches for row in of_batch]
    assert [(fault.position, fault.size_in_bytes) for fault in faults] == places[: len(batches) - 1]
