"""Damage that changes how long a batch is costs that batch alone, in every kind of file and in any number of places."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import COLUMNS

import kraftlog
from golden_files import GOLDEN
from kraftlog.log.scan import HeaderScan

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
    parts = [data[start:end] for start, end in zip(starts, starts[1:], strict=False)]
    return [(part, decoded(part)[0]) for part in parts]


def decoded(data: bytes) -> tuple[list[dict], list[kraftlog.Fault]]:
    stream = kraftlog.decode(data, columns=COLUMNS, include_control=True)
    return stream.to_table().to_pylist(), stream.faults


FILES = [batches_of(name) for name in NAMES]
CUT = st.tuples(st.floats(0, 1), st.floats(0, 1), st.binary(max_size=40), st.integers(0, 40))


@settings(derandomize=True, max_examples=300, deadline=None)
@given(batches=st.sampled_from(FILES), cuts=st.lists(CUT, min_size=1, max_size=3))
def test_other_batches_survive(batches: list[Batch], cuts: list[tuple[float, float, bytes, int]]):
    parts = [part for part, _ in batches]
    hit = set()
    for which, where, new, removed in cuts:
        number = int(which * (len(parts) - 2))  # a batch that is cut short at the end of a file is a torn tail
        position = int(where * len(parts[number]))
        parts[number] = parts[number][:position] + new + parts[number][position + removed :]
        hit.add(number)
    assume(all(parts[number] != batches[number][0] for number in hit))
    rows, faults = decoded(b"".join(parts))
    untouched = [row for number, (_, of_batch) in enumerate(batches) if number not in hit for row in of_batch]
    rest = iter(rows)
    assert all(row in rest for row in untouched)  # in their order; what is left of the others may lie between
    assert len(faults) >= 1 or len(rows) >= len(untouched)
    assert sum(len(part) for part in parts) >= max((fault.position or 0 for fault in faults), default=0)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(batches=st.sampled_from(FILES), garbage=st.lists(st.binary(min_size=1, max_size=90), min_size=1, max_size=4))
def test_garbage_between_batches(batches: list[Batch], garbage: list[bytes]):
    """Each piece is one fault, of its own size, and no row is lost."""
    data, places = b"", []
    for number, (part, _) in enumerate(batches):
        if number and number <= len(garbage):
            places.append((len(data), len(garbage[number - 1])))
            data += garbage[number - 1]
        data += part
    rows, faults = decoded(data)
    assert rows == [row for _, of_batch in batches for row in of_batch]
    assert [(fault.position, fault.size_in_bytes) for fault in faults] == places[: len(batches) - 1]
