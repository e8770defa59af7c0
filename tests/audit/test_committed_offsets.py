"""Committed offsets against logs, each other and transactions: each finding, and each clause of its precondition."""

from __future__ import annotations

import random
import shutil
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest
from small_cluster import OFFSETS, SECOND, SmallCluster, findings_of

import kraftlog
from kraftlog.audit.committed_offsets import committed_offsets
from kraftlog.audit.evidence import Evidence
from kraftlog.layout.checkpoints import CLEAN_SHUTDOWN
from kraftlog.read.log_pass import Pass
from kraftlog.transactions.cycles import cycles

LATER = 10 * SECOND
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAQ"


def records(cluster: SmallCluster, count: int, name: str = "t-0") -> None:
    for _ in range(count):
        cluster.data(name)


def transactional(
    cluster: SmallCluster, source: str, offset: int, epoch: int, *, producer: int = 1, kind: str = "COMMIT"
) -> None:
    cluster.commit(source, offset, producer, epoch)
    cluster.marker(OFFSETS, producer, epoch + 1, kind)


def codes(cluster: SmallCluster) -> list[str]:
    return [code for code, _, _ in cluster.found(committed_offsets)]


def test_offsets_inside_of_their_log(cluster: SmallCluster):
    records(cluster, 3)
    for offset in range(4):
        cluster.commit("t-0", offset, leader_epoch=0)
        cluster.commit("t-0", offset, group="other")
    assert codes(cluster) == []


def test_a_log_that_was_truncated_and_went_on_in_a_later_epoch(cluster: SmallCluster):
    records(cluster, 2)
    cluster.commit("t-0", 5, leader_epoch=0)
    cluster.leader_epoch = 1
    records(cluster, 4)
    assert cluster.found(committed_offsets) == [("committed_offset_lost", "t", 5)]
    (finding,) = findings_of(committed_offsets, cluster.directory)
    known = "read in leader epoch 0; in the log the records from offset 2 on are of epoch 1"
    assert finding.known == f"group g has committed 5, {known}"


def test_an_offset_where_a_later_epoch_begins(cluster: SmallCluster):
    records(cluster, 2)
    cluster.commit("t-0", 2, leader_epoch=0)
    cluster.leader_epoch = 1
    records(cluster, 4)
    assert codes(cluster) == []


@pytest.mark.parametrize(("kind", "expected"), [("COMMIT", ["committed_offset_lost"]), ("ABORT", [])])
def test_a_consumer_skips_aborted_records_and_markers_of_a_later_epoch(
    cluster: SmallCluster, kind: str, expected: list[str]
):
    records(cluster, 2)
    cluster.commit("t-0", 4, leader_epoch=0)
    cluster.leader_epoch = 1
    cluster.data("t-0", 1, 0)
    cluster.marker("t-0", 1, 1, kind)
    assert codes(cluster) == expected


def test_a_marker_begins_a_later_epoch(cluster: SmallCluster):
    cluster.data("t-0", 1, 0)
    cluster.commit("t-0", 2, leader_epoch=0)
    cluster.leader_epoch = 1
    cluster.marker("t-0", 1, 1)
    records(cluster, 1)
    assert codes(cluster) == []


@pytest.mark.parametrize(("later", "expected"), [(LATER, []), (LATER + 1, ["committed_offset_lost"])])
def test_a_marker_before_the_offset_that_was_written_after_the_commit(
    cluster: SmallCluster, later: int, expected: list[str]
):
    cluster.commit("t-0", 3, at=0)
    records(cluster, 1)
    cluster.marker("t-0", 1, 0, at=later)
    records(cluster, 3)
    assert codes(cluster) == expected


def test_a_marker_behind_the_offset_is_later(cluster: SmallCluster):
    records(cluster, 1)
    cluster.commit("t-0", 1, at=0)
    cluster.marker("t-0", 1, 0, at=LATER + 1)
    assert codes(cluster) == []


