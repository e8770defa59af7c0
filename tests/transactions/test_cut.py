"""Cuts of few partitions against all sets of end offsets, tried one by one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.topics import TopicPartition
from kraftlog.transactions.cut import Cut, CutTime, Side, WholeTransaction, greatest_cut, least_cut
from kraftlog.transactions.transaction import ABORTED, COMMITTED, MARKER_EPOCH, MISSING, OPEN, Part, Transaction

PARTITIONS = [TopicPartition("t", number) for number in range(3)]
END = 5
OFFSETS = st.integers(0, END)


@st.composite
def histories(draw: st.DrawFn) -> list[WholeTransaction]:
    """Draw transactions whose markers have offsets of their own."""
    places = draw(st.permutations([(of, offset) for of in PARTITIONS for offset in range(END)]))
    transactions = []
    while places and draw(st.booleans()):
        count = draw(st.integers(1, min(3, len(places))))
        markers, places = dict(places[:count]), places[count:]
        inputs = draw(st.lists(st.tuples(st.sampled_from(PARTITIONS), st.integers(0, END + 1)), max_size=2))
        transactions.append(WholeTransaction("1:1", (*markers.items(),), draw(st.integers(0, 4)) == 0, (*inputs,)))
    return transactions


def is_cut(ends: dict[TopicPartition, int], transactions: list[WholeTransaction]) -> bool:
    """Say it as the definition does."""
    for one in transactions:
        inside = [offset < ends[of] for of, offset in one.markers]
        if any(inside) and (one.is_ending or not all(inside)):
            return False
        if any(inside) and any(offset > ends[of] for of, offset in one.input_offsets):
            return False
    return True


def cuts(transactions: list[WholeTransaction]) -> list[tuple[int, ...]]:
    every = product(range(END + 1), repeat=len(PARTITIONS))
    return [ends for ends in every if is_cut(dict(zip(PARTITIONS, ends, strict=True)), transactions)]


@given(histories(), st.tuples(OFFSETS, OFFSETS, OFFSETS))
def test_the_greatest_and_the_least_cut(transactions: list[WholeTransaction], asked: tuple[int, ...]):
    bounds, ends = dict(zip(PARTITIONS, asked, strict=True)), dict.fromkeys(PARTITIONS, END)
    every = cuts(transactions)
    below = [one for one in every if all(end <= bound for end, bound in zip(one, asked, strict=True))]
    above = [one for one in every if all(end >= bound for end, bound in zip(one, asked, strict=True))]
    assert tuple(greatest_cut(bounds, transactions)[of] for of in PARTITIONS) == tuple(map(max, zip(*below)))  # noqa: B905
    if above:
        found = least_cut(bounds, ends, transactions)
        assert tuple(found[of] for of in PARTITIONS) == tuple(map(min, zip(*above)))  # noqa: B905
    else:
        with pytest.raises(ValueError, match="no cut: transaction 1:1 "):
            least_cut(bounds, ends, transactions)


def test_partitions_that_are_not_given_do_not_count():
    first, other = PARTITIONS[0], TopicPartition("elsewhere", 0)
    transactions = [WholeTransaction("1:1", ((first, 3), (other, 9)), False, ((other, 100),))]
    assert greatest_cut({first: 5}, transactions) == {first: 5}
    assert least_cut({first: 4}, {first: 5}, transactions) == {first: 4}


@pytest.mark.parametrize(
    ("state", "is_ending"), [(OPEN, True), (MISSING, False), (None, False), (COMMITTED, False), (ABORTED, False)]
)
def test_what_a_cut_must_not_tear_of_a_transaction(state: str | None, is_ending: bool):
    """A marker that is still to come holds the cut back; one that the log lacks for good does not."""
    of, other = PARTITIONS[:2]
    ended = Part(of, 1, 0, 1, COMMITTED, 0, 3, 4)
    last = Part(other, 1, 0, 1, state, 0, 3, 4) if state in (COMMITTED, ABORTED) else Part(other, 1, 0, -1, state, 0, 3)
    one = Transaction(1, 1, MARKER_EPOCH, [ended, last])
    whole = WholeTransaction.of(one, [(other, 7)])
    markers = ((of, 4), (other, 4)) if state in (COMMITTED, ABORTED) else ((of, 4),)
    assert whole == WholeTransaction("1:1", markers, is_ending, ((other, 7),))
    aborted = Transaction(1, 1, MARKER_EPOCH, [ended._replace(state=ABORTED)])
    assert WholeTransaction.of(aborted, [(other, 7)]).input_offsets == ()
    assert not WholeTransaction.of(Transaction(1, 1, MARKER_EPOCH, [Part(of, 1, 0, -1, OPEN, 0, 3)])).is_ending


def test_a_cut_ends_where_a_batch_does():
    of, source = PARTITIONS[:2]
    transactions = [WholeTransaction("1:1", ((of, 3),), False, ((source, 7),))]
    found = least_cut({of: 4, source: 0}, {of: 5, source: 20}, transactions, lambda _, offset: -(-offset // 10) * 10)
    assert found == {of: 4, source: 10}


def test_how_far_a_cut_lies_from_its_time():
    of, other, third = PARTITIONS
    cut = Cut({of: 3, other: 8, third: 1}, {of: 4, other: 5, third: 1}, ("what is not known",))
    assert list(cut.notes()) == [
        "t-0: ends at offset 3, 1 offset before the time, so that no transaction is torn",
        "t-1: ends at offset 8, 3 offsets after the time, so that no transaction is torn",
        "what is not known",
    ]


def test_times():
    assert CutTime.of("end") == CutTime(Side.END)
    assert CutTime.of("at-or-after:2024-01-01T00:00:00Z") == CutTime(Side.AT_OR_AFTER, 1704067200000)
    for text in ("", "end:", "end:2024-01-01T00:00:00Z", "at-or-after", "at-or-before:", "at:5", "at-or-before:soon"):
        with pytest.raises(ValueError):
            CutTime.of(text)
