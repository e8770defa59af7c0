"""Sequences, epochs and duplicates of idempotent producers: each finding, and each clause of its precondition."""

from __future__ import annotations

import pytest
from small_cluster import DAY, MINUTE, OFFSETS, SmallCluster, findings_of

from kraftlog.audit.producers import (
    epoch_findings,
    impossible_headers,
    late_begins,
    plain_batches,
    sequence_findings,
    suspected_duplicates,
)
from kraftlog.transactions.transaction import ONGOING, PREPARE_COMMIT


def plain(cluster: SmallCluster, sequence: int, epoch: int = 0, **options: object) -> int:
    return cluster.data("t-0", 1, epoch, sequence=sequence, transactional=False, **options)


def test_sequences_that_follow(cluster: SmallCluster):
    for sequence in range(3):
        plain(cluster, sequence)
    plain(cluster, 0, epoch=1)
    assert cluster.found(sequence_findings) == []
    assert cluster.found(epoch_findings) == []
    assert cluster.found(late_begins) == []


def test_a_gap_between_sequences(cluster: SmallCluster):
    plain(cluster, 0)
    plain(cluster, 3)
    assert cluster.found(sequence_findings) == [("sequence_gap", "t", 1)]
    (finding,) = findings_of(sequence_findings, cluster.directory)
    assert finding.known == "producer 1: expected base_sequence 1, found 3"


def test_sequences_continue_at_zero_after_the_largest(cluster: SmallCluster):
    plain(cluster, 2**31 - 2, values=("a", "b"))
    plain(cluster, 0)
    assert cluster.found(sequence_findings) == []
    plain(cluster, 2)
    assert cluster.found(sequence_findings) == [("sequence_gap", "t", 3)]


def test_a_new_epoch_begins_with_sequence_zero(cluster: SmallCluster):
    plain(cluster, 0)
    plain(cluster, 1, epoch=1)
    assert cluster.found(sequence_findings) == [("sequence_gap", "t", 1)]


def test_the_sequences_of_an_earlier_epoch_are_not_used_again(cluster: SmallCluster):
    plain(cluster, 0)
    plain(cluster, 2**31 - 1, epoch=1)
    assert cluster.found(sequence_findings) == [("sequence_gap", "t", 1)]


def test_a_gap_between_segments(cluster: SmallCluster):
    plain(cluster, 0)
    cluster.roll("t-0")
    plain(cluster, 1)
    cluster.roll("t-0")
    plain(cluster, 3)
    assert cluster.found(sequence_findings) == [("sequence_gap", "t", 2)]


def test_a_batch_that_an_earlier_segment_has(cluster: SmallCluster):
    plain(cluster, 0, values=("a",), at=5)
    cluster.data("t-0", values=("b",), at=6)
    cluster.roll("t-0")
    plain(cluster, 0, values=("a",), at=5)
    cluster.data("t-0", values=("b",), at=6)
    assert cluster.found(sequence_findings) == [("duplicate_batch", "t", 2)]
    assert cluster.found(suspected_duplicates) == [("suspected_duplicate", "t", 3)]


def test_an_epoch_that_a_marker_began_begins_with_sequence_zero(cluster: SmallCluster):
    cluster.data("t-0", 1, 0)
    cluster.marker("t-0", 1, 1)
    cluster.data("t-0", 1, 1, sequence=1)
    assert cluster.found(sequence_findings) == [("sequence_gap", "t", 2)]


def test_sequences_go_on_after_a_marker_that_keeps_the_epoch(cluster: SmallCluster):
    cluster.data("t-0", 1, 0)
    cluster.marker("t-0", 1, 0)
    cluster.data("t-0", 1, 0)
    assert cluster.found(sequence_findings) == []


def test_a_marker_whose_data_was_deleted_says_nothing_of_sequences(cluster: SmallCluster):
    cluster.marker("t-0", 1, 0)
    cluster.data("t-0", 1, 0, sequence=7)
    assert cluster.found(sequence_findings) == []


def test_sequences_across_missing_offsets_are_not_compared(cluster: SmallCluster):
    plain(cluster, 0)
    cluster.skip("t-0")
    plain(cluster, 3)
    plain(cluster, 0, epoch=2)
    cluster.skip("t-0")
    plain(cluster, 5, epoch=3)
    assert cluster.found(sequence_findings) == []


@pytest.mark.parametrize(("later", "count"), [(DAY - 1, 1), (DAY, 0)])
def test_a_broker_forgets_a_producer_after_a_day(cluster: SmallCluster, later: int, count: int):
    plain(cluster, 0, at=0)
    plain(cluster, 3, at=later)
    assert len(cluster.found(sequence_findings)) == count


@pytest.mark.parametrize(("later", "count"), [(DAY - 1, 1), (DAY, 0)])
def test_a_broker_forgets_an_epoch_after_a_day(cluster: SmallCluster, later: int, count: int):
    plain(cluster, 0, epoch=2, at=0)
    plain(cluster, 0, epoch=1, at=later)
    assert len(cluster.found(epoch_findings)) == count


