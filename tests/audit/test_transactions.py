"""Transactions against each other and their coordinators: each finding, and each clause of its precondition."""

from __future__ import annotations

import pytest
from small_cluster import DAY, MINUTE, OFFSETS, SECOND, STATE, SmallCluster, findings_of

from kraftlog.audit.lost_markers import lost_markers
from kraftlog.audit.producers import epoch_findings
from kraftlog.audit.transactions import (
    coordinator_transitions,
    marker_epochs,
    markers_without_decision,
    markers_without_records,
    open_transactions,
    torn_transactions,
)
from kraftlog.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)


def committed(cluster: SmallCluster, *names: str, epoch: int = 0, listed: tuple[str, ...] | None = None) -> None:
    """Write a transaction of version 2 as a cluster does."""
    listed, start = names if listed is None else listed, cluster.now
    cluster.state(ONGOING, 1, epoch, *listed, start=start)
    for name in names:
        cluster.data(name, 1, epoch)
    cluster.state(PREPARE_COMMIT, 1, epoch + 1, *listed, start=start)
    for name in names:
        cluster.marker(name, 1, epoch + 1)
    cluster.state(COMPLETE_COMMIT, 1, epoch + 1, start=start)


def begin(cluster: SmallCluster) -> None:
    cluster.state(EMPTY, 1, 0)


STATES = {"COMMIT": (PREPARE_COMMIT, COMPLETE_COMMIT), "ABORT": (PREPARE_ABORT, COMPLETE_ABORT)}


def ended(
    cluster: SmallCluster, epoch: int, version: int, kind: str, *, other: str | None = None, is_cleaned: bool = False
) -> int:
    """Write a transaction of "t-0" and "t-1", and return the offset of its marker in "t-1".

    Parameters
    ----------
    cluster : SmallCluster
    epoch : int
        Of the data.
    version : int
    kind : str
        COMMIT or ABORT.
    other : str, optional
        The marker of "t-1", if it is another one.
    is_cleaned : bool
        Whether the data of "t-1" is gone.
    """
    prepared, completed = STATES[kind]
    start, marker_epoch = cluster.now, epoch + (version == 2)
    cluster.state(ONGOING, 1, epoch, "t-0", "t-1", start=start, version=version)
    cluster.data("t-0", 1, epoch)
    if is_cleaned:
        cluster.skip("t-1")
    else:
        cluster.data("t-1", 1, epoch)
    cluster.state(prepared, 1, marker_epoch, "t-0", "t-1", start=start, version=version)
    cluster.marker("t-0", 1, marker_epoch, kind)
    marker = cluster.marker("t-1", 1, marker_epoch, other or kind)
    cluster.state(completed, 1, marker_epoch, start=start, version=version)
    return marker


def test_a_transaction_over_two_partitions(cluster: SmallCluster):
    begin(cluster)
    committed(cluster, "t-0", "t-1")
    committed(cluster, "t-1", "t-0", epoch=1)
    for check in CHECKS:
        assert cluster.found(check) == []


def test_a_torn_transaction(cluster: SmallCluster):
    for name, kind in (("t-0", "COMMIT"), ("t-1", "ABORT")):
        cluster.data(name, 1, 0)
        cluster.marker(name, 1, 1, kind)
    assert cluster.found(torn_transactions) == [("torn_transaction", "t", 1)]


CHECKS = (
    torn_transactions,
    markers_without_decision,
    markers_without_records,
    marker_epochs,
    coordinator_transitions,
    open_transactions,
    lost_markers,
    epoch_findings,
)


@pytest.mark.parametrize("first", STATES)
@pytest.mark.parametrize("second", STATES)
@pytest.mark.parametrize("is_cleaned", [False, True])
def test_transactions_of_version_1_have_the_last_epoch_that_version_2_raised(
    cluster: SmallCluster, first: str, second: str, is_cleaned: bool
):
    """transaction.version was lowered: the producer goes on under the epoch of the markers of its last transaction."""
    begin(cluster)
    ended(cluster, 0, 2, first, is_cleaned=is_cleaned)
    ended(cluster, 1, 0, second, is_cleaned=is_cleaned)
    ended(cluster, 1, 0, first, is_cleaned=is_cleaned)
    for check in CHECKS:
        assert cluster.found(check) == []