@pytest.mark.parametrize(
    ("number", "expected"), [(0, ["committed_offset_lost"]), (1, ["committed_offset_lost"]), (2, [])]
)
def test_a_commit_that_names_another_topic_id(cluster: SmallCluster, number: int, expected: list[str]):
    """An id of zeros is none."""
    cluster.commit("t-0", 5, leader_epoch=0, topic_id=bytes(15) + bytes([number]))
    cluster.leader_epoch = 1
    records(cluster, 6)
    cluster.write()
    (cluster.directory / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    assert codes(cluster) == expected


def damage(cluster: SmallCluster, name: str, number: int) -> list[str]:
    """Flip a bit of a batch; returns the codes of findings beside it."""
    batch = bytearray(cluster.batches[name][number])
    batch[-1] ^= 1
    cluster.batches[name][number] = bytes(batch)
    read = Pass()
    evidence = Evidence(kraftlog.open(cluster.write()).found, read, 0)
    found = [one.code.name for one in committed_offsets(evidence)]
    assert {fault.error for fault in read.faults} == {"bad_crc"}
    assert len(read.faults) == len(set(read.faults))
    return found


def test_a_damaged_log_may_have_had_what_a_group_read(cluster: SmallCluster):
    cluster.commit("t-0", 5, leader_epoch=0)
    cluster.leader_epoch = 1
    records(cluster, 7)
    cluster.data("t-1", 1, 0)
    transactional(cluster, "t-1", 1, 0)
    cluster.marker("t-1", 1, 1)
    assert codes(cluster) == ["committed_offset_lost", "precommitted_read"]
    assert damage(cluster, "t-0", 6) == ["precommitted_read"]
    assert damage(cluster, "t-1", 1) == []


def test_a_damaged_commit_may_have_been_the_last(cluster: SmallCluster):
    cluster.commit("t-0", 5, leader_epoch=0)
    cluster.commit("t-0", None)
    cluster.leader_epoch = 1
    records(cluster, 7)
    assert damage(cluster, OFFSETS, 1) == []


def test_a_tombstone_ends_what_a_group_has_committed(cluster: SmallCluster):
    cluster.commit("t-0", 5, leader_epoch=0)
    cluster.commit("t-0", None)
    cluster.leader_epoch = 1
    records(cluster, 6)
    assert codes(cluster) == []


def stopped(cluster: SmallCluster, *, isr: int = 1, is_clean: bool = True) -> None:
    """Write what a broker of node id 1 has beside its logs after it was stopped."""
    cluster.write()
    (cluster.directory / "meta.properties").write_text("node.id=1\n")
    if is_clean:
        (cluster.directory / CLEAN_SHUTDOWN).write_text("")
    nodes = pa.array([[isr]], pa.list_(pa.int32()))
    fields = {"partition_id": pa.array([0], pa.int32()), "topic_id": [TOPIC_ID], "replicas": nodes, "isr": nodes}
    values = [
        kraftlog.encode_messages("TopicRecord", pa.table({"name": ["t"], "topic_id": [TOPIC_ID]}))[0].as_py(),
        kraftlog.encode_messages("PartitionRecord", pa.table(fields))[0].as_py(),
    ]
    folder = cluster.directory / "__cluster_metadata-0"
    folder.mkdir()
    batch = kraftlog.encode(pa.table({"value": values}), partition_leader_epoch=0, timestamp_ms=1)
    (folder / f"{0:020d}.log").write_bytes(batch)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["committed_offset_behind_log_end"]),
        ({"isr": 2}, []),
        ({"is_clean": False}, []),
    ],
    ids=["stopped", "not_in_sync", "killed"],
)
def test_an_offset_that_the_log_does_not_reach(cluster: SmallCluster, options: dict, expected: list[str]):
    records(cluster, 2)
    cluster.commit("t-0", 3)
    stopped(cluster, **options)
    assert [one.code.name for one in findings_of(committed_offsets, cluster.directory)] == expected


def test_a_log_that_retention_has_emptied_ends_where_its_last_segment_begins(cluster: SmallCluster):
    records(cluster, 9)
    cluster.commit("t-0", 5)
    stopped(cluster)
    (log,) = (cluster.directory / "t-0").glob("*.log")
    log.unlink()
    (log.parent / f"{9:020d}.log").touch()
    found = findings_of(committed_offsets, cluster.directory)
    assert [one.code.name for one in found] == ["committed_offset_before_log_start"]
    assert "has committed 5, and the log starts at 9" in found[0].known


