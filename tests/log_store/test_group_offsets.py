"""What commits of offsets add up to: those that wait for a transaction, and those of which another one is later."""

from __future__ import annotations

import pytest

from kraftlog.log_store.group_offsets import Commit, GroupOffsets, OffsetAndMetadata

AT = ("orders", 0)


def commit(offset: int, record_offset: int, **ids: int) -> Commit:
    return Commit("g", {AT: OffsetAndMetadata(offset)}, record_offset=record_offset, **ids)


def begun(*commits: Commit) -> GroupOffsets:
    offsets = GroupOffsets()
    for each in commits:
        offsets.begin(each)
    return offsets


def committed(offsets: GroupOffsets) -> int | None:
    return getattr(offsets.committed("g").get(AT), "offset", None)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_later_record_counts(is_reversed: bool):
    commits = [commit(5, record_offset=10), commit(3, record_offset=11)]
    offsets = begun(*commits)
    for each in reversed(commits) if is_reversed else commits:
        offsets.finish(each)
    assert committed(offsets) == 3


@pytest.mark.parametrize(
    ("epoch", "is_commit", "expected"), [(3, True, None), (4, True, 5), (5, True, 5), (5, False, None)]
)
def test_the_end_of_a_transaction_takes_offsets_up_to_its_epoch(epoch: int, is_commit: bool, expected: int | None):
    """Who fences a producer raises the epoch before the transaction ends."""
    offsets = begun(commit(5, 10, producer_id=7, producer_epoch=4), commit(9, 11, producer_id=8, producer_epoch=4))
    assert (committed(offsets), offsets.unstable("g"), offsets.unstable("other")) == (None, {AT}, set())
    offsets.end(7, epoch, is_commit=is_commit)
    assert committed(offsets) == expected
    offsets.end(8, 4, is_commit=False)
    assert offsets.unstable("g") == ({AT} if epoch == 3 else set())
    offsets.end(7, 5, is_commit=True)
    assert committed(offsets) == (5 if is_commit else None)


@pytest.mark.parametrize("producer_id", [0, 1])  # the first one that a store gives out is 0
def test_what_waits_for_a_transaction_is_unstable(producer_id: int):
    assert begun(commit(5, 10, producer_id=producer_id, producer_epoch=0)).unstable("g") == {AT}


def test_what_waits_for_the_disk_alone_is_stable():
    waiting = commit(5, 10)
    offsets = begun(waiting)
    offsets.end(-1, 5, is_commit=True)
    assert (committed(offsets), offsets.unstable("g")) == (None, set())
    offsets.finish(waiting)
    offsets.end(-1, -1, is_commit=False)
    assert committed(offsets) == 5


def test_a_tombstone_removes_what_is_before_it():
    """Also what waits for a transaction: in Kafka a committed transaction does not bring it back."""
    before, behind = commit(5, 10, producer_id=7, producer_epoch=0), commit(6, 12, producer_id=8, producer_epoch=0)
    offsets = begun(before, behind)
    offsets.finish(commit(4, 9))
    assert offsets.of_topic("orders") == {"g": [AT]}
    assert offsets.of_topic("others") == {}
    offsets.forget("other", [AT], record_offset=11)
    assert committed(offsets) == 4
    offsets.forget("g", [AT], record_offset=11)
    assert committed(offsets) is None
    offsets.end(7, 0, is_commit=True)
    assert committed(offsets) is None
    offsets.end(8, 0, is_commit=True)
    offsets.forget("g", [AT], record_offset=11)
    assert committed(offsets) == 6