@pytest.mark.parametrize("torn", [0, 1, 2])
@pytest.mark.parametrize("is_cleaned", [False, True])
def test_a_torn_transaction_where_transaction_version_was_lowered(cluster: SmallCluster, torn: int, is_cleaned: bool):
    """Of three transactions whose markers have the same epoch, one is torn."""
    begin(cluster)
    decisions = [(0, 2, "COMMIT", "ABORT"), (1, 0, "ABORT", "COMMIT"), (1, 0, "COMMIT", "ABORT")]
    markers = [
        ended(cluster, epoch, version, kind, other=other if torn == number else None, is_cleaned=is_cleaned)
        for number, (epoch, version, kind, other) in enumerate(decisions)
    ]
    assert cluster.found(torn_transactions) == [("torn_transaction", "t", markers[torn])]


@pytest.mark.parametrize(("kind", "code"), [("COMMIT", "commit_without_decision"), ("ABORT", "abort_without_decision")])
def test_a_marker_that_no_coordinator_decided(cluster: SmallCluster, kind: str, code: str):
    begin(cluster)
    committed(cluster, "t-0")
    cluster.data("t-1", 1, 3)
    cluster.marker("t-1", 1, 4, kind)
    committed(cluster, "t-0", epoch=7)
    assert cluster.found(markers_without_decision) == [(code, "t", 1)]


def test_a_marker_in_a_partition_that_the_transaction_does_not_have(cluster: SmallCluster):
    begin(cluster)
    committed(cluster, "t-0", "t-1", listed=("t-0",))
    committed(cluster, "t-0", epoch=1)
    assert cluster.found(markers_without_decision) == [("commit_without_decision", "t", 1)]


def test_a_marker_that_keeps_the_epoch_is_not_that_of_a_transaction_that_raised_it(cluster: SmallCluster):
    begin(cluster)
    committed(cluster, "t-0")
    committed(cluster, "t-0", epoch=1)
    cluster.data("t-0", 1, 2)
    marker = cluster.marker("t-0", 1, 2)
    committed(cluster, "t-0", epoch=2)
    assert cluster.found(markers_without_decision) == [("commit_without_decision", "t", marker)]


class Failed:
    """A transaction of producer 1 whose marker an election lost, and the next one, whose marker ends both.

    Attributes
    ----------
    first : int
        Offset of the first record.
    """

    def __init__(self, cluster: SmallCluster, version: int, own: str, later: str, *, has_data: bool = False) -> None:
        begin(cluster)
        raised = int(version == 2)
        self.first = cluster.data("t-0", 1, 0)
        self.decide(cluster, 0, raised, own, version)
        epoch = raised or 1
        cluster.state(EMPTY, 1, epoch)
        if has_data:
            cluster.data("t-0", 1, epoch)
        cluster.marker("t-0", 1, epoch + raised, later)
        self.decide(cluster, epoch, raised, later, version)

    @staticmethod
    def decide(cluster: SmallCluster, epoch: int, raised: int, kind: str, version: int) -> None:
        """Write the records of the coordinator."""
        start = cluster.now
        cluster.state(ONGOING, 1, epoch, "t-0", start=start, version=version)
        if kind not in STATES:
            return
        prepared, completed = STATES[kind]
        cluster.state(prepared, 1, epoch + raised, "t-0", start=start, version=version)
        cluster.state(completed, 1, epoch + raised, start=start, version=version)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("own", "later", "code"),
    [
        ("COMMIT", "ABORT", "ended_by_wrong_marker"),
        ("ABORT", "COMMIT", "ended_by_wrong_marker"),
        ("COMMIT", "COMMIT", "ended_by_later_marker"),
        ("ABORT", "ABORT", "ended_by_later_marker"),
    ],
)
def test_a_marker_that_ended_an_earlier_transaction_as_well(
    cluster: SmallCluster, version: int, own: str, later: str, code: str
):
    failed = Failed(cluster, version, own, later)
    assert cluster.found(markers_without_decision) == [(code, "t", failed.first)]
    (finding,) = findings_of(markers_without_decision, cluster.directory)
    verb = "committed" if own == "COMMIT" else "aborted"
    assert finding.known.endswith(f"ended that of epoch 0, which its coordinator {verb}")


def test_a_marker_of_a_later_transaction_that_does_not_have_the_partition(cluster: SmallCluster):
    begin(cluster)
    cluster.data("t-0", 1, 0)
    Failed.decide(cluster, 0, 1, "COMMIT", 2)
    marker = cluster.marker("t-0", 1, 2)
    committed(cluster, "t-1", epoch=1)
    committed(cluster, "t-1", epoch=2)
    assert cluster.found(markers_without_decision) == [("commit_without_decision", "t", marker)]


