"""Transactions whose marker an election lost: the findings, and each clause of the precondition."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import pytest
from small_cluster import DAY, MINUTE, SECOND, SmallCluster
from test_loss_ledger import with_leader

from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding
from kraftlog.audit.lost_markers import lost_markers
from kraftlog.audit.transactions import torn_transactions
from kraftlog.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from stopped_broker import evidence_of

ORDERS = "orders-0"
LEADER_EPOCH = 3
COMPLETE = {"COMMIT": (PREPARE_COMMIT, COMPLETE_COMMIT), "ABORT": (PREPARE_ABORT, COMPLETE_ABORT)}


class Failover:
    """A leader, and another replica with the history that an election lost; both have a transaction of producer 1.

    Attributes
    ----------
    first : int
        The first offset of the transaction.
    leader, lost : SmallCluster
    """

    def __init__(self, home: Path, *, version: int = 2, epoch: int = 0) -> None:
        self.home, self.version = home, version
        self.leader = SmallCluster(home / "1")
        self.leader.leader_epoch = 1
        self.leader.data(ORDERS, values=("before",))
        self.leader.state(EMPTY, 1, epoch)
        self.leader.state(ONGOING, 1, epoch, ORDERS, version=version)
        self.first = self.leader.data(ORDERS, 1, epoch, values=("a", "b"))
        self.lost = copy.deepcopy(self.leader)
        self.lost.directory = home / "2"
        self.leader.leader_epoch = LEADER_EPOCH
        self.raised = epoch + int(version == 2)

    def complete(self, kind: str = "COMMIT", epoch: int | None = None) -> None:
        """Let the coordinator end the transaction."""
        raised = self.raised if epoch is None else epoch
        prepared, completed = COMPLETE[kind]
        self.leader.state(prepared, 1, raised, ORDERS, version=self.version)
        self.leader.state(completed, 1, raised, version=self.version)

    def go_on(self, at: int | None = None, epoch: int = 0) -> None:
        """Let another producer write to the leader's log."""
        self.leader.data(ORDERS, 9, epoch, at=at)
        self.leader.marker(ORDERS, 9, epoch + 1, at=at)

    def lose(self, kind: str = "COMMIT", *, epoch: int | None = None, goes_on: bool = True) -> int:
        """Let the other replica have a marker, and perhaps the next transaction; return the offset of the marker."""
        raised = self.raised if epoch is None else epoch
        marker = self.lost.marker(ORDERS, 1, raised, kind)
        if goes_on:
            self.lost.data(ORDERS, 1, raised)
        return marker

    def findings(self, *, leader: int | None = 1, lost: bool = True) -> list[Finding]:
        """Write all logs, and return the findings."""
        evidence = self.evidence(leader=leader, lost=lost)
        found = list(lost_markers(evidence))
        assert evidence.read.faults == []
        return found

    def evidence(self, *, leader: int | None = 1, lost: bool = True) -> Evidence:
        """Write all logs, and return what an audit has."""
        each = [self.leader, self.lost] if lost else [self.leader]
        for node, one in enumerate(each, start=1):
            one.directory.mkdir(exist_ok=True, parents=True)
            one.write()
            (one.directory / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={node}\n")
        shutil.rmtree(self.home / "100", ignore_errors=True)
        metadata = [] if leader is None else [with_leader(self.home / "100", leader, LEADER_EPOCH)]
        return evidence_of(*(one.directory for one in each), *metadata)

    def codes(self, *, leader: int | None = 1, lost: bool = True) -> list[tuple[str, int | None]]:
        """Return codes and offsets of the findings."""
        return [(one.code.name, one.offset) for one in self.findings(leader=leader, lost=lost)]


@pytest.fixture
def failover(tmp_path: Path) -> Failover:
    """Return two replicas whose histories part inside a transaction."""
    return Failover(tmp_path)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(("kind", "code"), [("COMMIT", "commit_marker_lost"), ("ABORT", "abort_marker_lost")])
def test_a_marker_that_only_another_replica_has(tmp_path: Path, version: int, kind: str, code: str) -> None:
    failover = Failover(tmp_path, version=version)
    failover.complete(kind)
    marker = failover.lose(kind)
    failover.go_on()
    (finding,) = failover.findings()
    assert (finding.code.name, finding.topic, finding.partition) == (code, "orders", 0)
    assert (finding.offset, finding.node_id, finding.file) == (1, 2, str(tmp_path / "2" / ORDERS))
    verb = "committed" if kind == "COMMIT" else "aborted"
    assert finding.known == (
        f"producer 1: 2 records at offsets 1 to 2, of epoch 0, are {verb}: node 2 alone has the {kind} at offset"
        f" {marker}, and parts from node 1 at offset 3"
    )
    shown = "-p 0 --start-offset 1 --end-offset 3" if kind == "COMMIT" else "-p 0"
    assert finding.next_command is not None
    assert finding.next_command.startswith("kraftlog records " if kind == "COMMIT" else "kraftlog hanging ")
    assert finding.next_command.endswith(shown)


def test_records_of_the_transaction_after_the_histories_part_are_those_of_a_later_one(tmp_path: Path) -> None:
    failover = Failover(tmp_path, version=0)
    failover.complete()
    failover.lose()
    failover.leader.data(ORDERS, 1, 0)
    (finding,) = failover.findings()
    assert "2 records at offsets 1 to 2" in finding.known


def test_a_coordinator_that_is_not_done_writes_the_marker_again(failover: Failover) -> None:
    failover.lose()
    assert failover.codes() == []
    failover.leader.state(PREPARE_COMMIT, 1, 1, ORDERS)
    failover.go_on(at=DAY)
    assert failover.codes() == []
    failover.leader.state(COMPLETE_COMMIT, 1, 1)
    assert failover.codes() == [("commit_marker_lost", 1)]
    failover.leader.state(ONGOING, 1, 1, ORDERS)  # its marker will end both
    assert failover.codes() == []


def test_a_decision_that_no_record_completes(failover: Failover) -> None:
    """The transactional id is gone: its last record is lost."""
    failover.lose(goes_on=False)
    failover.leader.state(PREPARE_COMMIT, 1, 1, ORDERS)
    failover.leader.state(-1, 1, 1)
    failover.go_on(at=DAY)
    assert failover.codes() == []


def test_two_transactions_whose_markers_are_lost(failover: Failover) -> None:
    for one in (failover.leader, failover.lost):
        one.leader_epoch = 1
        one.state(EMPTY, 2, 0, name="other")
        one.state(ONGOING, 2, 0, ORDERS, name="other")
        one.data(ORDERS, 2, 0)
    failover.leader.leader_epoch = LEADER_EPOCH
    failover.complete()
    for state in COMPLETE["ABORT"]:
        failover.leader.state(state, 2, 1, *([ORDERS] if state == PREPARE_ABORT else []), name="other")
    failover.lose()
    failover.lost.marker(ORDERS, 2, 1, "ABORT")
    failover.lost.data(ORDERS, 2, 1)
    failover.go_on()
    assert failover.codes() == [("commit_marker_lost", 1), ("abort_marker_lost", 3)]


def test_without_coordinators_nothing_is_known(failover: Failover) -> None:
    failover.lose()
    for one in (failover.leader, failover.lost):
        del one.batches["__transaction_state-0"]
    failover.go_on(at=DAY)
    assert failover.codes() == []


def test_the_marker_of_the_lost_history_may_not_have_been_acknowledged(failover: Failover) -> None:
    """Then the coordinator writes it again to the next leader, perhaps after its log was copied."""
    failover.lose(goes_on=False)
    failover.complete()
    failover.go_on()
    assert failover.codes() == []


@pytest.mark.parametrize(("later", "is_found"), [(10 * SECOND, False), (10 * SECOND + 1, True)])
@pytest.mark.parametrize("is_of_lost", [True, False])
def test_a_log_that_goes_on_after_the_coordinator_had_completed(
    failover: Failover, later: int, is_found: bool, is_of_lost: bool
) -> None:
    failover.lose(goes_on=False)
    failover.complete()
    at = failover.leader.now + later
    if is_of_lost:
        failover.lost.marker(ORDERS, 9, 0, at=at)
    else:
        failover.go_on(at=at)
    assert failover.codes() == [("commit_marker_lost", 1)] * is_found


@pytest.mark.parametrize(("epoch", "is_found"), [(1, True), (0, False)])
def test_the_next_transaction_of_the_producer_in_the_leaders_log(
    failover: Failover, epoch: int, is_found: bool
) -> None:
    failover.lose(goes_on=False)
    failover.complete()
    failover.leader.data(ORDERS, 1, epoch)
    assert failover.codes() == [("commit_marker_lost", 1)] * is_found


def test_a_marker_of_an_older_epoch_proves_nothing(tmp_path: Path) -> None:
    failover = Failover(tmp_path, epoch=5)
    failover.complete()
    failover.lose(epoch=4)
    assert failover.codes() == []


def test_the_lost_history_has_another_transaction_before_the_marker(failover: Failover) -> None:
    failover.complete()
    failover.lost.data(ORDERS, 1, 1)
    failover.lose()
    assert failover.codes() == []


def test_the_marker_is_missing_from_both(failover: Failover) -> None:
    failover.leader.leader_epoch = 1
    failover.leader.data(ORDERS, 1, 1)
    directory, failover.lost = failover.lost.directory, copy.deepcopy(failover.leader)
    failover.lost.directory = directory
    failover.leader.leader_epoch = LEADER_EPOCH
    failover.complete()
    failover.lose()
    failover.go_on()
    assert failover.codes() == []


def test_a_leader_that_has_the_marker_as_well(failover: Failover) -> None:
    failover.lose()
    failover.complete()
    failover.leader.marker(ORDERS, 1, 1)
    failover.go_on(at=DAY)
    assert failover.codes() == []


def test_the_leader_must_be_known_and_among_the_files(failover: Failover) -> None:
    failover.complete()
    failover.lose()
    failover.go_on()
    assert failover.codes(leader=None) == []


@pytest.mark.parametrize("leader", [-1, 3])
def test_a_leader_whose_files_are_not_given_may_have_the_marker(failover: Failover, leader: int) -> None:
    failover.complete()
    failover.lose()
    failover.go_on()
    assert failover.codes(leader=leader) == []


def test_a_marker_may_be_among_missing_offsets(failover: Failover) -> None:
    failover.complete()
    failover.lose()
    failover.leader.skip(ORDERS)
    failover.go_on(at=DAY)
    assert failover.codes() == []


def test_a_marker_may_be_in_a_damaged_batch(failover: Failover) -> None:
    failover.complete()
    failover.lose()
    failover.go_on(at=DAY)
    assert failover.codes() == [("commit_marker_lost", 1)]
    batches = failover.leader.batches[ORDERS]
    batches[-2] = batches[-2][:-1] + bytes([batches[-2][-1] ^ 1])
    with pytest.raises(AssertionError, match="bad_crc"):
        failover.findings()
    assert list(lost_markers(failover.evidence())) == []


def test_the_first_marker_of_the_lost_history_may_be_missing(failover: Failover) -> None:
    failover.complete()
    failover.lost.skip(ORDERS)
    failover.lose()
    assert failover.codes() == []


def test_a_transaction_after_the_histories_part_is_the_leaders_own(failover: Failover) -> None:
    failover.leader.marker(ORDERS, 1, 1)
    failover.complete()
    failover.lose()
    failover.leader.data(ORDERS, 1, 1)
    assert failover.codes() == []


def test_a_completed_transaction_whose_marker_no_replica_has(failover: Failover) -> None:
    failover.complete()
    completed = failover.leader.now
    failover.leader.batches[ORDERS].pop(0)  # deleted by retention: it is not known to be torn
    failover.go_on(at=completed + 10 * SECOND)
    assert failover.codes(lost=False) == []
    failover.go_on(at=completed + MINUTE, epoch=1)
    (finding,) = failover.findings(lost=False)
    assert (finding.code.name, finding.offset, finding.node_id, finding.file) == ("commit_marker_lost", 1, None, None)
    assert finding.known == (
        "producer 1: 2 records at offsets 1 to 2, of epoch 0, are committed: tx had the COMMIT written by"
        " 2023-11-14 22:13:20 UTC, and the log of the leader, with times up to 2023-11-14 22:14:20 UTC, does not have"
        " it"
    )


def test_a_transaction_that_is_torn_for_its_missing_marker_is_one_finding(tmp_path: Path) -> None:
    """The log is there from offset 0 on, with a marker from before the transaction."""
    failover = Failover(tmp_path)
    early = SmallCluster(tmp_path / "early")
    early.leader_epoch = 1
    early.marker(ORDERS, 9, 0, at=-MINUTE)
    failover.leader.batches[ORDERS][0] = early.batches[ORDERS][0]
    failover.complete()
    failover.go_on(at=DAY, epoch=1)
    evidence = failover.evidence(lost=False)
    assert [one.code.name for one in torn_transactions(evidence)] == ["torn_transaction"]
    assert list(lost_markers(evidence)) == []


@pytest.mark.parametrize("leader", [None, -1, 3])
def test_a_replica_that_does_not_lead_may_not_have_the_marker_that_the_leader_has(
    failover: Failover, leader: int | None
) -> None:
    failover.complete()
    failover.leader.batches[ORDERS].pop(0)
    failover.go_on(at=DAY)
    assert failover.codes(leader=leader, lost=False) == []
    assert failover.codes(lost=False) == [("commit_marker_lost", 1)]


def test_an_epoch_that_several_transactions_have_does_not_say_which_one_was_completed(tmp_path: Path) -> None:
    failover = Failover(tmp_path, version=0)
    failover.complete()
    failover.go_on(at=DAY)
    failover.leader.batches[ORDERS].pop(0)
    assert failover.codes(lost=False) == []
    failover.lose(goes_on=False)
    assert failover.codes() == []


def test_a_coordinator_that_decided_otherwise_does_not_explain_the_marker(failover: Failover) -> None:
    failover.lose("ABORT", goes_on=False)
    failover.complete()
    failover.go_on(at=DAY)
    assert [one.code.name for one in failover.findings() if one.node_id is not None] == []