def test_coordinators_write_every_batch_with_sequence_zero(cluster: SmallCluster):
    for _ in range(2):
        cluster.commit("t-0", 1, 1, 0)
    assert cluster.found(sequence_findings) == []
    assert cluster.found(late_begins) == []


def test_a_batch_that_is_there_twice(cluster: SmallCluster):
    plain(cluster, 0, values=("a", "b"), at=5)
    plain(cluster, 2)
    plain(cluster, 0, values=("a", "b"), at=5)
    assert cluster.found(sequence_findings) == [("duplicate_batch", "t", 3)]
    (finding,) = findings_of(sequence_findings, cluster.directory)
    assert finding.known.endswith("the batch at offset 0 has this sequence and the same records")


def test_a_sequence_that_is_used_again_for_other_records(cluster: SmallCluster):
    plain(cluster, 0, values=("a",))
    plain(cluster, 1)
    plain(cluster, 0, values=("b",))
    assert cluster.found(sequence_findings) == [("sequence_goes_back", "t", 2)]


def test_a_sequence_inside_of_an_earlier_batch(cluster: SmallCluster):
    plain(cluster, 0, values=("a", "b", "c"))
    plain(cluster, 1)
    assert cluster.found(sequence_findings) == [("sequence_goes_back", "t", 3)]


def test_a_fenced_producer_that_writes(cluster: SmallCluster):
    plain(cluster, 0, epoch=2)
    plain(cluster, 0, epoch=1)
    assert cluster.found(epoch_findings) == [("producer_epoch_goes_back", "t", 1)]


def test_a_batch_after_a_marker_of_a_greater_epoch(cluster: SmallCluster):
    cluster.data("t-0", 1, 0)
    cluster.marker("t-0", 1, 1)
    cluster.data("t-0", 1, 0)
    assert cluster.found(epoch_findings) == [("producer_epoch_goes_back", "t", 2)]


def test_a_transaction_with_batches_of_two_epochs(cluster: SmallCluster):
    cluster.data("t-0", 1, 0)
    cluster.data("t-0", 1, 1)
    assert cluster.found(epoch_findings) == [("producer_epoch_goes_back", "t", 1)]


def test_a_transaction_whose_marker_may_be_missing(cluster: SmallCluster):
    """It may have been damaged, or lie in a segment that is lost."""
    cluster.data("t-0", 1, 0)
    cluster.skip("t-0")
    cluster.data("t-0", 1, 1)
    cluster.skip("t-0")
    plain(cluster, 1, epoch=1)
    assert cluster.found(epoch_findings) == cluster.found(plain_batches) == []
    cluster.data("t-0", 1, 0)
    assert cluster.found(epoch_findings) == [("producer_epoch_goes_back", "t", 5)]


def test_a_batch_outside_of_the_transaction_of_its_producer(cluster: SmallCluster):
    cluster.data("t-0", 1, 0)
    cluster.data("t-0", 1, 0, transactional=False)
    assert cluster.found(plain_batches) == [("not_transactional", "t", 1)]


def test_a_transactional_producer_writes_nothing_outside_of_transactions(cluster: SmallCluster):
    cluster.data("t-0", 1, 0, transactional=False)
    cluster.data("t-0", 2, 0, transactional=False)
    assert cluster.found(plain_batches) == []
    cluster.state(ONGOING, 2, 0, "u-0")  # t may be a copy of a topic of another cluster, with the ids there
    assert cluster.found(plain_batches) == []
    cluster.state(ONGOING, 2, 0, "u-0", "t-1")
    assert cluster.found(plain_batches) == [("not_transactional", "t", 1)]


def test_leader_epochs_never_decrease(cluster: SmallCluster):
    for epoch in (-1, 0, 2, 2, 1, 2, -1):  # a tool may write batches without an epoch, and a broker go on
        cluster.leader_epoch = epoch
        cluster.data("t-0")
        cluster.roll("t-0")
    assert cluster.found(impossible_headers) == [("impossible_header", "t", 4), ("impossible_header", "t", 6)]


def test_coordinators_write_batches_of_producers_in_transactions_only(cluster: SmallCluster):
    cluster.commit("t-0", 1)
    cluster.commit("t-0", 2, 1, 0)
    cluster.marker(OFFSETS, 1, 0)
    cluster.data("t-0", 1, 0, transactional=False)
    assert cluster.found(impossible_headers) == []
    cluster.data(OFFSETS, 2, 0, transactional=False)
    assert cluster.found(impossible_headers) == [("impossible_header", "__consumer_offsets", 3)]


def coordinated(cluster: SmallCluster, epoch: int, **begin: int) -> None:
    """Write a transaction of version 2 whose producer has epoch 1, with data of another one in one partition."""
    cluster.state(ONGOING, 1, 1, "t-0", "t-1", at=1, **begin)
    cluster.data("t-0", 1, 1)
    cluster.data("t-1", 1, epoch)
    cluster.state(PREPARE_COMMIT, 1, 2, "t-0", "t-1", **begin)
    for name in ("t-0", "t-1"):
        cluster.marker(name, 1, 2)