def test_logs_of_two_directories_were_not_closed_together(tmp_path: Path):
    ours, other = tmp_path / "1", tmp_path / "2"
    for directory in (ours, other):
        directory.mkdir()
    cluster, of_groups = SmallCluster(ours), SmallCluster(other)
    records(cluster, 2)
    stopped(cluster)
    of_groups.commit("t-0", 3)
    of_groups.write()
    (other / CLEAN_SHUTDOWN).write_text("")
    assert findings_of(committed_offsets, ours, other) == []
    shutil.copytree(other / OFFSETS, ours / OFFSETS)
    assert [one.code.name for one in findings_of(committed_offsets, ours)] == ["committed_offset_behind_log_end"]


def test_which_replica_is_in_sync_is_not_known_without_a_metadata_log(cluster: SmallCluster):
    records(cluster, 2)
    cluster.commit("t-0", 3)
    cluster.write()
    (cluster.directory / CLEAN_SHUTDOWN).write_text("")
    assert codes(cluster) == []


def test_an_offset_before_the_start_of_the_log(cluster: SmallCluster):
    records(cluster, 5)
    cluster.commit("t-0", 2)
    cluster.commit("t-0", 3, group="other")
    (cluster.directory / "log-start-offset-checkpoint").write_text("0\n1\nt 0 3\n")
    assert cluster.found(committed_offsets) == [("committed_offset_before_log_start", "t", 2)]


def test_a_group_that_committed_a_smaller_offset(cluster: SmallCluster):
    records(cluster, 9)
    for offset in (5, 3, 4, 2):
        cluster.commit("t-0", offset)
    assert cluster.found(committed_offsets) == [("commit_goes_back", "t", 3)]
    (finding,) = findings_of(committed_offsets, cluster.directory)
    assert finding.known == "group g committed offset 3 after 5, at offset 1 of __consumer_offsets-0; 2 times in all"


def test_offsets_are_of_a_group_and_a_partition(cluster: SmallCluster):
    records(cluster, 9)
    records(cluster, 9, "t-1")
    cluster.commit("t-0", 5)
    cluster.commit("t-1", 3)
    cluster.commit("t-0", 4, group="other")
    assert codes(cluster) == []


def test_a_transaction_committed_a_smaller_offset_than_the_one_before(cluster: SmallCluster):
    records(cluster, 9)
    transactional(cluster, "t-0", 5, 0)
    transactional(cluster, "t-0", 4, 1)
    assert cluster.found(committed_offsets) == [("transactional_commit_goes_back", "t", 4)]


def test_a_group_that_was_reset_between_transactions(cluster: SmallCluster):
    records(cluster, 9)
    transactional(cluster, "t-0", 5, 0)
    cluster.commit("t-0", 0)
    transactional(cluster, "t-0", 4, 1)
    assert cluster.found(committed_offsets) == [("commit_goes_back", "t", 0)]


def test_a_transaction_may_go_back_after_a_commit_outside_of_transactions(cluster: SmallCluster):
    records(cluster, 9)
    cluster.commit("t-0", 5)
    transactional(cluster, "t-0", 4, 0)
    assert cluster.found(committed_offsets) == [("commit_goes_back", "t", 4)]


def test_what_was_aborted_or_is_pending_was_not_committed(cluster: SmallCluster):
    records(cluster, 9)
    transactional(cluster, "t-0", 8, 0, kind="ABORT")
    transactional(cluster, "t-0", 5, 1)
    cluster.commit("t-0", 4, 1, 2)
    assert codes(cluster) == []


def test_a_transaction_that_read_what_it_wrote(cluster: SmallCluster):
    records(cluster, 2)
    cluster.data("t-0", 1, 0)
    transactional(cluster, "t-0", 3, 0)
    cluster.marker("t-0", 1, 1)
    assert cluster.found(committed_offsets) == [("precommitted_read", "t", 3)]


def test_a_replay_commits_offsets_of_the_log_that_it_reads(cluster: SmallCluster):
    records(cluster, 2)
    cluster.data("t-0", 1, 0)
    cluster.commit("t-0", 900, 1, 0, group="kraftlog-replay-1")
    cluster.marker(OFFSETS, 1, 1)
    cluster.marker("t-0", 1, 1)
    assert codes(cluster) == []