@pytest.mark.parametrize("version", [0, 2])
def test_the_next_epoch_of_a_producer_is_not_that_of_a_zombie(cluster: SmallCluster, version: int):
    """Its batches seem to be inside the transaction whose marker is lost."""
    Failed(cluster, version, "ABORT", "COMMIT", has_data=True)
    assert [code for code, *_ in cluster.found(markers_without_decision)] == ["ended_by_wrong_marker"]
    assert cluster.found(epoch_findings) == []


@pytest.mark.parametrize(
    ("decision", "later", "count"), [("ABORT", 2, 0), ("ABORT", 4, 0), ("none", 4, 1), ("ABORT", 1, 1)]
)
def test_the_next_epoch_in_a_transaction_whose_marker_is_lost(
    cluster: SmallCluster, decision: str, later: int, count: int
):
    """Nothing has ended it yet; a batch of an earlier epoch is that of a zombie."""
    cluster.state(EMPTY, 1, 1)
    cluster.data("t-0", 1, 2 if later == 1 else 1)
    Failed.decide(cluster, 2 if later == 1 else 1, 0, decision, 0)
    offset = cluster.data("t-0", 1, later)
    assert cluster.found(epoch_findings) == [("producer_epoch_goes_back", "t", offset)] * count


def test_what_a_marker_ended_is_not_known_without_a_decision(cluster: SmallCluster):
    Failed(cluster, 2, "no decision", "COMMIT")
    assert cluster.found(markers_without_decision) == []


def test_a_late_batch_of_a_transaction_that_has_its_marker_is_that_of_a_zombie(cluster: SmallCluster):
    begin(cluster)
    committed(cluster, "t-0")
    cluster.data("t-0", 1, 0)
    committed(cluster, "t-0", epoch=1)
    assert cluster.found(markers_without_decision) == []
    assert {code for code, *_ in cluster.found(epoch_findings)} == {"producer_epoch_goes_back"}


@pytest.mark.parametrize(("kind", "code"), [("COMMIT", "ended_by_wrong_marker"), ("ABORT", "abort_without_decision")])
@pytest.mark.parametrize(("is_known", "data_epoch"), [(True, 0), (True, 2), (False, 0)])
def test_a_marker_of_a_later_transaction_that_did_not_raise_the_epoch(
    cluster: SmallCluster, kind: str, code: str, is_known: bool, data_epoch: int
):
    """It cannot end data of an earlier epoch; a later marker of the producer shows that coordinators would have it."""
    begin(cluster)
    cluster.state(ONGOING, 1, 0, "t-0", version=0)
    if data_epoch == 2:
        cluster.data("t-0", 1, 0)
        cluster.marker("t-0", 1, 1, "ABORT")
    first = cluster.data("t-0", 1, data_epoch)
    marker = cluster.marker("t-0", 1, 2, kind)
    cluster.state(PREPARE_ABORT, 1, 1, "t-0", version=0)
    cluster.state(COMPLETE_ABORT, 1, 1, version=0)
    start = cluster.now
    cluster.state(EMPTY, 1, 2, version=0)
    cluster.state(ONGOING, 1, 2, "t-0", start=start, version=0)
    if is_known:
        cluster.data("t-0", 1, 2)
        cluster.state(PREPARE_COMMIT, 1, 2, "t-0", start=start, version=0)
        cluster.marker("t-0", 1, 2)
        cluster.state(COMPLETE_COMMIT, 1, 2, start=start, version=0)
    is_found = is_known and data_epoch == 0
    offset = first if kind == "COMMIT" else marker
    assert cluster.found(markers_without_decision) == [(code, "t", offset)] * is_found


def test_the_coordinators_may_not_have_the_last_transactions(cluster: SmallCluster):
    """Their files may have been copied before those of the partition."""
    begin(cluster)
    committed(cluster, "t-0")
    cluster.data("t-0", 1, 1)
    marker = cluster.marker("t-0", 1, 2)
    assert cluster.found(markers_without_decision) == []
    cluster.state(EMPTY, 9, 0, name="other", at=cluster.now + 10 * SECOND)
    assert cluster.found(markers_without_decision) == []
    cluster.state(EMPTY, 9, 0, name="other")
    assert cluster.found(markers_without_decision) == [("commit_without_decision", "t", marker)]


