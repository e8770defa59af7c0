"""Sequences and epochs of a partition's producers, as a broker checks them."""

from __future__ import annotations

import pytest

from kraftlog.log_store.errors import InvalidProducerEpochError, InvalidTransactionError, OutOfOrderSequenceError
from kraftlog.log_store.producer_entries import KEPT_BATCHES, ProducerEntries, Stamp
from kraftlog.transactions.last_batches import LastBatches
from kraftlog.transactions.producer_state import SEQUENCES, ProducerState


def written(batches: int, rows: int = 3, first: int = 0) -> ProducerEntries:
    entries = ProducerEntries()
    for at in range(batches):
        sequence = (first + at * rows) % SEQUENCES
        entries.add(Stamp(7, 0, sequence), 100 + at * rows, 100 + at * rows + rows - 1, at)
    return entries


def test_the_next_sequence_is_taken():
    entries = written(2)
    assert entries.check(Stamp(7, 0, 6), 5, "t-0") is None


@pytest.mark.parametrize("back", range(1, KEPT_BATCHES + 1))
def test_the_last_five_batches_are_known_again(back: int):
    entries = written(7)
    found = entries.check(Stamp(7, 0, (7 - back) * 3), 3, "t-0")
    assert found is not None
    assert (found.base_offset, found.last_offset) == (100 + (7 - back) * 3, 102 + (7 - back) * 3)


@pytest.mark.parametrize(("sequence", "rows"), [(3, 3), (0, 3), (20, 1), (22, 3), (18, 2)])
def test_older_ones_gaps_and_parts_are_refused(sequence: int, rows: int):
    with pytest.raises(OutOfOrderSequenceError, match=rf"t-0: producer 7: expected sequence 21, found {sequence}"):
        written(7).check(Stamp(7, 0, sequence), rows, "t-0")


def test_sequences_begin_anew_behind_the_largest():
    entries = written(1, rows=3, first=SEQUENCES - 2)
    assert entries.check(Stamp(7, 0, 1), 1, "t-0") is None
    assert entries.check(Stamp(7, 0, SEQUENCES - 2), 3, "t-0") is not None
    assert written(1, rows=2, first=SEQUENCES - 2).check(Stamp(7, 0, 0), 1, "t-0") is None


def test_epochs():
    entries = written(1)
    with pytest.raises(OutOfOrderSequenceError, match="expected sequence 0, found 3"):
        entries.check(Stamp(7, 1, 3), 1, "t-0")
    assert entries.check(Stamp(7, 1, 0), 1, "t-0") is None
    entries.add(Stamp(7, 1, 0), 103, 103, 9)
    with pytest.raises(InvalidProducerEpochError, match="epoch 0 is stale; current epoch is 1"):
        entries.check(Stamp(7, 0, 3), 1, "t-0")


@pytest.mark.parametrize(("marker_epoch", "epoch"), [(1, 1), (0, 0), (0, 1)])
def test_the_first_sequence_behind_a_marker_without_batches(marker_epoch: int, epoch: int):
    """The producer is known, and so its first sequence: ``ProducerAppendInfo.checkSequence``."""
    entries = ProducerEntries()
    entries.end(7, marker_epoch, 1)
    with pytest.raises(OutOfOrderSequenceError, match="t-0: producer 7: expected sequence 0, found 3"):
        entries.check(Stamp(7, epoch, 3, is_transactional=True), 1, "t-0")
    assert entries.check(Stamp(7, epoch, 0, is_transactional=True), 1, "t-0") is None


def test_an_unknown_producer_may_go_on_with_any_sequence():
    """Its batches may have been deleted, or it has written nothing for a day."""
    entries = written(2)
    entries.expire(50)
    assert entries.check(Stamp(7, 0, 6), 1, "t-0") is None
    assert entries.check(Stamp(7, 0, 9), 1, "t-0") is None


def test_transactions():
    entries = ProducerEntries()
    assert entries.first_unstable_offset() is None
    entries.add(Stamp(7, 0, 0, is_transactional=True), 10, 12, 1)
    entries.add(Stamp(8, 0, 0, is_transactional=True), 13, 13, 2)
    entries.add(Stamp(7, 0, 3, is_transactional=True), 14, 14, 3)
    assert entries.first_unstable_offset() == 10
    with pytest.raises(InvalidTransactionError, match="not a transactional batch, within a transaction"):
        entries.check(Stamp(7, 0, 4), 1, "t-0")
    entries.end(7, 1, 4)
    assert (entries.first_unstable_offset(), sorted(entries.open_transactions())) == (13, [8])
    assert entries.check(Stamp(7, 1, 0, is_transactional=True), 1, "t-0") is None


