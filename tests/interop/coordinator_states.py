"""What transaction coordinators of a cluster have written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafka_cluster import Cluster

import kraftlog
from kraftlog.read.log_pass import Pass
from kraftlog.tables.transactions import coordinator_transactions
from kraftlog.topics import TRANSACTION_STATE
from kraftlog.transactions.transaction import StateRecord


def state_records(directories: Sequence[Path], transactional_id: str) -> list[StateRecord]:
    """Return the records of a transactional id."""
    found: list[StateRecord] = []
    log = kraftlog.open(directories, topics=[TRANSACTION_STATE])
    coordinator_transactions(log.found, Pass(), lambda _of, _offset, record: found.append(record))
    return [record for record in found if record.transactional_id == transactional_id]


def wait_for_status(cluster: Cluster, coordinator: int, transactional_id: str, status: int) -> None:
    """Wait until the coordinator has written a status."""
    cluster.wait(
        lambda: state_records(cluster.nodes[coordinator].log_dirs, transactional_id),
        lambda found: status in {record.status for record in found},
    )