def test_a_partition_that_was_copied_from_another_cluster(cluster: SmallCluster):
    """There, the producer id belonged to another producer: its marker is older than the first transaction here."""
    cluster.data("t-0", 1, 0)
    cluster.marker("t-0", 1, 1)
    begin(cluster)
    committed(cluster, "t-1", epoch=2)
    assert cluster.found(markers_without_decision) == []
    cluster.data("t-0", 1, 6)
    marker = cluster.marker("t-0", 1, 7)
    committed(cluster, "t-1", epoch=9)
    assert cluster.found(markers_without_decision) == [("commit_without_decision", "t", marker)]


def test_a_topic_that_was_copied_while_both_clusters_had_the_producer_id(cluster: SmallCluster):
    """A topic of another cluster, or one that was restored under another name, has markers that nobody here wrote."""
    begin(cluster)
    committed(cluster, "t-0")
    cluster.data("restored-0", 1, 0)
    cluster.marker("restored-0", 1, 1)
    committed(cluster, "t-0", epoch=7)
    assert cluster.found(markers_without_decision) == []
    committed(cluster, "restored-0", epoch=9)  # from here on it is a topic of this cluster
    cluster.data("restored-0", 1, 11)
    marker = cluster.marker("restored-0", 1, 12)
    committed(cluster, "t-0", epoch=13)
    assert cluster.found(markers_without_decision) == [("commit_without_decision", "restored", marker)]


def test_coordinators_that_do_not_know_the_producer_say_nothing(cluster: SmallCluster):
    cluster.state(EMPTY, 9, 0, at=DAY)
    cluster.data("t-0", 1, 0, at=0)
    cluster.marker("t-0", 1, 1)
    assert cluster.found(markers_without_decision) == []


def test_cleaned_coordinators_say_nothing_of_earlier_transactions(cluster: SmallCluster):
    cluster.data("t-0", 1, 0)
    cluster.marker("t-0", 1, 1)
    cluster.skip(STATE)
    committed(cluster, "t-0", epoch=1)
    assert cluster.found(markers_without_decision) == []


def test_a_marker_without_records(cluster: SmallCluster):
    cluster.data("t-0", 1, 0)
    cluster.marker("t-0", 1, 1)
    marker = cluster.marker("t-0", 2, 1)
    assert cluster.found(markers_without_records) == [("marker_without_records", "t", marker)]


def test_a_partition_may_have_been_added_without_records(cluster: SmallCluster):
    begin(cluster)
    cluster.state(ONGOING, 1, 0, "t-0")
    cluster.state(PREPARE_COMMIT, 1, 1, "t-0")
    cluster.marker("t-0", 1, 1)
    assert cluster.found(markers_without_records) == []


def test_records_before_a_marker_may_have_been_removed(cluster: SmallCluster):
    cluster.skip("t-0")
    cluster.marker("t-0", 1, 1)
    assert cluster.found(markers_without_records) == []


def test_a_marker_of_an_older_epoch_ends_a_transaction(cluster: SmallCluster):
    cluster.data("t-0", 1, 3)
    cluster.marker("t-0", 1, 2)
    assert cluster.found(marker_epochs) == [("marker_epoch_goes_back", "t", 1)]
    assert cluster.found(epoch_findings) == []


def test_a_marker_of_an_older_epoch_after_a_transaction(cluster: SmallCluster):
    cluster.data("t-0", 1, 3)
    cluster.marker("t-0", 1, 4)
    cluster.marker("t-0", 1, 3)
    assert cluster.found(marker_epochs) == [("marker_epoch_goes_back", "t", 2)]


@pytest.mark.parametrize(("later", "count"), [(DAY - 1, 1), (DAY, 0)])
def test_a_marker_of_an_older_coordinator(cluster: SmallCluster, later: int, count: int):
    cluster.marker("t-0", 1, 1, coordinator=2, at=0)
    cluster.marker("t-0", 2, 1, coordinator=1)
    cluster.marker("t-0", 1, 1, coordinator=1, at=later)
    assert cluster.found(marker_epochs) == [("coordinator_epoch_goes_back", "t", 2)] * count


