"""All workloads."""

from __future__ import annotations

from backup_workload import BackupWorkload
from broker_workload import BrokerWorkload
from compact_workload import CompactWorkload
from metadata_workload import MetadataWorkload
from partition_workload import PartitionWorkload
from recovery_workload import RecoveryWorkload
from restore_workload import RestoreWorkload
from sink_workload import SinkWorkload
from store_workload import StoreWorkload

WORKLOADS = (
    lambda: MetadataWorkload("commit"),
    lambda: MetadataWorkload("batch"),
    lambda: PartitionWorkload("commit"),
    lambda: PartitionWorkload("batch"),
    lambda: PartitionWorkload("batch", has_point=False),
    lambda: SinkWorkload(overwrites=False),
    lambda: SinkWorkload(overwrites=True),
    lambda: RecoveryWorkload(cuts_damage=False),
    lambda: RecoveryWorkload(cuts_damage=True),
    lambda: RestoreWorkload(),
    lambda: StoreWorkload(1),
    lambda: StoreWorkload(2),
    lambda: BrokerWorkload(2),
    lambda: BrokerWorkload(0),
    lambda: CompactWorkload(),
    lambda: BackupWorkload(),
)
