"""The simulation notices each sync that the code leaves out, and each file that is renamed before it is synced.

A sync that nobody would miss is not needed, or an oracle is too weak. Who calls a method that waits for the disk for
others is a call site of its own (``call_sites.py``). Helpers of ``disk/durable.py`` are call sites themselves: what
they are used for decides whether one use alone would be missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from call_sites import NOT_IN_KRAFTLOG
from faults import Fault
from losses import loss_of
from nodes import closed, dependencies
from runner import Schedule, Simulation, ViolationError, Workload
from sim_disk import Loss, SimDisk
from workloads import WORKLOADS

COORDINATOR = "log_store/transaction_coordinator.py TransactionCoordinator"
NAMES = {make().name: make for make in WORKLOADS}
NOTICED = {
    "backup/backup_folder.py BackupFolder.write: disk().make_folder(path.parent)": "BackupWorkload",
    "backup/backup_folder.py Writer.keep: disk().sync_file(temporary.path)": "BackupWorkload",
    "backup/backup_folder.py BackupFolder.writer: disk().make_folder(self.path)": "BackupWorkload",
    "backup/backup_folder.py Writer._begin: sync(path)": "BackupWorkload",
    "backup/prune.py prune: disk().sync_folder(repository.path / BACKUPS)": "BackupWorkload",
    "backup/new_folder.py new_folder: disk().make_folder(temporary)": "RestoreWorkload",
    "backup/new_folder.py new_folder: disk().sync_folder(target.absolute().parent)": "RestoreWorkload",
    "backup/restore.py _copy_folder: disk().sync_folder(target)": "RestoreWorkload",
    "disk/durable.py copy_file: copy.sync()": "RestoreWorkload",
    "disk/durable.py _renamed_file: file.sync()": "MetadataWorkload(commit)",
    "disk/durable.py delete_file: disk().sync_folder(path.parent)": "PartitionWorkload(batch, no recovery point)",
    "disk/durable.py new_file: disk().sync_folder(path.parent)": "MetadataWorkload(commit)",
    "disk/durable.py set_aside: disk().sync_folder(path.parent)": "RecoveryWorkload(cut)",
    "disk/durable.py write_again: file.sync()": "PartitionWorkload(commit)",
    "disk/durable.py write_files: disk().sync_folder(next(iter(files)).parent)": "PartitionWorkload(commit)",
    "log_store/group_coordinator.py GroupCoordinator.commit: partition.sync()": "StoreWorkload(2)",
    "log_store/group_coordinator.py GroupCoordinator.forget_topic: partition.sync()": "StoreWorkload(2)",
    "log_store/producer.py Producer.flush: self._store.partition_of(key).sync()": "StoreWorkload(2)",
    "log_store/staged_write.py _remove_store: disk().sync_folder(store.parent)": "SinkWorkload(append)",
    "log_store/staged_write.py make_write_folder: disk().make_folder(folder)": "SinkWorkload(overwrite)",
    "log_store/staged_write.py recover: disk().make_folder(log_directory)": "SinkWorkload(append)",
    f"{COORDINATOR}.init_producer_id: ).sync()": "StoreWorkload(2)",
    f"{COORDINATOR}.end: self._sync(self._there(prepared))": "CompactWorkload",
    f"{COORDINATOR}.end: self._log_of(state.transactional_id).sync()": "CompactWorkload",
    f"{COORDINATOR}._settle: self._sync(sorted(entry.marked, key=lambda partition: partition.key))": "StoreWorkload(2)",
    f"{COORDINATOR}._settle: self._log_of(completed.transactional_id).sync()": "CompactWorkload",
    "server/produce_requests.py ProduceRequests._written: partition.sync()": "BrokerWorkload(2)",
    "server/transaction_requests.py TransactionRequests._write_offsets: self._store.parts.partition_of(key).sync()": (
        "BrokerWorkload(2)"
    ),
    "write/active_segment.py ActiveSegment.open: disk().sync_folder(self._folder)": "PartitionWorkload(commit)",
    "write/metadata_writer.py MetadataLogWriter.__init__: disk().make_folder(self._folder)": "MetadataWorkload(commit)",
    "write/older_segments.py delete_segments_before: disk().sync_folder(folder)": "SinkWorkload(overwrite)",
    "write/partition_log.py PartitionLog._roll: self._finish_segment()": "PartitionWorkload(commit)",
    "write/partition_log.py PartitionLog.adopt: self._finish_segment()": "PartitionWorkload(commit)",
    "write/partition_log.py PartitionLog.adopt: disk().sync_file(staged)": "PartitionWorkload(commit)",
    "write/partition_log.py PartitionLog.adopt: disk().sync_folder(self._folder)": "PartitionWorkload(commit)",
    "write/partition_log.py PartitionLog.append: self._sync()": "PartitionWorkload(batch, no recovery point)",
    "write/partition_log.py PartitionLog.append: self._sync() (2)": "PartitionWorkload(commit)",
    "write/partition_log.py PartitionLog.close: self._finish_segment()": "StoreWorkload(2)",
    "write/recover.py Recovery.actions: disk().sync_folder(Path(str(folder.path)))": "RecoveryWorkload(torn)",
    "write/replaced_segments.py write_cleaned: file.sync()": "CompactWorkload",
    "write/replaced_segments.py replace_segments: disk().sync_folder(folder)": "CompactWorkload",
}
NOT_NOTICED = {
    "backup/backup_folder.py Writer._make_folder: disk().make_folder(path.parent)": "the folder of manifests, which is"
    " next to it, makes it durable as well",
    "backup/new_folder.py new_folder: disk().sync_folder(temporary)": "the last file of a restore is its report, whose"
    " name is synced as well; an extract has none",
    "backup/restore.py _Restore.write: disk().make_folder(directory)": "the properties of a node and the report make"
    " the names of its folders durable as well",
    "backup/quorum.py write_controller: disk().make_folder(directory)": "a restore makes the folders of all nodes"
    " before; a rescue does not",
    "log_store/staging.py _PartitionFiles.finish: disk().sync_file(path)": "the commit syncs the file as well, but not"
    " what another machine has in memory, where the task may have run",
    "log_store/store.py LogStore.__init__: disk().make_folder(self.path)": "the metadata log makes it durable as well",
    "log_store/partition_folders.py make_partition_folder: disk().make_folder(folder)": "the recovery point of a new"
    " partition, which is written before its first record, makes it durable as well",
    f"{COORDINATOR}.add_partitions: self._log_of(state.transactional_id).sync()": "seen in one of 3,320 schedules of"
    " BrokerWorkload; tests/server/test_restarts.py notices it",
    "write/replaced_segments.py remove_segment: disk().sync_folder(folder)": "seen in one of 14,700 schedules of"
    " BrokerWorkload, where nothing is left of several segments; tests/write/test_replaced_segments.py notices it",
    "write/replaced_segments.py _take_over: disk().sync_folder(folder) (2)": "where the rename is lost, the swap file"
    " is there, and what opens the log takes it over once more",
}
NOT_AWAITED = "write/partition_log.py PartitionLog.sync: file.sync()"
"""By a thread, of a partition of a commit that has failed with another one; few seeds come there."""

RARE = {  # noticed where few of the changes reach the disk: schedules of these steps alone are tried, and all of them
    "log_store/partition_folders.py remove_partition_folder: disk().sync_folder(folder.parent)": (
        "StoreWorkload(1)",
        "unlink",
        "partition.metadata",
        None,
    ),
    "write/replaced_segments.py _take_over: disk().sync_folder(folder)": (
        "CompactWorkload",
        "rename",
        ".log.swap",
        None,
    ),
    "write/log_repair.py take_back: disk().sync_folder(folder)": (
        "PartitionWorkload(commit)",
        "truncate",
        ".log",
        "EIO at a write",
    ),
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


@pytest.mark.sweep(2)
@pytest.mark.parametrize("site", NOTICED)
def test_without_a_sync(site: str):
    assert noticed(NAMES[NOTICED[site]](), ignored=site), f"nothing is lost without {site}"


@pytest.mark.sweep(0)  # half a minute each
@pytest.mark.parametrize("site", RARE)
def test_without_a_sync_that_is_seldom_missed(site: str):
    name, step, ending, fault = RARE[site]
    assert any(noticed_behind(Simulation(NAMES[name](), seed, ignored=site), step, ending, fault) for seed in range(3))


def noticed_behind(simulation: Simulation, step: str, ending: str, kind: str | None) -> bool:
    """Whether a loss is noticed behind steps of a name on files of a name, in runs without a fault or with any one."""
    simulation.shrinks = False
    for variant in range(3):
        known = simulation._run(variant, None).steps if kind else ()
        faults = [Fault(kind, each.number) for each in known if each.name in ("append", "rename")] if kind else [None]
        for fault in faults:
            run = simulation._run(variant, fault)
            for number, moment in enumerate(run.moments):
                is_behind = fault is None or moment.step.number > fault.number
                if is_behind and moment.step.name == step and moment.step.path.name.endswith(ending):
                    for loss in losses_at(SimDisk(moment.nodes)):
                        if simulation.replay(Schedule(simulation.workload.name, variant, fault, ((number, loss),))):
                            return True
    return False


def losses_at(disk: SimDisk) -> Iterator[Loss]:
    """Return losses of all names, of all, and of all names but one of the last that were changed."""
    yield loss_of("data", disk)
    yield loss_of("none", disk)
    before = dependencies(disk.nodes)
    for number in sorted(before)[-6:]:
        yield replace(loss_of("all", disk), entries=frozenset(before.keys() - closed({number}, before)))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("site", RENAMED)
def test_renamed_before_it_is_synced(site: str):
    assert noticed(NAMES[RENAMED[site]](), reordered=site), f"nothing is lost when {site} comes behind the rename"


def test_these_are_all_syncs_that_are_reached():
    sites = set()
    for make in WORKLOADS:
        simulation = Simulation(make())
        simulation.explore(10, variants=2)
        sites |= {site.partition(" < ")[0] for site in simulation.sites}
    assert set(NOT_NOTICED) <= sites
    assert sites - {NOT_IN_KRAFTLOG, NOT_AWAITED, *NOT_NOTICED, *RARE} == set(NOTICED)