def test_a_marker_of_an_older_coordinator_in_a_later_segment(cluster: SmallCluster):
    cluster.marker("t-0", 1, 0, coordinator=2)
    cluster.data("t-0", 1, 0)
    cluster.roll("t-0")
    cluster.marker("t-0", 1, 0, coordinator=1)
    assert cluster.found(marker_epochs) == [("coordinator_epoch_goes_back", "t", 2)]


LEGAL = [
    (EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, ONGOING, PREPARE_ABORT, COMPLETE_ABORT, EMPTY),
    (EMPTY, EMPTY, ONGOING, ONGOING, PREPARE_COMMIT, PREPARE_COMMIT, COMPLETE_COMMIT, COMPLETE_COMMIT, EMPTY),
    (EMPTY, PREPARE_ABORT, COMPLETE_ABORT, PREPARE_ABORT, COMPLETE_ABORT),
]


@pytest.mark.parametrize("states", LEGAL)
def test_states_that_may_follow_each_other(cluster: SmallCluster, states: tuple[int, ...]):
    for state in states:
        cluster.state(state, 1, 0, at=state)  # a record that is written again has its values
    assert cluster.found(coordinator_transitions) == []


def test_a_transactional_id_that_expired_begins_again(cluster: SmallCluster):
    cluster.state(ONGOING, 1, 5)
    cluster.state(-1, 1, 5)
    cluster.state(EMPTY, 1, 0)
    assert cluster.found(coordinator_transitions) == []


@pytest.mark.parametrize("status", [PREPARE_COMMIT, PREPARE_ABORT])
def test_a_decision_adds_no_partitions(cluster: SmallCluster, status: int):
    cluster.state(ONGOING, 1, 0, "t-0", "t-1")
    cluster.state(status, 1, 0, "t-0", "t-1", at=5)
    cluster.state(status, 1, 0, "t-0", "t-1", at=6)
    assert cluster.found(coordinator_transitions) == []
    cluster.state(ONGOING, 1, 0, "t-0", name="other")
    cluster.state(status, 1, 0, "t-0", "t-1", name="other")
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 4)]


def test_an_abort_of_what_was_not_begun_has_no_partitions(cluster: SmallCluster):
    cluster.state(EMPTY, 1, 0)
    cluster.state(PREPARE_ABORT, 1, 1)
    assert cluster.found(coordinator_transitions) == []
    cluster.state(COMPLETE_ABORT, 1, 1)
    cluster.state(PREPARE_ABORT, 1, 2, "t-0")
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 3)]


@pytest.mark.parametrize("status", [COMPLETE_COMMIT, COMPLETE_ABORT])
def test_a_transaction_is_completed_once_or_by_the_same_record_again(cluster: SmallCluster, status: int):
    cluster.state(status, 1, 0, at=5)
    cluster.state(status, 1, 0, at=5)
    assert cluster.found(coordinator_transitions) == []
    cluster.state(status, 1, 0, at=6)
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 2)]


@pytest.mark.parametrize("before", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
@pytest.mark.parametrize(("producer", "epoch", "count"), [(1, 4, 0), (1, 5, 1), (2, 4, 1)])
def test_a_transaction_begins_under_the_epoch_that_was_initialized(
    cluster: SmallCluster, before: int, producer: int, epoch: int, count: int
):
    cluster.state(before, 1, 4)
    cluster.state(ONGOING, producer, epoch)
    expected = [("coordinator_state_goes_back", "__transaction_state", 1)] * count
    assert cluster.found(coordinator_transitions) == expected


@pytest.mark.parametrize("status", [PREPARE_COMMIT, PREPARE_ABORT])
@pytest.mark.parametrize(("epoch", "start", "count"), [(1, 2, 0), (2, 1, 0), (2, 2, 1)])
def test_a_decision_follows_no_decision_of_another_transaction(
    cluster: SmallCluster, status: int, epoch: int, start: int, count: int
):
    """A coordinator writes one again, at another time if nothing was begun, or with another epoch after a fence."""
    cluster.state(status, 1, 1, start=1)
    cluster.state(status, 1, epoch, start=start)
    expected = [("coordinator_state_goes_back", "__transaction_state", 1)] * count
    assert cluster.found(coordinator_transitions) == expected


ILLEGAL = [
    (EMPTY, PREPARE_COMMIT),
    (EMPTY, COMPLETE_COMMIT),
    (EMPTY, COMPLETE_ABORT),
    (ONGOING, EMPTY),
    (ONGOING, COMPLETE_COMMIT),
    (PREPARE_COMMIT, COMPLETE_ABORT),
    (PREPARE_COMMIT, PREPARE_ABORT),
    (PREPARE_ABORT, COMPLETE_COMMIT),
    (PREPARE_ABORT, ONGOING),
    (COMPLETE_COMMIT, COMPLETE_ABORT),
]


@pytest.mark.parametrize("states", ILLEGAL)
def test_states_that_cannot_follow_each_other(cluster: SmallCluster, states: tuple[int, int]):
    for state in states:
        cluster.state(state, 1, 0)
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 1)]


