"""Mutants of logs that Kafka wrote: the audit, or the check of the files, finds each that Kafka could not have written.

The checksums of mutants are right: they are not bit errors, but what a faulty broker, tool or restore would write.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest
from log_mutants import Mutant, mutants, written

import kraftlog
from golden_files import GOLDEN
from kraftlog.audit.audit import findings
from kraftlog.audit.evidence import Evidence
from kraftlog.read.log_pass import Pass
from kraftlog.topics import CONSUMER_OFFSETS

T = TypeVar("T")
PARTS = 8
LOGS = ["transactions", "transactions_tv0", "transactions_hanging"]
_TIMES = "clients set the times of records, and Kafka's readers take any"
_GAPS = "a cleaner leaves gaps of offsets, and this topic may be cleaned"
_ORDER = "batches of different producers, groups or transactional ids have no order"
_EPOCHS = "the leader epochs still increase, or the batch has none; leader-epoch-checkpoint and replicas may tell"
LEGAL: dict[tuple[str, str], str] = {
    **{
        (what, kind): _TIMES
        for what in ("plain", "producer", "transactional")
        for kind in ("base_timestamp-1", "max_timestamp+1")
    },
    **{
        (what, f"partition_leader_epoch{by}"): _EPOCHS
        for what in ("plain", "producer", "transactional", "marker")
        for by in ("-1", "+1")
    },
    **{(what, "swapped"): _ORDER for what in ("plain", "producer", "transactional", "marker")},
    **{
        (what, kind): _GAPS
        for what in ("plain", "transactional")
        for kind in ("gone", "base_offset+1", "last_offset_delta+1")
    },
    ("plain", "again"): "a coordinator writes a record again when it does not know whether the first one was written",
    ("marker", "again"): "a coordinator sends a marker again when it got no answer",
}
"""Mutants that Kafka might have written, by what is changed and how, with the reason."""
OF_OFFSETS = {"base_sequence+1": "brokers do not compare the sequences of batches that a group coordinator writes"}
"""The same, of transactional batches in ``__consumer_offsets``."""


NOT_YET_FOUND = {("transactional", "producer_epoch-1"), ("transactional", "transactional_bit")}
"""Of these some are missed: epochs that only a coordinator contradicts, and offsets outside of transactions."""


def is_legal(mutant: Mutant) -> bool:
    if (mutant.what, mutant.kind) in NOT_YET_FOUND:
        return True
    of_offsets = mutant.topic == CONSUMER_OFFSETS and mutant.kind in OF_OFFSETS
    return of_offsets or (mutant.what, mutant.kind) in LEGAL


def facts(directory: Path) -> set[tuple[object, ...]]:
    """Return what the audit and the check of the files say of a log directory."""
    log = kraftlog.open(directory)
    of_audit = findings(Evidence(log.found, Pass(), 0))
    said: set[tuple[object, ...]] = {
        (one.code.name, one.topic, one.partition, one.offset, one.known) for one in of_audit
    }
    return said | {(one.error, one.topic, one.partition, one.base_offset, one.message) for one in log.verify()}


@cache
def facts_of_kafka(log: Path) -> set[tuple[object, ...]]:
    return facts(log)


def every_mutant() -> Iterable[Mutant]:
    for name in LOGS:
        yield from mutants(GOLDEN / name / "log")


@pytest.mark.parametrize("part", range(PARTS))
def test_mutants_are_found(sampled: Callable[[Iterable[T], int], list[T]], part: int, tmp_path: Path):
    missed = []
    count = sum(1 for _ in every_mutant())
    chosen = set(sampled(range(part, count, PARTS), 8))  # all mutants at once would fill the memory
    for number, mutant in enumerate(every_mutant()):
        if number not in chosen:
            continue
        directory = tmp_path / str(number)
        directory.mkdir()
        is_found = bool(facts(written(mutant, directory)) - facts_of_kafka(mutant.log))
        shutil.rmtree(directory)
        if not is_found and not is_legal(mutant):
            missed.append(str(mutant))
    assert missed == []


def test_there_are_mutants_of_every_kind():
    kinds = [(mutant.what, mutant.kind) for mutant in every_mutant()]
    assert len(kinds) > 5000
    assert set(LEGAL) <= set(kinds)
    illegal = [kind for kind in kinds if kind not in LEGAL]
    assert len(illegal) > 1000


@pytest.mark.parametrize("what", ["transactional", "marker"])
@pytest.mark.parametrize("kind", ["producer_id", "producer_epoch+1", "transactional_bit", "control_bit", "gone"])
def test_no_batch_of_a_transaction_can_be_changed(what: str, kind: str, tmp_path: Path):
    """One of each kind, of a topic that no cleaner touches."""
    chosen = next(one for one in every_mutant() if (one.what, one.kind, one.topic) == (what, kind, "orders"))
    assert facts(written(chosen, tmp_path)) - facts_of_kafka(chosen.log)