@pytest.mark.parametrize(
    ("epoch", "raises_epoch", "is_open", "expected"),
    [
        (3, False, True, True),  # the partition is further on already
        (4, False, True, False),
        (4, False, False, True),
        (4, True, True, True),  # what is open is the next transaction
        (5, True, True, False),
        (5, True, False, False),  # a partition without data gets one, too
    ],
)
def test_whether_a_marker_is_there(epoch: int, raises_epoch: bool, is_open: bool, expected: bool):
    entries = ProducerEntries()
    entries.add(Stamp(7, 4, 0, is_transactional=is_open), 10, 12, 1)
    entry = entries.get(7)
    assert entry is not None
    assert entry.has_marker(epoch, raises_epoch=raises_epoch) is expected


def test_the_sequence_of_the_next_batch():
    entry = written(2, rows=3, first=SEQUENCES - 6).get(7)
    assert entry is not None
    assert (entry.next_sequence(0), entry.next_sequence(1)) == (0, 0)
    entry = written(2, rows=3).get(7)
    assert entry is not None
    assert (entry.next_sequence(0), entry.next_sequence(1)) == (6, 0)


def test_all_but_one_are_forgotten():
    entries = ProducerEntries()
    for producer_id in (7, 8):
        entries.add(Stamp(producer_id, 0, 0, is_transactional=True), producer_id, producer_id, 1)
    entries.keep(8)
    assert (len(entries), entries.first_unstable_offset(), list(entries.open_transactions())) == (1, 8, [8])


def test_producers_without_ids_are_not_kept():
    entries = ProducerEntries()
    entries.add(Stamp(), 0, 5, 1)
    assert entries.get(-1) is None
    assert entries.check(Stamp(), 1, "t-0") is None


def test_states_of_a_log():
    state = ProducerState(7, 2, 4, 104, 2, 0, -1, 100)
    entries = ProducerEntries([state], LastBatches([state]).by_epoch())
    found = entries.check(Stamp(7, 2, 2, is_transactional=True), 3, "t-0")
    assert found is not None
    assert (found.base_offset, found.last_offset) == (102, 104)
    assert entries.first_unstable_offset() == 100
    assert entries.check(Stamp(7, 2, 5, is_transactional=True), 1, "t-0") is None


def test_batches_of_an_older_epoch_of_a_log():
    """Behind a marker that raises the epoch, as with transaction version 2, none of them is a duplicate."""
    batches = LastBatches([ProducerState(7, 2, 4, 104, 2, 0, -1, 100)]).by_epoch()
    entry = ProducerEntries([ProducerState(7, 3, -1, -1, 0, 0, 0, None)], batches).get(7)
    assert entry is not None
    assert (entry.next_sequence(3), list(entry.batches)) == (0, [])


def test_idle_producers_are_forgotten():
    entries = ProducerEntries()
    entries.add(Stamp(1, 0, 0, is_transactional=True), 0, 0, 10)
    for producer_id in (2, 3, 4):
        entries.add(Stamp(producer_id, 0, 0), producer_id, producer_id, 10 * producer_id)
    entries.add(Stamp(2, 0, 1), 5, 5, 50)
    entries.expire(20)
    assert len(entries) == 4  # the oldest one has an open transaction
    for _ in range(3):
        entries.expire(45)
    assert len(entries) == 2
    assert entries.get(2) is not None
    entries.end(1, 1, 60)
    for _ in range(3):
        entries.expire(55)
    assert len(entries) == 1
    assert entries.first_unstable_offset() is None


def test_idle_producers_of_a_log():
    states = [ProducerState(7, 0, 4, 20, 1, 100, -1, 15), ProducerState(8, 0, 0, 9, 0, 50, -1, None)]
    entries = ProducerEntries(states)
    entries.expire(80)
    assert (len(entries), entries.first_unstable_offset()) == (1, 15)


def test_open_transactions_of_a_log_are_in_order():
    """Who wrote last need not be who began last."""
    states = [ProducerState(7, 0, 0, 30, 0, 10, -1, 20), ProducerState(8, 0, 9, 40, 0, 20, -1, 5)]
    entries = ProducerEntries(states)
    assert (entries.first_unstable_offset(), list(entries.open_transactions())) == (5, [8, 7])