def test_the_epoch_of_a_transactional_id_never_decreases(cluster: SmallCluster):
    cluster.state(EMPTY, 1, 2)
    cluster.state(EMPTY, 1, 1)
    cluster.state(EMPTY, 2, 0)  # another producer begins with 0
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 1)]


@pytest.mark.parametrize("state", [ONGOING, PREPARE_COMMIT, PREPARE_ABORT])
def test_a_transaction_loses_no_partition(cluster: SmallCluster, state: int):
    cluster.state(ONGOING, 1, 0, "t-0", "t-1")
    cluster.state(state, 1, 0, "t-1")
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 1)]


def begun(cluster: SmallCluster, *names: str) -> int:
    """Write the first record of a transaction, and return when it begins."""
    cluster.state(EMPTY, 1, 0)
    start = cluster.now + 1
    cluster.state(ONGOING, 1, 0, *names, start=start)
    return start


@pytest.mark.parametrize("state", [ONGOING, PREPARE_COMMIT, PREPARE_ABORT])
def test_a_partition_whose_addition_timed_out_is_not_in_the_transaction(cluster: SmallCluster, state: int):
    """TransactionStateManager.appendTransactionToLog: the record is in the log, and the coordinator goes on without."""
    start = begun(cluster, "t-1")
    cluster.state(ONGOING, 1, 0, "t-0", "t-1", start=start)
    cluster.state(ONGOING, 1, 0, "t-0", "t-1", start=start)  # asked again
    cluster.state(state, 1, 0, "t-1", start=start)
    assert cluster.found(coordinator_transitions) == []


def test_partitions_are_lost_where_the_transaction_began_with_them(cluster: SmallCluster):
    start = begun(cluster, "t-0", "t-1")
    cluster.state(PREPARE_ABORT, 1, 0, "t-1", start=start)
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 2)]


def test_a_transaction_that_goes_on_does_not_begin_again(cluster: SmallCluster):
    start = begun(cluster, "t-0")
    cluster.state(ONGOING, 1, 0, "t-1", start=start)
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 2)]


def test_an_abort_of_what_was_begun_has_its_partitions(cluster: SmallCluster):
    """Only an abort of nothing has none, and it begins when it is written."""
    start = begun(cluster, "t-0")
    cluster.state(PREPARE_ABORT, 1, 1, start=start)
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 2)]


def test_all_that_timed_out_follows_from_the_state_that_a_coordinator_keeps(cluster: SmallCluster):
    start = begun(cluster, "t-0")
    cluster.state(ONGOING, 1, 0, "t-0", "t-1", start=start)
    cluster.state(ONGOING, 1, 0, "t-0", "t-1", "t-2", start=start)
    cluster.state(PREPARE_ABORT, 1, 0, "t-0", start=start)
    assert cluster.found(coordinator_transitions) == []
    cluster.state(ONGOING, 1, 0, "t-0", "t-1", start=start)  # from the first state, but not from the abort
    assert cluster.found(coordinator_transitions) == []
    cluster.state(PREPARE_ABORT, 1, 0, "t-0", "t-1", "t-2", start=start)  # which no state can have kept
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 6)]


def test_several_states_may_be_kept(cluster: SmallCluster):
    start = begun(cluster, "t-0")
    cluster.state(ONGOING, 1, 0, "t-0", "t-1", start=start)
    cluster.state(ONGOING, 1, 0, "t-0", "t-1", "t-2", start=start)
    cluster.state(ONGOING, 1, 0, "t-0", "t-1", "t-3", start=start)
    cluster.state(PREPARE_ABORT, 1, 0, "t-0", "t-1", start=start)
    assert cluster.found(coordinator_transitions) == []