def test_batches_have_the_epoch_that_the_coordinator_gave_their_producer(cluster: SmallCluster):
    coordinated(cluster, 0)
    assert cluster.found(epoch_findings) == [("producer_epoch_goes_back", "t", 0)]
    (finding,) = findings_of(epoch_findings, cluster.directory)
    assert finding.partition == 1
    assert finding.known == "producer 1: batches of epoch 0 in a transaction of tx that has epoch 1"


def test_batches_of_the_epoch_of_their_producer(cluster: SmallCluster):
    coordinated(cluster, 1)
    assert cluster.found(epoch_findings) == []


def test_a_partition_that_was_written_before_the_transaction_may_be_of_another_cluster(cluster: SmallCluster):
    coordinated(cluster, 0, start=MINUTE)
    assert cluster.found(epoch_findings) == []


def test_a_coordinator_whose_record_of_the_begin_is_gone_does_not_know_the_epoch_of_batches(cluster: SmallCluster):
    cluster.data("t-1", 1, 0)
    cluster.state(PREPARE_COMMIT, 1, 2, "t-1")
    cluster.marker("t-1", 1, 2)
    assert cluster.found(epoch_findings) == []


def test_an_epoch_that_the_partition_contradicts_is_one_finding(cluster: SmallCluster):
    cluster.state(ONGOING, 1, 1, "t-0")
    cluster.data("t-0", 1, 0)
    cluster.data("t-0", 1, 1, sequence=0)
    cluster.state(PREPARE_COMMIT, 1, 2, "t-0")
    cluster.marker("t-0", 1, 2)
    assert cluster.found(epoch_findings) == [("producer_epoch_goes_back", "t", 1)]


def test_epochs_are_of_a_producer(cluster: SmallCluster):
    cluster.data("t-0", 1, 5)
    cluster.data("t-0", 2, 0)
    assert cluster.found(epoch_findings) == []


def test_the_first_batches_of_a_producer_are_missing(cluster: SmallCluster):
    cluster.data("t-0")
    plain(cluster, 4)
    plain(cluster, 5)
    assert cluster.found(late_begins) == [("first_sequence_not_zero", "t", 1)]


def test_where_the_log_lacks_offsets_a_producer_may_have_begun_there(cluster: SmallCluster):
    cluster.skip("t-0")
    plain(cluster, 4)
    assert cluster.found(late_begins) == []


def test_a_batch_that_was_sent_again_without_a_producer_id(cluster: SmallCluster):
    cluster.data("t-0", values=("a",), at=5)
    cluster.data("t-0", values=("b",), at=6)
    cluster.data("t-0", values=("a",), at=5)
    assert cluster.found(suspected_duplicates) == [("suspected_duplicate", "t", 2)]
    (finding,) = findings_of(suspected_duplicates, cluster.directory)
    assert finding.known == "1 batch repeats an earlier one; that at offset 2 repeats 0"


def test_a_batch_that_was_sent_again_in_a_new_epoch(cluster: SmallCluster):
    plain(cluster, 0, values=("a",), at=5)
    plain(cluster, 0, epoch=1, values=("a",), at=5)
    assert cluster.found(suspected_duplicates) == [("suspected_duplicate", "t", 1)]


@pytest.mark.parametrize(("value", "at"), [("b", 5), ("a", 6)])
def test_other_values_and_times_are_no_duplicates(cluster: SmallCluster, value: str, at: int):
    cluster.data("t-0", values=("a",), at=5)
    cluster.data("t-0", values=(value,), at=at)
    assert cluster.found(suspected_duplicates) == []


def test_a_producer_that_numbers_its_batches_sends_none_again(cluster: SmallCluster):
    plain(cluster, 0, values=("a",), at=5)
    plain(cluster, 1, values=("a",), at=5)
    assert cluster.found(suspected_duplicates) == []


def test_what_was_aborted_and_sent_again_is_there_once(cluster: SmallCluster):
    cluster.data("t-0", 1, 0, values=("a",), at=5)
    cluster.marker("t-0", 1, 1, "ABORT")
    cluster.data("t-0", 1, 1, values=("a",), at=5)
    cluster.marker("t-0", 1, 2)
    assert cluster.found(suspected_duplicates) == []
    cluster.data("t-0", 1, 2, values=("a",), at=5)
    cluster.marker("t-0", 1, 3)
    assert cluster.found(suspected_duplicates) == [("suspected_duplicate", "t", 4)]


def test_records_of_coordinators_may_be_alike(cluster: SmallCluster):
    for _ in range(2):
        cluster.commit("t-0", 1, at=5)
    assert cluster.found(suspected_duplicates) == []
    assert cluster.ends[OFFSETS] == 2