@pytest.mark.parametrize("kind", ["COMMIT", "ABORT"])
def test_a_transaction_that_read_up_to_what_it_wrote(cluster: SmallCluster, kind: str):
    """What was aborted was not read by anyone who could commit it."""
    records(cluster, 2)
    cluster.data("t-0", 1, 0)
    transactional(cluster, "t-0", 2 if kind == "COMMIT" else 3, 0, kind=kind)
    cluster.marker("t-0", 1, 1, kind)
    assert codes(cluster) == []


@pytest.mark.parametrize("kind", ["COMMIT", "ABORT"])
@pytest.mark.parametrize(
    ("offset", "later", "expected"),
    [
        (2, LATER + 1, ["read_beyond_last_stable_offset"]),
        (1, LATER + 1, []),
        (2, LATER, []),
    ],
    ids=["read", "before", "clocks"],
)
def test_a_read_of_records_whose_transaction_had_not_ended(
    cluster: SmallCluster, kind: str, offset: int, later: int, expected: list[str]
):
    records(cluster, 1)
    cluster.data("t-0", 2, 0, at=-5)
    cluster.commit("t-0", offset, 1, 0, at=0)
    cluster.marker(OFFSETS, 1, 1)
    cluster.marker("t-0", 2, 1, kind, at=later)
    assert codes(cluster) == expected


@pytest.mark.parametrize(("later", "expected"), [(LATER, []), (LATER + 1, ["read_beyond_last_stable_offset"])])
def test_a_read_of_records_whose_transaction_is_still_open(cluster: SmallCluster, later: int, expected: list[str]):
    cluster.data("t-0", 2, 0, at=-5)
    cluster.commit("t-0", 1, 1, 0, at=0)
    cluster.marker(OFFSETS, 1, 1)
    cluster.marker("t-0", 3, 1, at=later)
    assert codes(cluster) == expected


def test_of_several_transactions_the_last_to_end_counts(cluster: SmallCluster):
    for producer in (4, 2, 5):
        cluster.data("t-0", producer, 0, at=-5)
    cluster.marker("t-0", 4, 1, at=-4)
    cluster.commit("t-0", 3, 1, 0, at=0)
    cluster.marker(OFFSETS, 1, 1)
    cluster.marker("t-0", 2, 1, at=LATER + 1)
    cluster.marker("t-0", 5, 1, at=SECOND)
    (finding,) = findings_of(committed_offsets, cluster.write())
    assert finding.known.endswith("producer 2's transaction from offset 1 on was committed only 10001 ms later")


def test_an_open_transaction_counts_more_than_those_that_ended(cluster: SmallCluster):
    for producer in (4, 2, 5):
        cluster.data("t-0", producer, 0, at=-5)
    cluster.commit("t-0", 3, 1, 0, at=0)
    cluster.marker(OFFSETS, 1, 1)
    cluster.marker("t-0", 4, 1, at=SECOND)
    cluster.marker("t-0", 5, 1, at=SECOND)
    cluster.marker("t-0", 9, 1, at=LATER + 1)
    (finding,) = findings_of(committed_offsets, cluster.write())
    assert finding.known.endswith("producer 2's transaction from offset 1 on was still open 10001 ms later")


def test_a_commit_outside_of_transactions_may_be_of_a_read_uncommitted_group(cluster: SmallCluster):
    cluster.data("t-0", 2, 0, at=-5)
    cluster.commit("t-0", 1, at=0)
    cluster.marker("t-0", 2, 1, at=LATER + 1)
    assert codes(cluster) == []


def test_a_transaction_that_began_after_the_commit_is_of_a_later_topic(cluster: SmallCluster):
    """The log of the deleted one is gone; only its group's offset is left."""
    transactional(cluster, "t-0", 2, 0)
    cluster.data("t-0", 2, 0, at=2 * LATER)
    cluster.marker("t-0", 2, 1, at=4 * LATER)
    assert "read_beyond_last_stable_offset" not in codes(cluster)