def test_a_decision_does_not_follow_from_the_state_before_its_transaction(cluster: SmallCluster):
    """So that the next transaction does not begin from there either."""
    start = begun(cluster, "t-0")
    cluster.state(PREPARE_COMMIT, 1, 0, "t-0", start=start)
    cluster.state(ONGOING, 1, 0, "t-0", start=cluster.now + 1)
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 3)]


def test_a_commit_that_timed_out_may_be_followed_by_an_abort(cluster: SmallCluster):
    start = begun(cluster, "t-0")
    cluster.state(PREPARE_COMMIT, 1, 1, "t-0", start=start)
    cluster.state(PREPARE_ABORT, 1, 1, "t-0", start=start)
    cluster.state(COMPLETE_ABORT, 1, 1, start=start)
    assert cluster.found(coordinator_transitions) == []
    cluster.state(PREPARE_COMMIT, 1, 1, "t-0", start=start, name="other")
    cluster.state(PREPARE_ABORT, 1, 1, "t-0", start=start, name="other")  # of which the beginning is missing
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 6)]


@pytest.mark.parametrize("before", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_a_producer_goes_on_whose_successor_was_not_initialized_in_time(cluster: SmallCluster, before: int):
    cluster.state(before, 1, 4)
    cluster.state(EMPTY, 1, 5)
    cluster.state(ONGOING, 1, 4, "t-0", start=cluster.now + 1)
    assert cluster.found(coordinator_transitions) == []


def test_what_is_completed_was_completed_once(cluster: SmallCluster):
    """The record that ends a transaction is written until all have it: no coordinator goes on without."""
    start = begun(cluster, "t-0")
    cluster.state(PREPARE_COMMIT, 1, 1, "t-0", start=start)
    cluster.state(COMPLETE_COMMIT, 1, 1, start=start)
    cluster.state(COMPLETE_COMMIT, 1, 1, start=start)
    assert cluster.found(coordinator_transitions) == [("coordinator_state_goes_back", "__transaction_state", 4)]


def test_records_before_those_of_an_id_may_have_been_cleaned(cluster: SmallCluster):
    """The first addition may have timed out, and the record before it is no longer there."""
    cluster.state(EMPTY, 2, 0, name="other")
    cluster.skip(STATE, 2)
    cluster.state(EMPTY, 3, 0, name="third")
    cluster.state(ONGOING, 1, 0, "t-0", "t-1")
    cluster.state(PREPARE_ABORT, 1, 0, "t-1")
    cluster.state(COMPLETE_ABORT, 1, 0)
    assert cluster.found(coordinator_transitions) == []
    cluster.state(PREPARE_COMMIT, 1, 0)
    cluster.state(COMPLETE_COMMIT, 2, 0, name="other")
    assert cluster.found(coordinator_transitions) == [
        ("coordinator_state_goes_back", "__transaction_state", 7),
        ("coordinator_state_goes_back", "__transaction_state", 8),
    ]


def test_a_next_transaction_has_other_partitions(cluster: SmallCluster):
    cluster.state(ONGOING, 1, 0, "t-0", start=1)
    cluster.state(ONGOING, 1, 1, "t-1", start=2)
    assert cluster.found(coordinator_transitions) == []


def test_an_open_transaction(cluster: SmallCluster):
    cluster.state(ONGOING, 1, 0, "t-0")
    cluster.data("t-0", 1, 0)
    cluster.data("t-0")
    assert cluster.found(open_transactions) == [("open_transaction", "t", 0)]
    (finding,) = findings_of(open_transactions, cluster.directory)
    assert finding.known.startswith("2 offsets from 0 on wait for tx (producer 1, epoch 0")


@pytest.mark.parametrize(
    ("later", "code"), [(16 * MINUTE, "open_transaction"), (16 * MINUTE + 1, "overdue_transaction")]
)
def test_a_transaction_that_its_coordinator_should_have_aborted(cluster: SmallCluster, later: int, code: str):
    """Its timeout is a minute."""
    cluster.state(ONGOING, 1, 0, "t-0", start=0, at=0)
    cluster.data("t-0", 1, 0)
    cluster.state(EMPTY, 2, 0, name="other", at=later)
    assert cluster.found(open_transactions) == [(code, "t", 0)]


@pytest.mark.parametrize(
    ("later", "code"), [(15 * MINUTE, "open_transaction"), (15 * MINUTE + 1, "overdue_transaction")]
)
def test_a_decision_whose_marker_is_missing(cluster: SmallCluster, later: int, code: str):
    cluster.data("t-0", 1, 0)
    cluster.state(PREPARE_COMMIT, 1, 1, "t-0", at=0)
    cluster.state(EMPTY, 2, 0, name="other", at=later)
    assert cluster.found(open_transactions) == [(code, "t", 0)]


def hanging(cluster: SmallCluster, later: int) -> None:
    begin(cluster)
    committed(cluster, "t-0")
    cluster.data("t-0", 1, 1)
    cluster.marker("t-0", 3, 0, at=MINUTE)
    cluster.state(EMPTY, 2, 0, name="other", at=later)


@pytest.mark.parametrize(
    ("later", "code"), [(16 * MINUTE, "open_transaction"), (16 * MINUTE + 1, "hanging_transaction")]
)
def test_a_transaction_that_no_coordinator_will_end(cluster: SmallCluster, later: int, code: str):
    hanging(cluster, later)
    assert cluster.found(open_transactions) == [(code, "t", 2)]


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("later", "code"), [(16 * MINUTE, "open_transaction"), (16 * MINUTE + 1, "hanging_transaction")]
)
def test_a_marker_that_was_not_written(cluster: SmallCluster, kind: str, version: int, later: int, code: str):
    """As the partition had no leader when the coordinator decided: it takes the transaction for complete."""
    (prepared, completed), epoch = STATES[kind], 1 + (version == 2)
    begin(cluster)
    committed(cluster, "t-0", "t-1")
    start = cluster.now = 11 * SECOND
    cluster.state(ONGOING, 1, 1, "t-0", "t-1", start=start, version=version)
    cluster.data("t-0", 1, 1)
    torn = cluster.data("t-1", 1, 1)
    cluster.state(prepared, 1, epoch, "t-0", "t-1", start=start, version=version)
    cluster.marker("t-0", 1, epoch, kind)
    cluster.state(completed, 1, epoch, start=start, version=version)
    cluster.data("t-1", 2, 0)
    cluster.marker("t-1", 2, 0, at=MINUTE)
    cluster.state(EMPTY, 3, 0, name="other", at=later)
    assert cluster.found(torn_transactions) == [("torn_transaction", "t", torn)]
    assert cluster.found(open_transactions) == [(code, "t", torn)]
    (finding,) = findings_of(open_transactions, cluster.directory)
    assert finding.known.startswith(f"3 offsets from {torn} on wait for tx (producer 1, epoch 1; it does not end by")


