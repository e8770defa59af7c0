"""The simulation notices each sync that the code leaves out, and each file that is renamed before it is synced.

A sync that nobody would miss is not needed, or an oracle is too weak. Helpers of ``disk/durable.py`` are call sites of
their own: what they are used for decides whether one use alone would be missed.
"""

from __future__ import annotations

import pytest
from call_sites import NOT_IN_KRAFTLOG
from runner import Simulation, ViolationError, Workload
from workloads import WORKLOADS

NAMES = {make().name: make for make in WORKLOADS}
NOTICED = {
    "disk/durable.py _renamed_file: file.sync()": "MetadataWorkload(commit)",
    "disk/durable.py delete_file: disk().sync_folder(path.parent)": "PartitionWorkload(batch, no recovery point)",
    "disk/durable.py new_file: disk().sync_folder(path.parent)": "MetadataWorkload(commit)",
    "disk/durable.py set_aside: disk().sync_folder(path.parent)": "RecoveryWorkload(cut)",
    "disk/durable.py write_again: file.sync()": "PartitionWorkload(commit)",
    "disk/durable.py write_files: disk().sync_folder(next(iter(files)).parent)": "PartitionWorkload(commit)",
    "log_store/staged_write.py _remove_store: disk().sync_folder(store.parent)": "SinkWorkload(append)",
    "log_store/staged_write.py make_write_folder: disk().make_folder(folder)": "SinkWorkload(overwrite)",
    "log_store/staged_write.py recover: disk().make_folder(log_directory)": "SinkWorkload(append)",
    "write/active_segment.py ActiveSegment.open: disk().sync_folder(self._folder)": "PartitionWorkload(commit)",
    "write/active_segment.py ActiveSegment.sync: self._file.sync()": "PartitionWorkload(commit)",
    "write/metadata_writer.py MetadataLogWriter.__init__: disk().make_folder(self._folder)": "MetadataWorkload(commit)",
    "write/older_segments.py delete_segments_before: disk().sync_folder(folder)": "SinkWorkload(overwrite)",
    "write/partition_log.py PartitionLog.sync: file.sync()": "StoreWorkload(1)",
    "write/partition_log.py PartitionLog.adopt: disk().sync_file(staged)": "PartitionWorkload(commit)",
    "write/partition_log.py PartitionLog.adopt: disk().sync_folder(self._folder)": "PartitionWorkload(commit)",
    "write/recover.py Recovery.actions: disk().sync_folder(Path(str(folder.path)))": "RecoveryWorkload(torn)",
    "write/replaced_segments.py write_cleaned: file.sync()": "CompactWorkload",
    "write/replaced_segments.py replace_segments: disk().sync_folder(folder)": "CompactWorkload",
    "write/replaced_segments.py _take_over: disk().sync_folder(folder)": "CompactWorkload",
}
NOT_NOTICED = {
    "log_store/staging.py _PartitionFiles.finish: disk().sync_file(path)": "the commit syncs the file as well, but not"
    " what another machine has in memory, where the task may have run",
    "log_store/store.py LogStore.__init__: disk().make_folder(self.path)": "the metadata log makes it durable as well",
    "log_store/partition_folders.py make_partition_folder: disk().make_folder(folder)": "the recovery point of a new"
    " partition, which is written before its first record, makes it durable as well",
}
RENAMED = {
    "write/replaced_segments.py write_cleaned: file.sync()": "CompactWorkload",
    "disk/durable.py _renamed_file: file.sync()": "PartitionWorkload(commit)",
}
MOST = 1500  # schedules of a seed; most are noticed after a few
SEEDS = 3  # each with other batches and transactions


def noticed(workload: Workload, **change: str) -> bool:
    for seed in range(SEEDS):
        simulation = Simulation(workload, seed, **change)
        simulation.shrinks = False
        try:
            simulation.explore(MOST, variants=3)
        except ViolationError:
            return True
    return False


@pytest.mark.sweep(6)
@pytest.mark.parametrize("site", NOTICED)
def test_without_a_sync(site: str):
    assert noticed(NAMES[NOTICED[site]](), ignored=site), f"nothing is lost without {site}"


@pytest.mark.parametrize("site", RENAMED)
def test_renamed_before_it_is_synced(site: str):
    assert noticed(NAMES[RENAMED[site]](), reordered=site), f"nothing is lost when {site} comes behind the rename"


def test_these_are_all_syncs_that_are_reached():
    sites = set()
    for make in WORKLOADS:
        simulation = Simulation(make())
        simulation.explore(40, variants=3)
        sites |= {site.partition(" < ")[0] for site in simulation.sites}
    assert sorted(sites - {NOT_IN_KRAFTLOG, *NOT_NOTICED}) == sorted(NOTICED)