def pipelines(cluster: SmallCluster, *offsets: int) -> None:
    """Write a ring of transactions, each of which writes one record and reads from the one before it."""
    for number in range(len(offsets)):
        cluster.data(f"t-{number}", number, 0)
    for number, offset in enumerate(offsets):
        cluster.commit(f"t-{number - 1 if number else len(offsets) - 1}", offset, number, 0, group=f"g{number}")
    for number in range(len(offsets)):
        cluster.marker(f"t-{number}", number, 1)
        cluster.marker(OFFSETS, number, 1)


@pytest.mark.parametrize("length", [2, 3, 7])
def test_transactions_that_read_each_other(cluster: SmallCluster, length: int):
    pipelines(cluster, *[1] * length)
    assert [code for code, _, _ in cluster.found(committed_offsets)] == ["transaction_cycle"]
    (finding,) = findings_of(committed_offsets, cluster.directory)
    assert finding.known.startswith("transactions 0:1, 1:1")


def test_a_cycle_with_a_transaction_before_another_one_of_the_same_partition(cluster: SmallCluster):
    """The second transaction read both of the first partition, of which only the earlier one read from it."""
    cluster.data("t-0", 0, 0)
    cluster.data("t-0", 9, 0)
    cluster.data("t-1", 1, 0)
    cluster.commit("t-1", 1, 0, 0, group="g0")
    cluster.commit("t-0", 2, 1, 0, group="g1")
    for name, producer in (("t-0", 9), ("t-0", 0), ("t-1", 1), (OFFSETS, 0), (OFFSETS, 1)):
        cluster.marker(name, producer, 1)
    (finding,) = findings_of(committed_offsets, cluster.write())
    assert finding.code.name == "transaction_cycle"
    assert finding.known.startswith("transactions 0:1, 1:1 read")


@pytest.mark.parametrize("one", [0, 1, 2])
def test_a_ring_in_which_one_read_nothing(cluster: SmallCluster, one: int):
    pipelines(cluster, *(int(number != one) for number in range(3)))
    assert codes(cluster) == []


def test_transactions_that_read_what_others_wrote_before(cluster: SmallCluster):
    """The second transaction of each pipeline reads what the first one of the other wrote."""
    for epoch in range(3):
        for number in range(2):
            cluster.data(f"t-{number}", number, epoch)
            cluster.commit(f"t-{1 - number}", max(2 * epoch - 1, 0), number, epoch, group=f"g{number}")
        for number in range(2):
            cluster.marker(f"t-{number}", number, epoch + 1)
            cluster.marker(OFFSETS, number, epoch + 1)
    assert codes(cluster) == []


@pytest.mark.parametrize("seed", range(40))
def test_cycles_beside_all_paths(seed: int):
    """Nodes are in a cycle together when each leads to the other."""
    rnd = random.Random(seed)
    nodes = list(range(7))
    following = {node: rnd.sample(nodes, rnd.choice([0, 1, 1, 2])) for node in nodes}
    leads = {node: {node} for node in nodes}
    for _ in nodes:
        for node in nodes:
            leads[node] |= {far for near in following[node] for far in leads[near]}
    expected = {frozenset(other for other in nodes if other in leads[node] and node in leads[other]) for node in nodes}
    assert {frozenset(some) for some in cycles(following)} == {some for some in expected if len(some) > 1}


def test_a_long_path_has_no_cycle():
    following = {node: [node + 1] for node in range(100_000)}
    assert cycles(following) == []
    assert len(cycles(following | {100_000: [0]})[0]) == 100_001


def test_the_order_of_partitions_is_not_that_of_transactions(tmp_path: Path):
    """Whichever pipeline is written first, the cycle is the same."""
    for number, order in enumerate(permutations(range(3))):
        directory = tmp_path / str(number)
        directory.mkdir()
        cluster = SmallCluster(directory)
        for one in order:
            cluster.data(f"t-{one}", one, 0)
        for one in order:
            cluster.commit(f"t-{(one + 1) % 3}", 1, one, 0, group=f"g{one}")
        for one in order:
            cluster.marker(f"t-{one}", one, 1)
            cluster.marker(OFFSETS, one, 1)
        assert [code for code, _, _ in cluster.found(committed_offsets)] == ["transaction_cycle"]
