"""Up to where replicas agree, beside a twin of KIP-101 in plain Python that knows each record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import kraftlog
from golden_files import GOLDEN
from kraftlog.read.lineage import LeaderEpoch, Lineage, LogEnd, lineage_of, log_end
from kraftlog.read.partitions import by_partition
from kraftlog.read.segment_reader import segment_headers
from replica_histories import Log, parts_at, replicas

UNDEFINED = -1


def lineage_in(log: Log) -> Lineage:
    epochs, offsets = (np.array([getattr(one, name) for one in log.records], "i8") for name in ("epoch", "offset"))
    return Lineage.of_batches(epochs, offsets, log.end)


def end_offset_for(entries: list[tuple[int, int]], end: int, epoch: int) -> tuple[int, int]:
    """``LeaderEpochFileCache.endOffsetFor``."""
    if not entries or epoch == UNDEFINED:
        return UNDEFINED, UNDEFINED
    if entries[-1][0] == epoch:
        return epoch, end
    higher = [entry for entry in entries if entry[0] > epoch]
    floor = [entry for entry in entries if entry[0] <= epoch]
    if not higher:
        return UNDEFINED, UNDEFINED
    return (floor[-1][0] if floor else epoch), higher[0][1]


def truncated_to(follower: Log, leader: Log) -> int:
    """Return where a follower ends up, by the loop of ``AbstractFetcherThread``, which KIP-279 describes."""
    entries, end, of_leader = follower.cache, follower.end, leader.cache
    while True:
        epoch, leader_end = end_offset_for(of_leader, leader.end, entries[-1][0])
        assert epoch != UNDEFINED
        own_epoch, own_end = end_offset_for(entries, end, epoch)
        if own_epoch in (epoch, UNDEFINED):
            return min(leader_end, own_end if own_epoch == epoch else end, end)
        end = min(own_end, end)
        entries = [entry for entry in entries if entry[1] < end]


@given(replicas())
def test_agrees_until_is_where_a_follower_truncates(logs: tuple[Log, Log, Log]):
    one, other, _ = logs
    found = lineage_in(one).agrees_until(lineage_in(other))
    assert found == lineage_in(other).agrees_until(lineage_in(one))
    if not one.records or not other.records:
        assert found is None
        return
    follower, leader = sorted((one, other), key=lambda log: (lineage_in(log).last_epoch, log.end))
    assert found == truncated_to(follower, leader)


@given(replicas())
def test_the_end_of_an_epoch_is_that_of_kafkas_cache(logs: tuple[Log, Log, Log]):
    for log in logs:
        lineage = lineage_in(log)
        for epoch in range(-2, lineage.last_epoch + 3):
            assert (lineage.end_for(epoch) or (UNDEFINED, UNDEFINED)) == end_offset_for(log.cache, log.end, epoch)


def test_a_log_whose_first_records_are_deleted():
    """``LeaderEpochFileCache.truncateFromStart``: the last epoch up to there begins there."""
    lineage = Lineage((LeaderEpoch(1, 2), LeaderEpoch(3, 5), LeaderEpoch(4, 9)), 12)
    starts = {offset: [tuple(one) for one in lineage.starting_at(offset).epochs] for offset in (0, 2, 4, 5, 7, 9, 12)}
    assert starts == {
        0: [(1, 2), (3, 5), (4, 9)],
        2: [(1, 2), (3, 5), (4, 9)],
        4: [(1, 4), (3, 5), (4, 9)],
        5: [(3, 5), (4, 9)],
        7: [(3, 7), (4, 9)],
        9: [(4, 9)],
        12: [(4, 12)],
    }


@given(replicas())
def test_replicas_hold_the_same_records_before_it_and_others_after_it(logs: tuple[Log, Log, Log]):
    one, other, _ = logs
    found = lineage_in(one).agrees_until(lineage_in(other))
    if found is None:
        return
    left, right = ({record.offset: record for record in log.records} for log in (one, other))
    common = left.keys() & right.keys()
    assert all(left[offset] == right[offset] for offset in common if offset < found)
    assert all(left[offset] != right[offset] for offset in common if offset >= found)
    if one.start <= parts_at(one, other) >= other.start:
        assert found == parts_at(one, other)


@given(replicas(compacts=True))
def test_of_compacted_logs_no_record_before_it_is_another(logs: tuple[Log, Log, Log]):
    one, other, _ = logs
    found = lineage_in(one).agrees_until(lineage_in(other))
    if found is None:
        return
    left, right = ({record.offset: record for record in log.records} for log in (one, other))
    common = left.keys() & right.keys()
    assert all(left[offset] == right[offset] for offset in common if offset < found)
    assert all(left[offset] != right[offset] for offset in common if offset >= found)


def test_an_epoch_that_falls_begins_nothing():
    lineage = Lineage.of_batches(np.array([-1, -1, 3, 2, 3, 5]), np.array([0, 4, 8, 9, 12, 20]), 21)
    assert lineage.epochs == (LeaderEpoch(3, 8), LeaderEpoch(5, 20))
    assert (lineage.end_of(2), lineage.end_of(3), lineage.end_of(5)) == (8, 20, 21)


def test_without_epochs_nothing_tells():
    old, new = Lineage((), 5), Lineage((LeaderEpoch(0, 0),), 5)
    assert old.agrees_until(new) is new.agrees_until(old) is old.agrees_until(old) is None


LOGS = sorted({path.parent for path in GOLDEN.glob("**/log/*-[0-9]*/*.log")})
# within a segment that begins and ends with one epoch, another is not believed
WITH_FALSE_EPOCHS = ("bit_flip_leader_epoch", "garbage_between_batches_plausible_length")


@pytest.mark.parametrize("folder", LOGS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_it_is_that_of_all_headers(folder: Path):
    for group in by_partition(kraftlog.open(folder).found.segments):
        headers = [one for segment in group for one in segment_headers(segment, [])]
        end = log_end(group, [])
        if not headers:
            assert end == LogEnd(-1, group[0].base_offset)
            continue
        epochs, offsets = (
            np.concatenate([one[name] for one in headers]) for name in ("partition_leader_epoch", "base_offset")
        )
        found = lineage_of(group, end, [])
        if folder.parents[1].name in WITH_FALSE_EPOCHS:
            assert found.epochs == (LeaderEpoch(0, 0),)
            continue
        assert found == Lineage.of_batches(epochs, offsets, end.end_offset)


@pytest.mark.parametrize(("has_data", "end"), [(True, LogEnd(2, 9)), (False, LogEnd(-1, 9))])
def test_a_log_whose_last_segment_is_empty_ends_where_it_begins(tmp_path: Path, has_data: bool, end: LogEnd):
    """A cleaner removed the batches from offset 5 to 8."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    data = kraftlog.encode(pa.table({"value": [b"v"] * 5}), partition_leader_epoch=2)
    (folder / f"{0:020d}.log").write_bytes(data if has_data else b"")
    (folder / f"{9:020d}.log").touch()
    [group] = by_partition(kraftlog.open(folder).found.segments)
    assert log_end(group, []) == end


