"""``kraftlog restore``: what is written is the source at the cut, on other nodes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kraftlog
from accounts import history, is_whole, with_clocks_of_leaders
from command_line import run_command
from faulty_disk import FaultyDisk, since
from kraftlog import LogStore
from kraftlog.backup.new_nodes import new_nodes, placements
from kraftlog.backup.restore import Restore
from kraftlog.disk.disk import use_disk
from kraftlog.layout.checkpoints import read_offset_checkpoint, read_properties
from kraftlog.log_store.transaction_state import NAMES
from kraftlog.metadata.uuids import uuid_text
from kraftlog.transactions.cut import CutTime, Side

COLUMNS = ["topic", "partition", "offset", "key", "value", "headers", "timestamp", "partition_leader_epoch"]
LEVELS = ("read_committed", "read_uncommitted")
TIMES = 6


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory with two topics, one of them in a group's offsets, and with closed segments."""
    folder = tmp_path_factory.mktemp("source") / "store"
    with LogStore(folder, segment_bytes=500) as store:
        store.create_topic("orders", partitions=2, configs={"retention.ms": -1, "min.insync.replicas": 2})
        store.create_topic("paid")
        producer = store.producer(transactional_id="etl")
        for number in range(12):
            with producer.transaction() as transaction:
                producer.send("orders", [{"value": b"%d" % number}], partition=number % 2)
                producer.send("paid", [{"value": b"%d" % number}])
                transaction.send_offsets({("orders", 0): number}, group="readers") if False else None
        with store.consumer("readers") as consumer:
            consumer.subscribe(["orders"])
            consumer.poll()
            consumer.commit()
    return folder