@pytest.mark.parametrize(("kind", "count"), [("COMMIT", 1), ("ABORT", 0)])
def test_a_partition_that_has_nothing_of_a_transaction(cluster: SmallCluster, kind: str, count: int):
    """A restore aborts a transaction only where it has records."""
    prepared, completed = STATES[kind]
    begin(cluster)
    committed(cluster, "t-0", "t-1")
    start = cluster.now = 11 * SECOND
    cluster.state(ONGOING, 1, 1, "t-0", "t-1", start=start)
    cluster.data("t-0", 1, 1)
    cluster.state(prepared, 1, 2, "t-0", "t-1", start=start)
    cluster.marker("t-0", 1, 2, kind)
    cluster.state(completed, 1, 2, start=start)
    cluster.data("t-1", 2, 0)
    cluster.marker("t-1", 2, 0, at=MINUTE)
    assert cluster.found(torn_transactions) == [("torn_transaction", "t", None)] * count


def test_a_transaction_of_unknown_age_may_not_yet_be_in_the_coordinators_files(cluster: SmallCluster):
    begin(cluster)
    committed(cluster, "t-0")
    cluster.data("t-0", 1, 1, at=0)
    cluster.state(EMPTY, 2, 0, name="other", at=DAY)
    assert cluster.found(open_transactions) == [("open_transaction", "t", 2)]


def test_without_coordinators_nobody_knows_whether_a_transaction_hangs(cluster: SmallCluster):
    cluster.data("t-0", 1, 1)
    cluster.marker("t-0", 2, 0)
    cluster.marker("t-0", 2, 0, at=DAY)
    assert cluster.found(open_transactions) == [("open_transaction", "t", 0)]


def test_pending_offsets_are_of_an_open_transaction(cluster: SmallCluster):
    cluster.commit("t-0", 1, 1, 0)
    assert cluster.found(open_transactions) == [("open_transaction", OFFSETS.rpartition("-")[0], 0)]