@pytest.mark.parametrize(("removed", "epochs"), [([1], ((0, 0), (1, 5))), ([0, 1], ((1, 0),)), ([0], ((1, 5),))])
def test_the_epoch_of_the_end_stays_when_a_broker_removes_segments(
    tmp_path: Path, removed: list[int], epochs: tuple[tuple[int, int], ...]
):
    """The end was read before; the cleaner, retention or the end of a topic took the files after it."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    for epoch, base_offset in enumerate((0, 5)):
        records = pa.table({"value": [b"v"] * 5})
        data = kraftlog.encode(records, base_offset=base_offset, partition_leader_epoch=epoch)
        (folder / f"{base_offset:020d}.log").write_bytes(data)
    [group] = by_partition(kraftlog.open(folder).found.segments)
    end = log_end(group, [])
    for number in removed:
        group[number].path.unlink()
    lineage = lineage_of(group, end, faults := [])
    assert [tuple(one) for one in lineage.epochs] == list(epochs)
    assert lineage.end_offset == 10
    assert faults


def test_a_replica_whose_segments_disappear_still_agrees_with_others(tmp_path: Path):
    """The line is asked for its end, then loses its file, then continues the lineage of others."""
    for node in ("a", "b", "c"):
        (tmp_path / node / "t-0").mkdir(parents=True)
        data = kraftlog.encode(pa.table({"value": [b"v"] * 5}), partition_leader_epoch=3 if node == "c" else 4)
        (tmp_path / node / "t-0" / f"{0:020d}.log").write_bytes(data)
    [partition] = kraftlog.open([tmp_path / node for node in ("a", "b", "c")]).partitions
    ends = [one.end for one in partition.replicas]
    assert [end.last_epoch for end in ends] == [4, 4, 3]
    for one in partition.replicas[:2]:
        one.segments[0].path.unlink()
    assert [(one.end.last_epoch, until) for one, until in partition.agreeing] == [(4, 5)]
