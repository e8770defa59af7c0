"""Metadata logs with missing offsets: all ways of reading give the answer of the rules, and the same one."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_logs import write_log
from metadata_twin import Batch, MetadataTwin

import kraftlog
from kraftlog.errors import Fault
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import ImageAt, image_at, image_steps

NOTHING = ImageAt(Image.empty(), -1, -1, -1)
COLUMNS = ["begin_offset", "end_offset", "state", "records_count"]
OF_TRANSACTIONS = {
    *("missing_offsets", "damaged_transaction", "begun_before_log"),
    *("begin_inside_transaction", "end_outside_transaction"),
}


def topics_of(at: ImageAt) -> list[int]:
    return sorted(int(name[1:]) for name in at.image.tables()["TopicRecord"]["name"].to_pylist())


def codes(faults: list[Fault]) -> Counter[str]:
    return Counter(fault.error for fault in faults if fault.error in OF_TRANSACTIONS)


def laid_out(start: int, steps: list[tuple[tuple[str, ...], int, bool]]) -> list[Batch]:
    """Return batches of steps: records, by how much the leader epoch rises, whether a LEADER_CHANGE is written."""
    found, offset, epoch = [], start, 1
    for kinds, rise, has_change in steps:
        epoch += rise
        if rise and has_change:
            found.append(Batch(offset, epoch, ("change",)))
            offset += 1
        found.append(Batch(offset, epoch, kinds))
        offset += len(kinds)
    return found


KINDS = st.sampled_from(["data", "data", "data", "begin", "end", "abort"])
STEP = st.tuples(
    st.lists(KINDS, min_size=1, max_size=4).map(tuple),
    st.sampled_from([0, 0, 0, 1, 2]),
    st.sampled_from([True, True, False]),
)
NUMBERS = st.sets(st.integers(0, 24), max_size=4)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([0, 0, 10]), st.lists(STEP, min_size=1, max_size=14), NUMBERS, NUMBERS, NUMBERS, st.data())
def test_all_readers_agree(
    start: int, steps: list, removed: set[int], bad: set[int], cuts: set[int], data: st.DataObject
) -> None:
    """Images at any offset, their steps, read_committed, the table and the checks."""
    batches = laid_out(start, steps)
    left = [batch for number, batch in enumerate(batches) if number not in removed | bad]
    last_cut = max([cut for cut in cuts if cut < len(batches)], default=0)
    twin = MetadataTwin(start, left, batches[last_cut].base_offset)
    with tempfile.TemporaryDirectory() as directory:
        folder = write_log(Path(directory), batches, removed=removed, bad=bad, cuts=cuts)
        opened = kraftlog.open(folder)
        stream = opened.records(["offset"], isolation_level="read_committed")
        assert stream.to_table()["offset"].to_pylist() == sorted(twin.visible_at)
        assert codes(stream.faults) == Counter(twin.errors)
        rows = opened.records(["offset", "visible_at"]).to_table().to_pylist()
        assert {row["offset"]: row["visible_at"] for row in rows if row["visible_at"] is not None} == twin.visible_at
        table = opened.scan("metadata_transactions", COLUMNS)
        assert table.to_table().to_pylist() == twin.transactions
        assert codes(table.faults) == Counter(twin.errors)
        assert codes(list(opened.verify())) == Counter(twin.errors)
        errors = opened.errors()["error"].to_pylist()
        assert Counter(error for error in errors if error in OF_TRANSACTIONS) == Counter(twin.errors)
        log = MetadataLog.open(folder)
        at = image_at(log, None, faults := [])
        assert topics_of(at) == sorted(twin.visible_at)
        assert codes(faults) == Counter(twin.errors)
        assert at.offset == (left[-1].next_offset - 1 if left else -1)
        offset = data.draw(st.integers(start - 1, batches[-1].next_offset))
        bounded = image_at(log, offset, [])
        assert topics_of(bounded) == sorted(at for at, seen in twin.visible_at.items() if seen <= offset)
        images = list(image_steps(log, bounded, None, []))
        assert [image.offset for image in images] == sorted({image.offset for image in images})
        assert topics_of(images[-1] if images else bounded) == sorted(twin.visible_at)
        for image in images:
            assert topics_of(image) == sorted(at for at, seen in twin.visible_at.items() if seen <= image.offset)


X, BEGUN, ABORT = ("data",), ("begin", "data"), ("abort",)
WHOLE = ("begin", "data", "end")
CASES = {
    "Abort lost, then a whole transaction": ([(0, 1, X), (1, 1, BEGUN), (4, 2, WHOLE), (7, 2, X)], [0, 5, 7]),
    "End and Begin lost": ([(0, 1, X), (1, 1, BEGUN), (5, 2, ("data", "end")), (7, 2, X)], [0, 7]),
    "Abort lost, then records and a transaction": ([(0, 1, BEGUN), (3, 2, X), (4, 2, WHOLE)], [3, 5]),
    "End lost, then records": ([(0, 1, BEGUN), (3, 2, X), (4, 2, X)], [3, 4]),
    "End lost, records of the same epoch": ([(0, 1, BEGUN), (3, 1, X), (4, 1, X)], []),
    "End lost, records of the same epoch, then a Begin": ([(0, 1, BEGUN), (3, 1, X), (4, 1, WHOLE)], [3, 5]),
    "End lost, records, then an Abort of a new leader": ([(0, 1, BEGUN), (3, 1, X), (4, 2, (*ABORT, "data"))], [5]),
    "records lost, End there": ([(0, 1, BEGUN), (3, 1, ("data", "end", "data"))], [5]),
    "Begin lost": ([(0, 1, X), (3, 1, ("data", "end", "data"))], [0, 5]),
    "Begin or more lost, two gaps": ([(0, 1, X), (3, 1, X), (6, 1, ("data", "end", "data"))], [0, 8]),
    "records outside lost": ([(0, 1, X), (3, 1, X), (4, 1, WHOLE)], [0, 3, 5]),
    "nested Begin": ([(0, 1, BEGUN), (2, 2, (*WHOLE, "data"))], [1, 3, 5]),
    "Abort, then others (E7)": ([(0, 1, ("begin", "data", "abort", "data"))], [3]),
    "Abort and Begin in a batch (E8)": ([(0, 1, BEGUN), (2, 2, ("abort", *WHOLE))], [4]),
    "End and Abort outside": ([(0, 1, ("data", "end", "data", "abort"))], [0, 2]),
    "newer epoch without gap": ([(0, 1, BEGUN), (2, 2, ("data", "end"))], [1, 2]),
    "log starts inside": ([(10, 1, ("data", "end", "data"))], [10, 12]),
    "log starts inside, gap": ([(10, 1, X), (13, 1, ("data", "end", "data"))], [15]),
}


@pytest.mark.parametrize("case", CASES)
def test_cases(case: str, tmp_path: Path) -> None:
    """What is visible, worked out by hand from the rules."""
    batches, visible = CASES[case]
    folder = write_log(tmp_path, [Batch(*batch) for batch in batches])
    assert topics_of(image_at(MetadataLog.open(folder), None, [])) == visible
    stream = kraftlog.open(folder).records(["offset"], isolation_level="read_committed")
    assert stream.to_table()["offset"].to_pylist() == visible


def test_bad_byte_in_an_end(tmp_path: Path) -> None:
    """What the transaction holds is left out, and nothing else."""
    batches = [Batch(0, 1, BEGUN), Batch(2, 1, ("end",)), *(Batch(3 + at, 2, X) for at in range(50))]
    folder = write_log(tmp_path, batches, bad=[1])
    at = image_at(MetadataLog.open(folder), None, faults := [])
    assert topics_of(at) == list(range(3, 53))
    assert (at.offset, at.open_since) == (52, None)
    assert [fault.error for fault in faults] == ["missing_offsets", "damaged_transaction", "bad_crc"]
    assert "offsets 0 to 1 are of a transaction that is not whole" in faults[1].message


def test_open_transaction_with_a_gap_is_told(tmp_path: Path) -> None:
    """To the end of the log nothing says that it is over."""
    folder = write_log(tmp_path, [Batch(0, 1, BEGUN), Batch(3, 1, X)])
    at = image_at(MetadataLog.open(folder), None, faults := [])
    assert (topics_of(at), at.open_since) == ([], 0)
    assert "offsets from 0 on are of a transaction that is open, and some are missing" in faults[1].message
    rows = kraftlog.open(folder).metadata_transactions(COLUMNS).to_pylist()
    assert rows == [{"begin_offset": 0, "end_offset": None, "state": "open", "records_count": 2}]
